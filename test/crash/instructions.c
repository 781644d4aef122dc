/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A kill can come between any two instructions. A process that writes is stepped through one by one; whenever
 * its live file has changed, the stopped state is read as a fresh reader would after a kill: it must be
 * readable, and hold every write that has returned. Exit code 77 where processes cannot be traced.
 */
#include "test/lib/scratch.h"

#include "core/base/bytes.h"
#include "core/file/file.h"
#include "core/dropping/live.h"

#include <sys/mman.h>
#include <sys/ptrace.h>

#define NR_WRITES 100

struct shared {
	int done; /* writes that have returned */
	char live[CONTAINER_PATH_LEN]; /* relative to the container */
	char container[64];
	struct container c;
};

static struct shared *shared;

/* Grows, strides, folds, overlaps, records of their own. */
static void shape(int i, off_t *off, size_t *len)
{
	*len = 40;
	switch (i / 10) {
	case 0:
		*off = i * 40; /* contiguous */
		break;
	case 1:
		*off = 1000 + i * 100; /* strided */
		break;
	case 2: /* elements in two pieces: folded */
		*off = 10000 + i / 2 * 200 + i % 2 * 40;
		break;
	case 3:
		*off = 20000 + i * i * 3; /* irregular */
		*len = 20 + (size_t)i % 3;
		break;
	case 4: /* pieces of pieces */
		*off = 30000 + i / 4 * 1000 + i % 4 * 40;
		break;
	case 5:
	case 6: /* rows of a block: runs that are nested */
		*off = 40000 + i / 4 * 1000 + i % 4 * 100;
		break;
	case 7:
	case 8: /* the same of elements in two pieces */
		*off = 50000 + i / 6 * 500 + i % 6 / 2 * 100 + i % 2 * 40;
		break;
	default:
		*off = 1000 + i * 7; /* over older ones */
		break;
	}
}

static void write_and_stop(void)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	plfs_pwrite(l.f, "x", 1, 100000); /* the log is made at full speed */
	memcpy(&shared->c, &l.f->ino->c, sizeof(shared->c));
	snprintf(shared->live, sizeof(shared->live), "%s",
		 l.f->ino->w.tail.live.path + strlen(shared->c.dir) + 1);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	for (int i = 0; i < NR_WRITES; i++) {
		char buf[64];
		off_t off;
		size_t len;

		shape(i, &off, &len);
		memset(buf, 'A' + i % 50, len);
		if (plfs_pwrite(l.f, buf, len, off) != (ssize_t)len)
			_exit(1);
		__atomic_store_n(&shared->done, i + 1, __ATOMIC_SEQ_CST);
	}
	raise(SIGSTOP);
	_exit(0);
}

/* Compare the file with the writes that have returned; the one under way may be seen or not. */
static bool look(int done)
{
	enum { LEN = 60000 };
	static unsigned char model[LEN], next[LEN], buf[LEN];
	struct lfile l = lopen("a", O_RDONLY);
	ssize_t n = plfs_pread(l.f, buf, LEN, 0);
	bool ok = n == LEN;

	lclose(&l);
	memset(model, 0, LEN);
	for (int i = 0; i <= done && i < NR_WRITES; i++) {
		off_t off;
		size_t len;

		if (i == done)
			memcpy(next, model, LEN);
		shape(i, &off, &len);
		memset((i == done ? next : model) + off, 'A' + i % 50, len);
	}
	if (done == NR_WRITES)
		memcpy(next, model, LEN);
	for (int i = 0; i < LEN && ok; i++) {
		ok = buf[i] == model[i] || buf[i] == next[i];
		if (!ok)
			fprintf(stderr, "wrong byte at %d\n", i);
	}
	if (!ok)
		fprintf(stderr, "after %d writes: read %zd\n", done, n);
	return ok;
}

int main(void)
{
	static uint8_t before[4096 + 64 * INDEX_RECORD_LEN], now[sizeof(before)];
	long steps = 0, looks = 0;
	char path[PATH_MAX];
	int status, fd, failures = 0;
	pid_t pid;

	scratch_setup();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = fork_child();
	if (!pid)
		write_and_stop();
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
		fprintf(stderr, "instructions: the writer ended: %#x\n", status);
		return 1;
	}
	if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0) && errno == EPERM) {
		kill(pid, SIGKILL);
		scratch_remove();
		return 77;
	}
	snprintf(path, sizeof(path), "%s/%s/%s", scratch, shared->c.dir, shared->live);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		die("%s", path);
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP &&
	       failures < 5) {
		steps++;
		if (pread(fd, now, sizeof(now), 0) != sizeof(now))
			die("pread");
		if (memcmp(before, now, sizeof(now))) {
			looks++;
			failures += !look(__atomic_load_n(&shared->done, __ATOMIC_SEQ_CST));
			memcpy(before, now, sizeof(now));
		}
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0))
			die("singlestep");
	}
	kill(pid, SIGKILL);
	printf("%ld steps, %ld states, %d writes, %d failures\n", steps, looks, shared->done, failures);
	if (shared->done != NR_WRITES && !failures)
		die("the writer stopped early: %#x", status);
	scratch_remove();
	return failures != 0;
}
