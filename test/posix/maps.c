/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory maps: private and shared, read and written, seen by other maps, by read() and write(), by other
 * descriptors and by other processes, before and after the file has been written to a log.
 */
#include "posix.h"

#define PAGE 4096L

/* A file of @pages pages, byte i being 'a' + i / PAGE % 26 up to the last @less bytes; opened O_RDWR. */
static int made(const char *name, long pages, long less)
{
	int fd = open(at(name), O_RDWR | O_CREAT | O_TRUNC, 0644);
	char *buf = malloc((size_t)(pages * PAGE));

	for (long i = 0; i < pages * PAGE; i++)
		buf[i] = (char)('a' + i / PAGE % 26);
	T(write(fd, buf, (size_t)(pages * PAGE - less)));
	free(buf);
	return fd;
}

static char *map(int fd, long len, int prot, int flags, long off)
{
	char *p = mmap(NULL, (size_t)len, prot, flags, fd, off);

	if (p == MAP_FAILED)
		say("mmap: %s\n", strerrorname_np(errno));
	return p == MAP_FAILED ? NULL : p;
}

static void show_text(const char *what, const char *p, long len)
{
	say("%s: %.*s\n", what, (int)len, p);
}

static void show_file(int fd, long off, long len)
{
	char buf[256] = "";

	T(pread(fd, buf, (size_t)len, off));
	show_text("file", buf, len);
}

CASE(private_read_and_write)
{
	int fd = made("f", 3, 100);
	char *p = map(fd, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0);

	show_text("begin", p, 5);
	show_text("third", p + 2 * PAGE, 5);
	say("behind the end: %d\n", p[3 * PAGE - 50]);
	memcpy(p + PAGE, "mine", 4);
	show_text("mine", p + PAGE, 8);
	show_file(fd, PAGE, 8);
	T(munmap(p, (size_t)(3 * PAGE)));
	p = map(fd, PAGE, PROT_READ, MAP_PRIVATE, PAGE);
	show_text("second", p, 8);
}

CASE(shared_read)
{
	int fd = made("f", 2, 0), ro;
	char *p;

	close(fd);
	ro = open(at("f"), O_RDONLY);
	p = map(ro, 2 * PAGE, PROT_READ, MAP_SHARED, 0);
	show_text("first", p, 5);
	show_text("second", p + PAGE, 5);
	V(mprotect(p, (size_t)PAGE, PROT_READ | PROT_WRITE) == 0);
	say("%s\n", map(ro, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0) ? "mapped" : "not");
	close(ro);
	show_text("after close", p, 5);
}

CASE(shared_write_is_the_file)
{
	int fd = made("f", 4, 96), other = open(at("f"), O_RDONLY);
	char *p = map(fd, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	struct stat st;

	show_text("as written", p + 3 * PAGE, 5);
	memcpy(p + 10, "through the map", 15);
	T(msync(p, (size_t)PAGE, MS_SYNC));
	show_file(fd, 8, 20);
	show_file(other, 8, 20);
	T(pwrite(fd, "by write", 8, 2 * PAGE + 5));
	show_text("by write", p + 2 * PAGE, 15);
	T(lseek(fd, 0, SEEK_END));
	T(write(fd, "longer", 6));
	show_text("behind the old end", p + 4 * PAGE - 96, 8);
	fstat(fd, &st);
	say("size %ld\n", (long)st.st_size);
	close(fd);
	close(other);
	memcpy(p, "after close", 11);
	munmap(p, (size_t)(4 * PAGE));
	fd = open(at("f"), O_RDONLY);
	show_file(fd, 0, 30);
}

CASE(of_a_new_file_that_was_only_extended)
{
	int fd = open(at("f"), O_RDWR | O_CREAT, 0600), fd2;
	char *p, *q;

	T(ftruncate(fd, 32768));
	p = map(fd, 32768, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	fd2 = open(at("f"), O_RDWR);
	q = map(fd2, 32768, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	strcpy(p + 20000, "shared memory");
	show_text("other map", q + 20000, 13);
	T(pwrite(fd2, "written", 7, 100));
	show_text("other map", p + 100, 7);
	T(ftruncate(fd, 40960));
	show_file(fd, 20000, 13);
}

CASE(windows_at_offsets)
{
	int fd = made("f", 10, 0);
	char *p = map(fd, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 3 * PAGE);
	char *q = map(fd, PAGE, PROT_READ, MAP_SHARED, 4 * PAGE);

	show_text("window", p, 4);
	memcpy(p + PAGE, "xyz", 3);
	show_text("other", q, 4);
	show_file(fd, 4 * PAGE, 4);
}

CASE(two_processes_and_a_lock)
{
	int fd = open(at("f"), O_RDWR | O_CREAT, 0644);
	volatile int *n;

	ftruncate(fd, PAGE);
	n = (volatile int *)map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	for (int i = 0; i < 4; i++) {
		if (fork())
			continue;
		close(fd);
		fd = open(at("f"), O_RDWR);
		n = (volatile int *)map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
		for (int k = 0; k < 200; k++) {
			flock(fd, LOCK_EX);
			*n = *n + 1;
			flock(fd, LOCK_UN);
		}
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	say("counted %d\n", *n);
}

CASE(record_locks_outlive_the_first_map)
{
	struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 120, .l_len = 8};
	int fd = made("f", 1, 0);

	T(fcntl(fd, F_SETLK, &lk));
	map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	IN_CHILD({
		T(fcntl(fd, F_GETLK, &lk));
		say("%s at %ld\n", lk.l_type == F_WRLCK ? "locked" : "not locked", (long)lk.l_start);
	});
}

/* A process that has the file open, and a log, from before goes on writing. */
/* Its only description that may write appends: O_APPEND is taken off that. */
CASE(of_a_file_with_record_locks_that_is_opened_to_append)
{
	struct flock lk = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 10 };
	int fd, reads;
	char *p;

	T(close(made("f", 2, 0)));
	reads = T(open(at("f"), O_RDONLY));
	T(fcntl(reads, F_SETLK, &lk));
	fd = T(open(at("f"), O_RDWR | O_APPEND));
	p = map(fd, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	memcpy(p + 5, "mapped", 6);
	T(write(fd, "tail", 4));
	T(fcntl(fd, F_GETFL) & O_APPEND);
	show_file(reads, 0, 15);
	show_file(reads, 2 * PAGE, 10);
	T(munmap(p, (size_t)(2 * PAGE)));
}

CASE(a_writer_from_before_goes_on)
{
	int fd = open(at("f"), O_RDWR | O_CREAT, 0644), go[2], back[2];
	char *p, c;

	T(ftruncate(fd, 8 * PAGE));
	pipe(go);
	pipe(back);
	if (!fork()) {
		char line[32];

		pwrite(fd, "the child's first", 17, PAGE);
		write(back[1], "x", 1);
		read(go[0], &c, 1);
		for (int i = 0; i < 50; i++) {
			snprintf(line, sizeof line, "the child's line %02d", i);
			pwrite(fd, line, 19, 2 * PAGE + i * 20);
		}
		write(back[1], "x", 1);
		read(go[0], &c, 1);
		pread(fd, line, 10, 5 * PAGE);
		say("child read %.10s\n", line);
		_exit(0);
	}
	read(back[0], &c, 1);
	p = map(fd, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	show_text("first", p + PAGE, 17);
	write(go[1], "x", 1);
	read(back[0], &c, 1);
	show_text("line 0", p + 2 * PAGE, 19);
	show_text("line 49", p + 2 * PAGE + 49 * 20, 19);
	memcpy(p + 5 * PAGE, "from a map", 10);
	write(go[1], "x", 1);
	wait(NULL);
}

CASE(truncation_and_appending_afterwards)
{
	int fd = made("f", 3, 0), ap = open(at("f"), O_WRONLY | O_APPEND);
	char *p = map(fd, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);

	T(write(ap, "appended", 8));
	show_file(fd, 3 * PAGE, 20);
	T(ftruncate(fd, PAGE + 10));
	T(lseek(fd, 0, SEEK_END));
	say("cut: %d %d\n", p[PAGE + 9], p[PAGE + 10]);
	T(ftruncate(fd, 2 * PAGE));
	show_file(fd, PAGE + 5, 10);
	T(write(ap, "again", 5));
	show_file(fd, 2 * PAGE, 5);
	T(lseek(ap, 0, SEEK_CUR));
	close(open(at("f"), O_WRONLY | O_TRUNC));
	T(lseek(fd, 0, SEEK_END));
	T(pwrite(fd, "anew", 4, 10));
	show_text("map", p + 10, 4);
}

/* A write that appends because its flag says so moves no offset but its own, which a child may share. */
CASE(appending_by_flag)
{
	struct iovec iov = {"appended", 8};
	int fd = made("f", 1, 0);

	map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	T(lseek(fd, 10, SEEK_SET));
	IN_CHILD(T(pwritev2(fd, &iov, 1, 0, RWF_APPEND)); T(lseek(fd, 0, SEEK_CUR)));
	T(lseek(fd, 0, SEEK_CUR));
	T(pwritev2(fd, &iov, 1, 20, RWF_APPEND));
	T(lseek(fd, 0, SEEK_CUR));
	T(pwritev2(fd, &iov, 1, -1, RWF_APPEND));
	T(lseek(fd, 0, SEEK_CUR));
	show_file(fd, PAGE, 30);
}

CASE(growing_with_mremap)
{
	int fd = made("f", 6, 0);
	char *p = map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0),
	     *q = map(fd, PAGE, PROT_READ, MAP_PRIVATE, PAGE);

	p = mremap(p, (size_t)PAGE, (size_t)(6 * PAGE), MREMAP_MAYMOVE);
	show_text("sixth", p + 5 * PAGE, 4);
	memcpy(p + 5 * PAGE, "grown", 5);
	show_file(fd, 5 * PAGE, 6);
	q = mremap(q, (size_t)PAGE, (size_t)(3 * PAGE), MREMAP_MAYMOVE);
	show_text("third of the private one", q + 2 * PAGE, 4);
}

static void on_bus(int sig)
{
	(void)sig;
	say("SIGBUS\n");
	_exit(3);
}

static void touch_behind_the_end(int flags)
{
	int fd = made("f", 1, 0);
	char *p = map(fd, 3 * PAGE, PROT_READ, flags, 0);
	int status;

	if (!fork()) {
		signal(SIGBUS, on_bus);
		say("%d\n", p[2 * PAGE]);
		_exit(0);
	}
	wait(&status);
	say("ended %d\n", WEXITSTATUS(status));
}

CASE(behind_the_end_is_a_bus_error)
{
	touch_behind_the_end(MAP_SHARED);
	touch_behind_the_end(MAP_PRIVATE);
}

CASE(what_the_kernel_refuses)
{
	int fd = made("f", 1, 0), wo = open(at("f"), O_WRONLY), ro = open(at("f"), O_RDONLY);

	map(fd, 0, PROT_READ, MAP_SHARED, 0);
	map(fd, PAGE, PROT_READ, MAP_SHARED, 100);
	map(fd, PAGE, PROT_READ, 0, 0);
	map(wo, PAGE, PROT_READ, MAP_SHARED, 0);
	map(wo, PAGE, PROT_WRITE, MAP_SHARED, 0);
	map(wo, PAGE, PROT_WRITE, MAP_PRIVATE, 0);
	map(ro, PAGE, PROT_WRITE, MAP_SHARED, 0);
	map(fd, PAGE, PROT_READ, MAP_SHARED, INT64_MAX - PAGE + 1);
	map(fd, PAGE, PROT_READ, MAP_SHARED, -PAGE);
}

CASE(fixed_addresses)
{
	int fd = made("f", 2, 0);
	char *hole = mmap(NULL, (size_t)(4 * PAGE), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *p = mmap(hole + PAGE, (size_t)PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, PAGE);
	char *q = mmap(hole + 2 * PAGE, (size_t)PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);

	say("%ld %ld %c %c\n", (long)(p - hole), (long)(q - hole), *p, *q);
}

CASE(inherited_by_a_child)
{
	int fd = made("f", 2, 0), status;
	char *p = map(fd, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);

	if (!fork()) {
		memcpy(p, "child", 5);
		_exit(0);
	}
	wait(&status);
	show_text("parent", p, 6);
	show_file(fd, 0, 6);
}

CASE(unlinked_and_renamed_while_mapped)
{
	int fd = made("f", 2, 0), gd = made("g", 1, 0);
	char *p = map(fd, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	char *q = map(gd, PAGE, PROT_READ, MAP_SHARED, 0);

	T(rename(at("g"), at("f")));
	memcpy(p + PAGE, "old", 3);
	show_text("old", p + PAGE, 4);
	show_text("new", q, 4);
	T(unlink(at("f")));
	show_file(fd, PAGE, 4);
	close(fd);
	close(gd);
	show_text("old", p + PAGE, 4);
	show_text("new", q, 4);
}

CASE(a_copy_and_a_link_of_it)
{
	int fd = made("f", 2, 0);
	char *p = map(fd, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	char cmd[1200];

	memcpy(p, "mapped", 6);
	T(link(at("f"), at("h")));
	snprintf(cmd, sizeof cmd, "cp %s %s && cmp %s %s && head -c 8 %s && cat %s | wc -c", at("f"), at("c"),
		 at("f"), at("c"), at("h"), at("c"));
	say("%d\n", system(cmd));
}

CASE(allocation_in_a_mapped_file)
{
	int fd = made("f", 4, 0);
	char *p = map(fd, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);

	T(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, PAGE));
	say("%d %c\n", p[PAGE], p[2 * PAGE]);
	T(fallocate(fd, FALLOC_FL_ZERO_RANGE, 2 * PAGE, 100));
	say("%d %c\n", p[2 * PAGE], p[2 * PAGE + 100]);
	T(posix_fallocate(fd, 0, 6 * PAGE));
	T(lseek(fd, 0, SEEK_END));
}


/* Larger than what is copied whole; pieces that lie on pages of a log, and pieces that do not. */
CASE(a_large_file_in_pieces)
{
	enum { PIECES = 80, LEN = 1 << 20 };
	static const int flags[] = {MAP_PRIVATE, MAP_SHARED};
	int fd = open(at("f"), O_RDWR | O_CREAT, 0644), ro;
	char *buf = malloc(LEN), *p;

	for (int i = 0; i < PIECES; i++) {
		int piece = i % 2 ? PIECES - i : i; /* not in order */

		for (int k = 0; k < LEN; k++)
			buf[k] = (char)(piece * 7 + k / 4096 + k % 251);
		pwrite(fd, buf, LEN, (off_t)piece * LEN);
		if (i == 30)
			/* from here on they lie askew in the log */
			pwrite(fd, "odd", 3, (off_t)PIECES * LEN);
		if (i == 40)
			pwrite(fd, buf, 4093, 17LL * LEN + 100);
	}
	pwrite(fd, "patch", 5, 3LL * LEN + 77);
	close(fd);
	ro = open(at("f"), O_RDONLY);
	for (unsigned k = 0; k < 2; k++) {
		long wrong = 0;

		p = map(ro, (long)PIECES * LEN + 3 - 2 * PAGE, PROT_READ, flags[k], 2 * PAGE);
		if (!p)
			continue;
		for (long i = 0; i < (long)PIECES * LEN + 3 - 2 * PAGE; i += LEN) {
			ssize_t n = pread(ro, buf, LEN, 2 * PAGE + i);

			for (ssize_t b = 0; b < n; b++)
				wrong += p[i + b] != buf[b];
		}
		say("%ld bytes wrong\n", wrong);
		show_text("patch", p + 3L * LEN + 77 - 2 * PAGE, 5);
		munmap(p, (size_t)PIECES * LEN + 3 - 2 * PAGE);
	}
	p = map(ro, 5L * LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, 16L * LEN);
	memset(p + LEN, 'x', LEN);
	show_text("mine", p + LEN + 4000, 5);
	T(pread(ro, buf, 5, 17L * LEN + 4000));
	say("%d\n", buf[0] == 'x');
}
