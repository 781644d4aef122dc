/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fill HOW FILE RANKS LEN TIMES [AT COMMAND [THEN]]: RANKS processes write one file in elements of LEN bytes,
 * each TIMES of them or until a call fails. HOW is
 *
 *   strided   element i of rank r at (i * RANKS + r) * LEN
 *   append    with O_APPEND, to a file for each rank
 *   again     the same few elements over and over, each time other bytes
 *   synced    strided, with an fsync() after every 16th
 *
 * After AT elements of each rank, or where writing failed, COMMAND is run by rank 0, and THEN at the end,
 * after which each writes some more. What is printed is what each call of the ranks said, "write: ENOSPC", in
 * the order of their first appearance; who compares with a plain directory compares these lines. Every
 * element of whose write it was said that it was done is then read, through the same descriptors and by
 * another process: the bytes must be right or, only if "lost" is told, the read must fail. Exit code 1: wrong
 * bytes.
 */
#include "../../lib/job.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#if !__GLIBC_PREREQ(2, 32)
static const char *strerrorname_np(int err) /* those that the cases look for */
{
	return err == ENOSPC ? "ENOSPC" : err == EDQUOT ? "EDQUOT" : err == EIO ? "EIO" :
	       err == EROFS  ? "EROFS"  : strerror(err);
}
#endif

#define MAX_TIMES (1 << 20)
#define WINDOW 16 /* elements of "again" */
#define MORE 64   /* elements at the end, up to 4 MiB */

static const char *how, *file;
static int ranks, rank;
static long len, times, at = -1;
static const char *command, *then;

/* Of each rank: how often each element was written, as far as that was said to be done. */
static struct shared {
	int at_gate[8];
	int wrong, lost;
	char said[4096];
	unsigned char rounds[];
} *shared;

static const char *name_of(int err)
{
	return err ? strerrorname_np(err) : "ok";
}

/* One line of each sort. */
static void said(const char *what, int err)
{
	char line[64];

	snprintf(line, sizeof(line), "%s: %s\n", what, name_of(err));
	if (!strstr(shared->said, line) && strlen(shared->said) + sizeof(line) < sizeof(shared->said))
		strcat(shared->said, line);
}

/* All ranks come to here. */
static void gate(int no)
{
	__atomic_add_fetch(&shared->at_gate[no], 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&shared->at_gate[no], __ATOMIC_SEQ_CST) < ranks)
		usleep(1000);
}

/* By who has started us, for whom there is no library. */
static void run(const char *what)
{
	char path[4096], answer = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/ask", getenv("ASK"));
	fd = open(path, O_WRONLY);
	if (fd < 0 || dprintf(fd, "%s\n", what) < 0 || close(fd))
		die("%s", path);
	snprintf(path, sizeof(path), "%s/answer", getenv("ASK"));
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, &answer, 1) != 1 || answer != '0')
		die("%s: exit code %c", what, answer);
	close(fd);
}

static bool is(const char *which)
{
	return !strcmp(how, which);
}

static long slot_of(long i)
{
	return is("again") ? i % WINDOW : i;
}

static off_t where(long slot)
{
	return is("append") ? slot * len : (slot * ranks + rank) * len;
}

static unsigned char *round_of(long slot)
{
	return &shared->rounds[(long)rank * (MAX_TIMES + MORE) + slot];
}

static int open_file(int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), is("append") ? "%s.%d" : "%s", file, rank);
	fd = open(path, flags, 0644);
	if (fd < 0)
		said("open", errno);
	return fd;
}

/* Element @i; 0 or an errno. */
static int write_one(int fd, long i, char *buf)
{
	long slot = slot_of(i), done = 0;
	unsigned char round = (unsigned char)(*round_of(slot) % 250 + 1);

	pattern_fill(buf, (size_t)len, (uint64_t)where(slot), round);
	while (done < len) {
		ssize_t n = is("append") ? write(fd, buf + done, (size_t)(len - done)) :
					   pwrite(fd, buf + done, (size_t)(len - done), where(slot) + done);

		if (n < 0) {
			int err = errno;

			if (done && is("append") && ftruncate(fd, where(slot))) /* the next one goes there */
				said("ftruncate", errno);
			else if (done) /* neither one nor the other */
				*round_of(slot) = 255;
			return err;
		}
		done += n;
	}
	*round_of(slot) = round;
	return 0;
}

/* Returns the number of elements. */
static long write_some(int fd, long first, long nr, char *buf)
{
	long i;
	int err = 0;

	for (i = first; i < first + nr && !err; i++) {
		err = write_one(fd, i, buf);
		if (!err && is("synced") && i % 16 == 15) {
			int bad = fsync(fd) ? errno : 0;

			said("fsync", bad);
			err = bad;
		}
	}
	said("write", err);
	return err && is("append") ? i - 1 : i; /* whatever that was, it is not there */
}

static void check(int fd, long nr, char *buf)
{
	for (long slot = 0; slot < (is("again") ? WINDOW : nr); slot++) {
		unsigned char round = *round_of(slot);
		ssize_t n;

		if (!round || round == 255)
			continue;
		n = pread(fd, buf, (size_t)len, where(slot));
		if (n < 0) {
			shared->lost++;
			said("read", errno);
		} else if (n < len ||
			   pattern_check(buf, (size_t)n, (uint64_t)where(slot), round) != (size_t)len) {
			fprintf(stderr,
				"rank %d, element %ld, round %d at %lld: %zd bytes, wrong from %zu on\n",
				rank, slot, round, (long long)where(slot), n,
				n > 0 ? pattern_check(buf, (size_t)n, (uint64_t)where(slot), round) : 0);
			shared->wrong++;
		}
	}
}

static int be_rank(void)
{
	static char few[4096]; /* with little memory there may be no more */
	char *buf = len <= (long)sizeof(few) ? few : malloc((size_t)len);
	sigset_t all, now;
	long first = at >= 0 && at < times ? at : times, nr;
	int fd = open_file(O_RDWR | O_CREAT | (is("append") ? O_APPEND : 0));

	if (fd < 0)
		return 0;
	sigfillset(&all); /* as threads that only do I/O are started */
	sigprocmask(SIG_BLOCK, &all, NULL);
	if (sigprocmask(SIG_BLOCK, NULL, &now) || !sigismember(&now, SIGBUS) || !sigismember(&now, SIGTERM))
		die("the mask");
	nr = write_some(fd, 0, first, buf);
	gate(0);
	if (command && !rank)
		run(command);
	gate(1);
	if (at >= 0 && nr < times)
		nr = write_some(fd, nr, times - nr, buf);
	gate(2);
	check(fd, nr, buf);
	gate(3);
	if (then && !rank)
		run(then);
	gate(4);
	if (then) {
		nr = write_some(fd, nr, MORE * len > 4 << 20 ? (4 << 20) / len : MORE, buf);
		check(fd, nr, buf);
	}
	said("fsync", fsync(fd) ? errno : 0);
	said("close", close(fd) ? errno : 0);
	gate(5);
	fd = open_file(O_RDONLY);
	if (fd >= 0)
		check(fd, nr, buf);
	return 0;
}

int main(int argc, char **argv)
{
	int status, failed = 0;

	if (argc < 6)
		die("usage: fill HOW FILE RANKS LEN TIMES [AT COMMAND [THEN]]");
	how = argv[1];
	file = argv[2];
	ranks = atoi(argv[3]);
	len = atol(argv[4]);
	times = atol(argv[5]);
	at = argc > 6 ? atol(argv[6]) : -1;
	command = argc > 7 && *argv[7] ? argv[7] : NULL;
	then = argc > 8 ? argv[8] : NULL;
	if (times > MAX_TIMES)
		die("TIMES");
	shared = mmap(NULL, sizeof(*shared) + (size_t)ranks * (MAX_TIMES + MORE), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	for (rank = 0; rank < ranks; rank++)
		if (!fork())
			_exit(be_rank());
	for (rank = 0; rank < ranks; rank++) {
		if (wait(&status) < 0 || WIFSIGNALED(status) || WEXITSTATUS(status)) {
			printf("a rank ended with %s %d\n", WIFSIGNALED(status) ? "signal" : "exit code",
			       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
			failed = 1;
			kill(0, SIGTERM);
		}
	}
	fputs(shared->said, stdout);
	if (shared->lost)
		printf("lost: %d\n", shared->lost);
	if (shared->wrong)
		printf("wrong: %d\n", shared->wrong);
	return failed || shared->wrong;
}
