/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lowest layer under several threads at once, for the thread sanitizer: first calls of
 * everything that is set up on first use, then descriptors, memory and log lines. A plain program,
 * because Criterion's workers cannot run under that sanitizer. Exits 0, or says what went wrong.
 */
#include "core/base/alloc.h"
#include "core/base/crc32c.h"
#include "core/base/msg.h"
#include "core/base/io.h"
#include "core/base/sys.h"

#include <pthread.h>
#include <stdlib.h>

#define NR_THREADS 4
#define ROUNDS 300

static pthread_barrier_t barrier;

static void check(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "race_low: %s\n", what);
		exit(1);
	}
}

static void *work(void *arg)
{
	static const unsigned char DATA[5000];
	const uint32_t want = crc32c_portable(0, DATA, sizeof(DATA));

	(void)arg;
	pthread_barrier_wait(&barrier);
	sys_init();
	for (int i = 0; i < ROUNDS; i++) {
		int fd = sys_fd_hide(sys.dup(0));
		int number = fd;
		char *p = mem_zalloc((size_t)i * 100 + 1);

		check(fd >= 0 && sys_fd_is_hidden(fd), "a descriptor was not hidden");
		check(p && !p[i * 100], "no zeroed memory");
		p = mem_realloc(p, (size_t)i * 300 + 1);
		check(p, "no memory");
		msg_debug(MSG_OPEN, "descriptor %d", fd);
		check(crc32c(0, DATA, sizeof(DATA)) == want, "a checksum was wrong");
		mem_free(p);
		sys_fd_close(&fd);
		sys_fd_is_hidden(number);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[NR_THREADS];
	char err[128];

	sys_init();
	check(!msg_init("open@/dev/null", err, sizeof(err)), err);
	pthread_barrier_init(&barrier, NULL, NR_THREADS);
	for (int i = 0; i < NR_THREADS; i++)
		check(!pthread_create(&thread[i], NULL, work, NULL), "no thread");
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
