/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random operations on one file below a mapped directory, on the same file in a plain one, and on a model in
 * memory: results, errors, offsets, sizes and bytes must agree. A failure is shrunk to a short sequence and
 * printed.
 *
 *   model [-n OPS] [-s SEED] DIR PLAIN_DIR
 *   model -p PROCESSES [-n BLOCKS] [-s SEED] DIR PLAIN_DIR    processes write disjoint stripes, then each
 *                                                             reads all of it
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if !__GLIBC_PREREQ(2, 32)
#define strerrorname_np(err) strerror(err)
#endif

enum { nr_slots = 4, max_size = 600000, shrink_s = 40 };

enum kind {
	WRITE,
	PWRITE,
	WRITEV,
	PWRITEV,
	READ,
	PREAD,
	READV,
	TRUNCATE,
	FTRUNCATE,
	SEEK,
	SEEK_FROM_END,
	REOPEN,
	FSYNC,
	DUP,
	CHILD_WRITES,
	CHILD_OPENS_AND_WRITES,
	CHILD_READS,
	EXEC_WRITES,
	RENAME,
	LINK,
	FALLOCATE,
	STAT,
	APPEND,
	STREAM,
	VERIFY,
	COPY_RANGE,
	PRIVATE_MAP,
	/* from here on what moves a file into its body: in every other sequence */
	MOVE_RANGE,
	MAP,
	MAP_STORE,
	MAP_LOAD,
	nr_kinds
};

static const char *const kind_names[] = { "write",	   "pwrite",
					  "writev",	   "pwritev",
					  "read",	   "pread",
					  "readv",	   "truncate",
					  "ftruncate",	   "seek",
					  "seek from end", "reopen",
					  "fsync",	   "dup",
					  "child writes",  "child opens and writes",
					  "child reads",   "exec writes",
					  "rename",	   "link and unlink",
					  "fallocate",	   "stat",
					  "append",	   "stream",
					  "verify",	   "copy_file_range",
					  "private map",   "collapse or insert",
					  "map",	   "store in map",
					  "load from map" };
static const int weights[nr_kinds] = { 14, 14, 4, 4, 10, 12, 4, 2, 5, 6, 3, 8, 3, 3, 3, 3,
				       2,  1,  2, 1, 3,	 4,  4, 3, 3, 4, 3, 2, 1, 4, 4 };

struct op {
	enum kind kind;
	int slot, len, arg;
	long off;
	unsigned fill;
};

/* Shared with the child that runs a sequence. */
static struct verdict {
	int at; /* the operation that it is at */
	bool bad;
	char why[400];
} *verdict;

static char paths[2][2][512]; /* [plain][name] */
static int current;            /* which of the names the file has */
static int fds[2][nr_slots], flags_of[nr_slots];
static unsigned char *maps[2]; /* shared, of the first map_len bytes, or NULL */
static long map_len;
static unsigned char model[max_size + 1];
static long model_size;
static bool strict;

static uint64_t random_state;
static unsigned rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1dull >> 33;
}

static void seed_with(uint64_t seed)
{
	random_state = seed * 0x9e3779b97f4a7c15ull + 88172645463325252ull;
	for (int i = 0; i < 8; i++)
		rnd();
}

__attribute__((format(printf, 1, 2))) static void differ(const char *format, ...)
{
	va_list args;

	if (verdict->bad)
		return;
	va_start(args, format);
	vsnprintf(verdict->why, sizeof verdict->why, format, args);
	va_end(args);
	verdict->bad = true;
	_exit(1);
}

static void fill(unsigned char *buf, const struct op *op)
{
	for (int i = 0; i < op->len; i++)
		buf[i] = op->len < 64 ? 'a' + op->fill % 26 :
					(unsigned char)((op->fill + i) * 2654435761u >> 16);
}

/* The same system call on both sides: @ret holds what each returned, @err its errno. */
static long same(const struct op *op, const long ret[2], const int err[2])
{
	if (ret[0] != ret[1] || (ret[0] < 0 && err[0] != err[1]))
		differ("%s returned %ld %s, plain %ld %s", kind_names[op->kind], ret[0],
		       ret[0] < 0 ? strerrorname_np(err[0]) : "", ret[1],
		       ret[1] < 0 ? strerrorname_np(err[1]) : "");
	return ret[0];
}

static void model_write(long off, const unsigned char *buf, long len)
{
	if (off > model_size)
		memset(model + model_size, 0, off - model_size);
	memcpy(model + off, buf, len);
	if (off + len > model_size)
		model_size = off + len;
}

static void model_truncate(long size)
{
	if (size > model_size)
		memset(model + model_size, 0, size - model_size);
	model_size = size;
}

static void check_bytes(const char *what, const unsigned char *got, long off, long len)
{
	long i;

	if (off + len > model_size && len > 0)
		differ("%s: %ld bytes at %ld, the size is %ld", what, len, off, model_size);
	if (len <= 0 || !memcmp(got, model + off, len))
		return;
	for (i = 0; got[i] == model[off + i]; i++)
		;
	differ("%s of %ld at %ld: byte %ld is %#x, not %#x", what, len, off, off + i, got[i], model[off + i]);
}

static void verify(const char *what)
{
	static unsigned char buf[max_size + 1];
	struct stat st;
	int fd = open(paths[0][current], O_RDONLY);
	long n, len = 0;

	if (fd < 0)
		differ("%s: open: %s", what, strerrorname_np(errno));
	while ((n = read(fd, buf + len, sizeof buf - len)) > 0)
		len += n;
	if (n < 0)
		differ("%s: read: %s", what, strerrorname_np(errno));
	if (len != model_size)
		differ("%s: %ld bytes read, the size is %ld", what, len, model_size);
	if (fstat(fd, &st) || st.st_size != model_size)
		differ("%s: fstat says %ld bytes, not %ld", what, (long)st.st_size, model_size);
	check_bytes(what, buf, 0, len);
	close(fd);
}

/* What other processes released becomes visible by a sync; with PLFS_CONSISTENCY=posix without. */
static void acquire(void)
{
	for (int i = 0; i < nr_slots && !strict; i++)
		if (fds[0][i] >= 0)
			fsync(fds[0][i]);
}

static void await(pid_t pid, const char *what)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		differ("%s: the child ended with %#x", what, status);
	acquire();
}

static long offset_of(int slot) { return lseek(fds[1][slot], 0, SEEK_CUR); }

/* Where a write through @slot goes, and whether it may. */
static long target_of(int slot, bool positional, long off)
{
	if (flags_of[slot] & O_APPEND)
		return model_size;
	return positional ? off : offset_of(slot);
}

static bool fits(long off, long len) { return off + len <= max_size; }

static void do_op(const struct op *op)
{
	static unsigned char data[max_size], got[2][max_size];
	struct iovec iov[3];
	struct stat st[2];
	long ret[2] = {0}, off;
	int err[2] = {0}, s = op->slot, third = op->len / 3;
	pid_t pid;

#define BOTH(call) for (int p = 0; p < 2; p++) { errno = 0; ret[p] = (call); err[p] = errno; }
	switch (op->kind) {
	case WRITE: case WRITEV:
		off = target_of(s, false, 0);
		if (!fits(off < 0 ? 0 : off, op->len))
			return;
		fill(data, op);
		iov[0] = (struct iovec){data, third}, iov[1] = (struct iovec){data + third, third};
		iov[2] = (struct iovec){data + 2 * third, op->len - 2 * third};
		BOTH(op->kind == WRITE ? write(fds[p][s], data, op->len) : writev(fds[p][s], iov, 3));
		if (same(op, ret, err) > 0)
			model_write(off, data, ret[0]);
		break;
	case PWRITE: case PWRITEV:
		off = target_of(s, true, op->off);
		if (!fits(off, op->len))
			return;
		fill(data, op);
		iov[0] = (struct iovec){data, third}, iov[1] = (struct iovec){data + third, op->len - third};
		BOTH(op->kind == PWRITE ? pwrite(fds[p][s], data, op->len, op->off) :
					  pwritev(fds[p][s], iov, 2, op->off));
		if (same(op, ret, err) > 0)
			model_write(off, data, ret[0]);
		break;
	case READ: case READV:
		off = offset_of(s);
		for (int p = 0; p < 2; p++) {
			iov[0] = (struct iovec){ got[p], third },
			iov[1] = (struct iovec){ got[p] + third, op->len - third };
			errno = 0;
			ret[p] = op->kind == READ ? read(fds[p][s], got[p], op->len) :
						    readv(fds[p][s], iov, 2);
			err[p] = errno;
		}
		same(op, ret, err);
		check_bytes(kind_names[op->kind], got[0], off, ret[0]);
		check_bytes("the plain file, or the model", got[1], off, ret[0]);
		break;
	case PREAD:
		BOTH(pread(fds[p][s], got[p], op->len, op->off));
		same(op, ret, err);
		check_bytes("pread", got[0], op->off, ret[0]);
		break;
	case TRUNCATE:
		BOTH(truncate(paths[p][current], op->off));
		if (same(op, ret, err) == 0)
			model_truncate(op->off);
		break;
	case FTRUNCATE:
		off = op->arg % 3 ? op->off : op->arg % 2 ? 0 : model_size / 2;
		BOTH(ftruncate(fds[p][s], off));
		if (same(op, ret, err) == 0)
			model_truncate(off);
		break;
	case SEEK:
		BOTH(lseek(fds[p][s], op->off, SEEK_SET));
		same(op, ret, err);
		break;
	case SEEK_FROM_END:
		BOTH(lseek(fds[p][s], op->arg % 3 ? -(op->off % 1000) : op->arg % 200,
			   op->arg % 2 ? SEEK_END : SEEK_CUR));
		same(op, ret, err);
		break;
	case REOPEN: {
		static const int modes[] = { O_RDWR,	      O_RDWR,	O_RDWR | O_APPEND,
					     O_WRONLY,	      O_RDONLY, O_WRONLY | O_APPEND,
					     O_RDWR | O_CREAT };
		int flags = op->arg % 8 == 7 ? modes[op->fill % 4] | O_TRUNC : modes[op->arg % 7];

		if (fds[0][s] >= 0)
			BOTH(close(fds[p][s]));
		same(op, ret, err);
		BOTH(fds[p][s] = open(paths[p][current], flags, 0644));
		if (ret[0] < 0 || ret[1] < 0)
			differ("open: %s", strerrorname_np(err[ret[0] >= 0]));
		flags_of[s] = flags;
		if (flags & O_TRUNC)
			model_size = 0;
		break;
	}
	case FSYNC:
		BOTH(op->arg % 2 ? fsync(fds[p][s]) : fdatasync(fds[p][s]));
		same(op, ret, err);
		break;
	case DUP: {
		int to = op->arg % nr_slots;

		if (to == s || fds[0][s] < 0)
			return;
		for (int p = 0; p < 2; p++) {
			if (fds[p][to] >= 0)
				close(fds[p][to]);
			fds[p][to] = dup(fds[p][s]);
		}
		flags_of[to] = flags_of[s];
		break;
	}
	case CHILD_WRITES:
		off = target_of(s, op->arg % 2, op->off);
		if (fds[0][s] < 0 || !fits(off, op->len))
			return;
		fill(data, op);
		pid = fork();
		if (pid == 0) {
			BOTH(op->arg % 2 ? pwrite(fds[p][s], data, op->len, op->off) :
					   write(fds[p][s], data, op->len));
			same(op, ret, err);
			_exit(0);
		}
		await(pid, "child writes");
		if ((flags_of[s] & O_ACCMODE) != O_RDONLY)
			model_write(off, data, op->len);
		break;
	case CHILD_OPENS_AND_WRITES:
		if (!fits(op->arg % 2 ? model_size : op->off, op->len))
			return;
		fill(data, op);
		pid = fork();
		if (pid == 0) {
			for (int p = 0; p < 2; p++) {
				int fd = open(paths[p][current], O_WRONLY | (op->arg % 2 ? O_APPEND : 0));
				ret[p] = op->arg % 2 ? write(fd, data, op->len) :
						       pwrite(fd, data, op->len, op->off);
				err[p] = errno;
				if (op->arg % 3)
					close(fd);
				if (op->arg % 5 == 0)
					ret[p] = truncate(paths[p][current], op->off);
			}
			same(op, ret, err);
			if (op->arg % 7)
				_exit(0);
			exit(0);
		}
		await(pid, "child opens and writes");
		model_write(op->arg % 2 ? model_size : op->off, data, op->len);
		if (op->arg % 5 == 0)
			model_truncate(op->off);
		break;
	case CHILD_READS:
		pid = fork();
		if (pid == 0) {
			verify("child");
			BOTH(pread(fds[p][s], got[p], op->len, op->off));
			same(op, ret, err);
			check_bytes("child's pread", got[0], op->off, ret[0]);
			_exit(0);
		}
		await(pid, "child reads");
		break;
	case EXEC_WRITES:
		off = target_of(s, false, 0);
		if (fds[0][s] < 0 || (flags_of[s] & O_ACCMODE) == O_RDONLY || !fits(off, 8))
			return;
		for (int p = 0; p < 2; p++) {
			pid = fork();
			if (pid == 0) {
				dup2(fds[p][s], 1);
				execl("/bin/echo", "echo", "by exec", NULL);
				_exit(9);
			}
			await(pid, "exec writes");
		}
		model_write(off, (const unsigned char *)"by exec\n", 8);
		break;
	case RENAME:
		BOTH(rename(paths[p][current], paths[p][!current]));
		same(op, ret, err);
		current = !current;
		break;
	case FALLOCATE: {
		static const int modes[] = { 0, FALLOC_FL_KEEP_SIZE,
					     FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					     FALLOC_FL_ZERO_RANGE };
		int mode = modes[op->arg % 4];
		long end = op->off + op->len;

		if (!fits(op->off, op->len))
			return;
		BOTH(fallocate(fds[p][s], mode, op->off, op->len));
		/* a plain file system without it: nothing to compare with */
		if (ret[1] < 0 && err[1] == EOPNOTSUPP)
			differ("the plain file system has no fallocate mode %d", mode);
		if (same(op, ret, err) < 0)
			break;
		if ((mode == 0 || mode == FALLOC_FL_ZERO_RANGE) && end > model_size)
			model_truncate(end);
		if (mode > FALLOC_FL_KEEP_SIZE && op->off < model_size)
			memset(model + op->off, 0, (end < model_size ? end : model_size) - op->off);
		break;
	}
	case STAT:
		BOTH(fds[p][s] >= 0 && op->arg % 2 ? fstat(fds[p][s], &st[p]) :
						     stat(paths[p][current], &st[p]));
		same(op, ret, err);
		if (st[0].st_size != st[1].st_size || st[0].st_mode != st[1].st_mode ||
		    st[0].st_nlink != st[1].st_nlink)
			differ("stat: size %ld mode %o links %ld, plain %ld %o %ld", (long)st[0].st_size,
			       st[0].st_mode, (long)st[0].st_nlink, (long)st[1].st_size, st[1].st_mode,
			       (long)st[1].st_nlink);
		BOTH(lseek(fds[p][s], 0, SEEK_CUR));
		same(op, ret, err);
		break;
	case APPEND:
		if (!fits(model_size, op->len))
			return;
		fill(data, op);
		for (int p = 0; p < 2; p++) {
			int fd = open(paths[p][current], O_WRONLY | O_APPEND);
			ret[p] = write(fd, data, op->len);
			err[p] = errno;
			close(fd);
		}
		if (same(op, ret, err) > 0)
			model_write(model_size, data, ret[0]);
		break;
	case STREAM:
		off = op->off < model_size ? op->off : model_size;
		if (!fits(off, op->len))
			return;
		fill(data, op);
		for (int p = 0; p < 2; p++) {
			FILE *f = fopen(paths[p][current], "r+");
			fseek(f, off, SEEK_SET);
			memset(got[p], 0, 100);
			ret[p] = fread(got[p], 1, 100, f);
			fseek(f, off, SEEK_SET);
			ret[p] += fwrite(data, 1, op->len, f);
			ret[p] += fclose(f) * 1000000;
			err[p] = 0;
		}
		same(op, ret, err);
		check_bytes("stream", got[0], off, ret[0] - op->len);
		model_write(off, data, op->len);
		break;
	case VERIFY:
		verify("verify");
		break;
	case LINK:
		BOTH(link(paths[p][current], paths[p][!current]));
		same(op, ret, err);
		BOTH(unlink(paths[p][current]));
		same(op, ret, err);
		current = !current;
		break;
	case COPY_RANGE: {
		int to = op->arg % nr_slots;
		off_t from_off[2] = {op->off, op->off}, to_off[2] = {op->arg * 97, op->arg * 97};

		if (!fits(to_off[0], op->len))
			return;
		BOTH(copy_file_range(fds[p][s], &from_off[p], fds[p][to], &to_off[p], op->len, 0));
		if (same(op, ret, err) > 0) {
			memcpy(data, model + op->off, ret[0]);
			model_write(op->arg * 97, data, ret[0]);
		}
		if (from_off[0] != from_off[1] || to_off[0] != to_off[1])
			differ("copy_file_range left the offsets %ld, %ld", (long)from_off[0],
			       (long)to_off[0]);
		break;
	}
	case PRIVATE_MAP:
		off = op->off & ~4095;
		if (off + op->len > model_size)
			return;
		for (int p = 0; p < 2; p++) {
			unsigned char *m =
				mmap(NULL, op->len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fds[p][s], off);

			ret[p] = m == MAP_FAILED ? -1 : 0;
			err[p] = errno;
			if (ret[p])
				continue;
			memcpy(got[p], m, op->len);
			memset(m, 'x', op->len);
			munmap(m, op->len);
		}
		if (same(op, ret, err) == 0)
			check_bytes("private map", got[0], off, op->len);
		break;
	case MOVE_RANGE: {
		int mode = op->arg % 2 ? FALLOC_FL_COLLAPSE_RANGE : FALLOC_FL_INSERT_RANGE;
		long from = op->off & ~4095, len = (op->len + 4095) & ~4095;

		if (mode == FALLOC_FL_INSERT_RANGE && !fits(model_size, len))
			return;
		BOTH(fallocate(fds[p][s], mode, from, len));
		if (same(op, ret, err) < 0)
			break;
		if (mode == FALLOC_FL_COLLAPSE_RANGE) {
			memmove(model + from, model + from + len, model_size - from - len);
			model_size -= len;
		} else {
			memmove(model + from + len, model + from, model_size - from);
			memset(model + from, 0, len);
			model_size += len;
		}
		break;
	}
	case MAP:
		if (maps[0])
			munmap(maps[0], map_len);
		if (maps[1])
			munmap(maps[1], map_len);
		maps[0] = maps[1] = NULL;
		map_len = op->off + op->len;
		for (int p = 0; p < 2; p++) {
			maps[p] = mmap(NULL, map_len, PROT_READ | PROT_WRITE, MAP_SHARED, fds[p][s], 0);
			ret[p] = maps[p] == MAP_FAILED ? -1 : 0;
			err[p] = errno;
			if (ret[p])
				maps[p] = NULL;
		}
		same(op, ret, err);
		break;
	case MAP_STORE: case MAP_LOAD:
		if (!maps[0] || op->off + op->len > map_len || op->off + op->len > model_size)
			return;
		fill(data, op);
		for (int p = 0; p < 2 && op->kind == MAP_STORE; p++)
			memcpy(maps[p] + op->off, data, op->len);
		if (op->kind == MAP_STORE)
			model_write(op->off, data, op->len);
		memcpy(got[0], maps[0] + op->off, op->len);
		check_bytes(kind_names[op->kind], got[0], op->off, op->len);
		break;
	case nr_kinds:
		break;
	}
#undef BOTH
}

/* A copy that loses its name while it is open. */
static void without_a_name(void)
{
	static unsigned char buf[max_size + 1];
	char name[600];
	int fd, from = open(paths[0][current], O_RDONLY);
	long n;

	snprintf(name, sizeof name, "%s-gone", paths[0][0]);
	fd = open(name, O_RDWR | O_CREAT, 0644);
	for (long off = 0; off < model_size; off += n)
		if ((n = copy_file_range(from, NULL, fd, NULL, model_size - off, 0)) <= 0)
			differ("copy to another file: %ld %s", n, strerrorname_np(errno));
	unlink(name);
	if (pwrite(fd, "gone", 4, model_size / 2) != 4 || ftruncate(fd, model_size + 7) ||
	    pread(fd, buf, sizeof buf, 0) != model_size + 7)
		differ("a file without a name: %s", strerrorname_np(errno));
	if (memcmp(buf + model_size / 2, "gone", 4) || (model_size > 4 && buf[model_size + 6]))
		differ("a file without a name: wrong bytes");
	check_bytes("a file without a name", buf, 0, model_size / 2);
	if (lseek(fd, 0, SEEK_END) != model_size + 7 || close(fd) || close(from))
		differ("a file without a name: its end");
}

static void run_ops(const struct op *ops, int nr)
{
	static const int flags = O_RDWR | O_CREAT | O_TRUNC;

	alarm(300); /* hangs; a loaded machine may take a minute */
	for (int p = 0; p < 2; p++) {
		unlink(paths[p][0]);
		unlink(paths[p][1]);
		fds[p][0] = open(paths[p][0], flags, 0644);
		for (int s = 1; s < nr_slots; s++)
			fds[p][s] = -1;
	}
	if (fds[0][0] < 0 || fds[1][0] < 0)
		differ("open: %s", strerrorname_np(errno));
	flags_of[0] = flags & O_ACCMODE;
	for (verdict->at = 0; verdict->at < nr; verdict->at++)
		do_op(&ops[verdict->at]);
	verify("at the end");
	without_a_name();
	for (int s = 0; s < nr_slots; s++)
		if (fds[0][s] >= 0 && close(fds[0][s]))
			differ("close: %s", strerrorname_np(errno));
	verify("after all closes");
	unlink(paths[0][current]);
}

/* Whether the sequence goes wrong; says where and why in *verdict. */
static bool fails(const struct op *ops, int nr)
{
	int status;
	pid_t pid;

	memset(verdict, 0, sizeof *verdict);
	pid = fork();
	if (pid == 0) {
		run_ops(ops, nr);
		exit(0);
	}
	waitpid(pid, &status, 0);
	if (status && !verdict->bad) {
		verdict->bad = true;
		snprintf(verdict->why, sizeof verdict->why,
			 WIFSIGNALED(status) ? "ended by signal %d" : "ended with %d",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	}
	return verdict->bad;
}

static void print_ops(const struct op *ops, int nr)
{
	for (int i = 0; i < nr; i++)
		printf("%4d %-22s slot %d  off %-6ld len %-6d arg %-3d fill %u\n", i, kind_names[ops[i].kind],
		       ops[i].slot, ops[i].off, ops[i].len, ops[i].arg, ops[i].fill);
}

static void shrink(struct op *ops, int nr)
{
	struct op *try = malloc(nr * sizeof *try);
	time_t end = time(NULL) + shrink_s;

	if (verdict->at < nr)
		nr = verdict->at + 1;
	for (int chunk = nr / 2; chunk >= 1; chunk /= 2)
		for (int i = 0; i + chunk <= nr && time(NULL) < end;) {
			memcpy(try, ops, i * sizeof *ops);
			memcpy(try + i, ops + i + chunk, (nr - i - chunk) * sizeof *ops);
			if (fails(try, nr - chunk)) {
				nr = verdict->at < nr - chunk ? verdict->at + 1 : nr - chunk;
				memcpy(ops, try, nr * sizeof *ops);
			} else {
				i += chunk;
			}
		}
	if (!fails(ops, nr))
		printf("(does not fail every time)\n");
	print_ops(ops, nr);
	printf("%s\n", verdict->why);
}

static void make_ops(struct op *ops, int nr, int nr_used_kinds)
{
	static const int lens[] = {1, 7, 47, 100, 512, 1000, 4096, 5000, 20000, 65536, 150000};
	int total = 0;

	for (int k = 0; k < nr_used_kinds; k++)
		total += weights[k];
	for (int i = 0; i < nr; i++) {
		int pick = rnd() % total, k = 0;

		while (pick >= weights[k])
			pick -= weights[k++];
		ops[i] = (struct op){
			.kind = k, .slot = rnd() % nr_slots, .arg = rnd() % 840, .fill = rnd() % 1000
		};
		ops[i].len = lens[rnd() % (rnd() % 8 ? 8 : 11)];
		if (rnd() % 3 == 0)
			ops[i].len = 1 + rnd() % ops[i].len;
		ops[i].off = rnd() % (rnd() % 4 ? 30000 : 400000);
		if (rnd() % 3 == 0)
			ops[i].off &= ~511;
		/* A stride now and then, as checkpoints have it. */
		if (i > 1 && (k == PWRITE || k == PREAD) && rnd() % 2 == 0) {
			ops[i].kind = ops[i - 1].kind == PWRITE ? PWRITE : k;
			ops[i].len = ops[i - 1].len;
			ops[i].slot = ops[i - 1].slot;
			ops[i].off = (ops[i - 1].off + 3L * ops[i].len) % 400000;
		}
	}
}

static int random_ops(int nr, uint64_t seed)
{
	struct op *ops = malloc(nr * sizeof *ops);

	seed_with(seed);
	make_ops(ops, nr, seed % 2 ? MOVE_RANGE : nr_kinds);
	if (!fails(ops, nr))
		return 0;
	printf("seed %ju: operation %d of %d: %s\nshrunk to:\n", (uintmax_t)seed, verdict->at, nr,
	       verdict->why);
	fflush(stdout);
	shrink(ops, nr);
	return 1;
}

/* ---- stripes ---- */

static unsigned char stripe_byte(uint64_t seed, long off) { return (off * 2654435761u + seed * 97) >> 11; }

static void await_all(volatile int *count, int nr)
{
	__atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(count, __ATOMIC_SEQ_CST) < nr)
		usleep(500);
}

struct layout {
	int nr_procs, nr_blocks, block;
	uint64_t seed;
	bool sync, shuffled, twice;
	volatile int *barrier;
};

static int stripe_writer(const struct layout *l, int me)
{
	unsigned char *buf = malloc(l->block), *old = calloc(1, l->block), *got;
	int *order = malloc(l->nr_blocks * sizeof *order), fd = open(paths[0][0], O_RDWR | O_CREAT, 0644);
	long size = (long)l->block * l->nr_blocks * l->nr_procs, off, n;

	seed_with(l->seed * 1000 + me);
	for (int i = 0; i < l->nr_blocks; i++)
		order[i] = i;
	for (int i = l->nr_blocks - 1; i > 0 && l->shuffled; i--) {
		int j = rnd() % (i + 1), t = order[i];
		order[i] = order[j], order[j] = t;
	}
	for (int i = 0; i < l->nr_blocks; i++) {
		off = ((long)order[i] * l->nr_procs + me) * l->block;
		for (int b = 0; b < l->block; b++)
			buf[b] = stripe_byte(l->seed, off + b);
		if (l->twice && rnd() % 2 && pwrite(fd, old, l->block, off) != l->block)
			return printf("process %d: first pwrite at %ld: %s\n", me, off,
				      strerrorname_np(errno)),
			       1;
		if (pwrite(fd, buf, l->block, off) != l->block)
			return printf("process %d: pwrite at %ld: %s\n", me, off, strerrorname_np(errno)), 1;
	}
	if (l->sync ? fsync(fd) : close(fd))
		return printf("process %d: %s: %s\n", me, l->sync ? "fsync" : "close",
			      strerrorname_np(errno)),
		       1;
	await_all(l->barrier, l->nr_procs);
	if (l->sync ? fsync(fd) : (fd = open(paths[0][0], O_RDONLY)) < 0)
		return printf("process %d: %s\n", me, strerrorname_np(errno)), 1;
	if ((n = lseek(fd, 0, SEEK_END)) != size)
		return printf("process %d: the size is %ld, not %ld\n", me, n, size), 1;
	got = malloc(200000);
	for (off = 0; off < size; off += n) {
		n = pread(fd, got, 1 + rnd() % 200000, off);
		if (n <= 0)
			return printf("process %d: pread at %ld: %ld %s\n", me, off, n,
				      n ? strerrorname_np(errno) : ""),
			       1;
		for (long b = 0; b < n; b++)
			if (got[b] != stripe_byte(l->seed, off + b))
				return printf("process %d: byte %ld (of process %ld) is %#x, not %#x\n", me,
					      off + b, (off + b) / l->block % l->nr_procs, got[b],
					      stripe_byte(l->seed, off + b)),
				       1;
	}
	return 0;
}

static int stripes(int nr_procs, int nr_blocks, uint64_t seed)
{
	static const int blocks[] = {47, 512, 4096, 4099, 30001};
	volatile int *barrier = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status, bad = 0;

	for (int round = 0; round < 10 && !bad; round++) {
		struct layout l = { nr_procs,  nr_blocks,     blocks[round / 2], seed + round,
				    round % 2, round % 4 > 1, round % 3 == 1,	 barrier };

		if (l.block > 10000)
			l.nr_blocks = nr_blocks / 8 + 1;
		*barrier = 0;
		unlink(paths[0][0]);
		for (int p = 0; p < nr_procs; p++)
			if (fork() == 0)
				exit(stripe_writer(&l, p));
		while (wait(&status) > 0)
			bad |= status;
		if (bad)
			printf("stripes: %d processes, %d blocks of %d, seed %ju: %s%s%s\n", nr_procs,
			       l.nr_blocks, l.block, (uintmax_t)l.seed, l.sync ? "fsync" : "close",
			       l.shuffled ? ", shuffled" : "", l.twice ? ", twice" : "");
	}
	unlink(paths[0][0]);
	return bad != 0;
}

int main(int argc, char **argv)
{
	const char *consistency = getenv("PLFS_CONSISTENCY");
	int c, nr = 2000, nr_procs = 0;
	uint64_t seed = time(NULL);

	while ((c = getopt(argc, argv, "n:s:p:")) != -1)
		switch (c) {
		case 'n': nr = atoi(optarg); break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'p': nr_procs = atoi(optarg); break;
		default: return 2;
		}
	if (argc - optind != 2)
		return 2;
	strict = consistency && !strcmp(consistency, "posix");
	for (int p = 0; p < 2; p++) {
		mkdir(argv[optind + p], 0755);
		snprintf(paths[p][0], sizeof paths[p][0], "%s/a", argv[optind + p]);
		snprintf(paths[p][1], sizeof paths[p][1], "%s/b", argv[optind + p]);
	}
	verdict = mmap(NULL, sizeof *verdict, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return nr_procs ? stripes(nr_procs, nr, seed) : random_ops(nr, seed);
}
