/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many of one thing: opens and closes, threads on one file, descriptors closed wholesale. What must not grow
 * with them is memory, descriptors and locks held. Needs glibc 2.34: closefrom, close_range.
 */
#include "posix.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <sys/syscall.h>

/* KiB of memory that is resident. */
static long resident(void)
{
	char line[256];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof line, f))
		sscanf(line, "VmRSS: %ld", &kib);
	if (f)
		fclose(f);
	return kib;
}

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static int rounds(void)
{
	const char *n = getenv("ROUNDS");

	return n ? atoi(n) : 100000;
}

/* Run @one again and again, and look at what has grown after the first tenth. */
static void without_growth(const char *what, int nr, void (*one)(int i))
{
	long before = 0, now;
	int fds = 0;

	for (int i = 0; i < nr; i++) {
		if (i == nr / 10) {
			before = resident();
			fds = descriptors();
		}
		one(i);
	}
	now = resident();
	say("%s: %s, %s\n", what, now - before < 1024 ? "no memory" : "memory has grown",
	    descriptors() == fds ? "no descriptor" : "descriptors");
	if (getenv("ROUNDS"))
		fprintf(stderr, "%s: %d times, %ld KiB, then %ld KiB\n", what, nr, before, now);
}

static void open_to_read(int i)
{
	char c;
	int fd = open(at("f"), O_RDONLY);

	if (fd < 0 || (i % 10 == 0 && read(fd, &c, 1) != 1) || close(fd))
		say("open %d: %s\n", i, strerrorname_np(errno));
}

static void open_to_write(int i)
{
	int fd = open(at("w"), O_WRONLY | O_CREAT, 0644);

	if (fd < 0 || pwrite(fd, "0123456789", 10, i % 100 * 10) != 10 || close(fd))
		say("open to write %d: %s\n", i, strerrorname_np(errno));
}

static void open_a_stream(int i)
{
	char line[32];
	FILE *f = fopen(at("f"), "r");

	if (!f || !fgets(line, sizeof line, f) || fclose(f))
		say("stream %d: %s\n", i, strerrorname_np(errno));
}

static void make_and_remove(int i)
{
	int fd = open(at("n"), O_WRONLY | O_CREAT | O_EXCL, 0644);

	if (fd < 0 || write(fd, "x", 1) != 1 || close(fd) || unlink(at("n")))
		say("make %d: %s\n", i, strerrorname_np(errno));
}

static void duplicate(int i)
{
	int fd = open(at("f"), O_RDONLY), other = dup(fd);

	if (other < 0 || dup2(other, fd) != fd || fcntl(fd, F_DUPFD, 100) != 100 || close(100) || close(fd) ||
	    close(other))
		say("dup %d: %s\n", i, strerrorname_np(errno));
}

static void look(int i)
{
	struct stat st;
	DIR *d = opendir(at("."));

	if (!d || !readdir(d) || closedir(d) || stat(at("f"), &st) || st.st_size != 6 ||
	    access(at("none"), F_OK) != -1)
		say("look %d: %s\n", i, strerrorname_np(errno));
}

CASE(opens_and_closes_without_growth)
{
	make("f", "hello\n");
	without_growth("open", rounds(), open_to_read);
	without_growth("stream", rounds() / 10, open_a_stream);
	without_growth("dup", rounds() / 10, duplicate);
	without_growth("look", rounds() / 10, look);
}

CASE(files_made_and_written_without_growth)
{
	without_growth("open to write", rounds() / 50, open_to_write);
	without_growth("make and remove", rounds() / 50, make_and_remove);
	show("w");
}

/* ---- threads ---- */

#define NR_THREADS 32
#define NR_BLOCKS 40
#define BLOCK 1000

static int one_fd;
static char f_path[PATH_MAX], log_path[PATH_MAX]; /* at() has one buffer for all threads */

static void *thread(void *arg)
{
	long me = (long)arg;
	char block[BLOCK], back[BLOCK], line[16];
	int log = open(log_path, O_WRONLY | O_APPEND | O_CREAT, 0644), len;
	struct stat st;

	for (long i = 0; i < NR_BLOCKS; i++) {
		off_t off = (i * NR_THREADS + me) * BLOCK;

		memset(block, 'A' + (me + i) % 26, BLOCK);
		if (pwrite(one_fd, block, BLOCK, off) != BLOCK)
			say("thread %ld: pwrite: %s\n", me, strerrorname_np(errno));
		if (pread(one_fd, back, BLOCK, off) != BLOCK || memcmp(block, back, BLOCK))
			say("thread %ld: reads something else\n", me);
		len = snprintf(line, sizeof line, "%02ld %02ld\n", me, i);
		if (write(log, line, len) != len)
			say("thread %ld: append: %s\n", me, strerrorname_np(errno));
		if (fstat(one_fd, &st) || st.st_size < off + BLOCK)
			say("thread %ld: size %lld\n", me, (long long)st.st_size);
		if (i % 10 == me % 10) {
			int fd = open(f_path, O_RDWR);

			if (fd < 0 || (me % 2 ? fsync(fd) : 0) || close(fd))
				say("thread %ld: open: %s\n", me, strerrorname_np(errno));
		}
	}
	close(log);
	return NULL;
}

CASE(threads_on_one_file)
{
	pthread_t t[NR_THREADS];
	char seen[NR_THREADS][NR_BLOCKS] = {0}, block[BLOCK];
	int me, i, lines = 0, wrong = 0;
	FILE *f;

	snprintf(f_path, sizeof f_path, "%s", at("f"));
	snprintf(log_path, sizeof log_path, "%s", at("log"));
	one_fd = rw("f");
	for (long n = 0; n < NR_THREADS; n++)
		pthread_create(&t[n], NULL, thread, (void *)n);
	for (int n = 0; n < NR_THREADS; n++)
		pthread_join(t[n], NULL);
	f = fopen(at("log"), "r");
	while (fscanf(f, "%d %d", &me, &i) == 2) {
		lines++;
		if (me >= 0 && me < NR_THREADS && i >= 0 && i < NR_BLOCKS)
			seen[me][i]++;
	}
	fclose(f);
	for (me = 0; me < NR_THREADS; me++) {
		for (i = 0; i < NR_BLOCKS; i++) {
			wrong += seen[me][i] != 1;
			pread(one_fd, block, BLOCK, (i * NR_THREADS + me) * BLOCK);
			wrong += block[0] != 'A' + (me + i) % 26 || block[BLOCK - 1] != block[0];
		}
	}
	say("%d lines, %d wrong\n", lines, wrong);
	unlink(at("log"));
}

/* One offset: each block lands once, whole. */
static void *writer(void *arg)
{
	char block[100];

	memset(block, 'a' + (long)arg % 26, sizeof block);
	for (int i = 0; i < 50; i++)
		write(one_fd, block, sizeof block);
	return NULL;
}

CASE(threads_share_an_offset)
{
	pthread_t t[NR_THREADS];
	int torn = 0, count[26] = {0};
	char block[100];

	one_fd = rw("f");
	for (long n = 0; n < NR_THREADS; n++)
		pthread_create(&t[n], NULL, writer, (void *)n);
	for (int n = 0; n < NR_THREADS; n++)
		pthread_join(t[n], NULL);
	T(lseek(one_fd, 0, SEEK_CUR));
	T(lseek(one_fd, 0, SEEK_SET));
	while (read(one_fd, block, sizeof block) == sizeof block) {
		torn += block[0] != block[99] || block[50] != block[0];
		count[block[0] - 'a']++;
	}
	say("%d torn, %d of a, %d of z\n", torn, count[0], count[25]);
	unlink(at("f"));
}

/* ---- closing ---- */

/* As daemons do, in each way; what is open on 0 to 2 goes on. */
CASE(standard_output_survives_closing_the_rest)
{
	IN_CHILD({
		int fd = rw("out"), other = rw("other");

		dup2(fd, 1);
		printf("one ");
		fflush(stdout);
		write(other, "other", 5);
		for (long i = 3; i < 5000; i++)
			close(i);
		printf("two ");
		fflush(stdout);
		for (long i = 3; i < 5000; i++)
			syscall(SYS_close, i);
		write(1, "three ", 6);
		closefrom(3);
		system("echo child");
		close_range(3, ~0U, CLOSE_RANGE_UNSHARE);
		write(1, "five ", 5);
		printf("six");
		exit(0);
	});
	show("out");
	show("other");
}

/* Numbers that a program puts descriptors onto without asking. */
CASE(descriptors_put_onto_any_number)
{
	int fd = rw("f"), failed = 0;

	write(fd, "x", 1);
	for (int to = 10; to < 300; to++)
		failed += dup2(fd, to) != to;
	for (int to = 10; to < 300; to++) {
		failed += write(to, "y", 1) != 1;
		failed += close(to) != 0;
	}
	say("%d failed\n", failed);
	show("f");
}
