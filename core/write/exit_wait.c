/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The logs to wait for, and looking whether they are near.
 */
#include "core/write/exit_wait.h"

#include "core/backend/placed.h"
#include "core/base/alloc.h"
#include "core/base/critical.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/base/sys.h"
#include "core/base/vec.h"

#include <time.h>

#define PAUSE_MS 5
#define PAUSE_MAX_MS 200
#define NS_A_SECOND 1000000000ULL

struct awaited {
	struct store *s;
	char *path; /* of the log, from the store's root */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct awaited *logs;
static size_t nr, cap;
static bool ending;     /* exit_wait() was called: what the C library flushes is closed later */
static uint64_t end_ns; /* of the wait; 0: it has not begun */

static uint64_t now_ns(void)
{
	struct timespec now;

	sys.clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_A_SECOND + (uint64_t)now.tv_nsec;
}

/* How many are near still. */
static size_t nr_near(void)
{
	size_t left = 0;

	for (size_t i = 0; i < nr; i++) {
		if (placed_is_near(logs[i].s, logs[i].path))
			logs[left++] = logs[i];
		else
			mem_free(logs[i].path);
	}
	nr = left;
	return left;
}

static void wait_for_all(void)
{
	unsigned pause_ms = PAUSE_MS;

	if (!end_ns)
		end_ns = now_ns() + logs[0].s->near->exit_wait * NS_A_SECOND;
	while (nr_near() && now_ns() < end_ns) {
		const struct timespec ts = { .tv_nsec = (long)pause_ms * 1000000 };

		io_nanosleep(&ts, NULL); /* a signal only makes it look earlier */
		pause_ms = pause_ms * 2 < PAUSE_MAX_MS ? pause_ms * 2 : PAUSE_MAX_MS;
	}
	if (nr)
		msg_debug(MSG_WRITE, "exit-wait=: the time is over, and %zu logs are near", nr);
}

static bool note(const struct container *c, const char *path)
{
	char full[CONTAINER_PATH_LEN];
	struct awaited *v = vec_room(logs, &cap, nr + 1, sizeof(*v));

	if (!v)
		return false;
	logs = v;
	container_path(c, path, full);
	v[nr] = (struct awaited){ c->store, mem_strdup(full) };
	return v[nr].path && ++nr;
}

void exit_wait_for(const struct container *c, const char *path)
{
	mutex_lock(&lock);
	if (note(c, path) && ending)
		wait_for_all();
	mutex_unlock(&lock);
}

void exit_wait(void)
{
	int saved ERRNO_KEPT = errno;

	ending = true;
	if (!nr)
		return;
	mutex_lock(&lock);
	wait_for_all();
	mutex_unlock(&lock);
}

/* Another thread may have been at them: what they need stays allocated. */
void exit_wait_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
	logs = NULL;
	nr = cap = 0;
	ending = false;
	end_ns = 0;
}
