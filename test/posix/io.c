/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading and writing: positional, vectored, seeking, holes, truncation, appending, space. */
#include "posix.h"

CASE(offset_moves_with_reads_and_writes)
{
	char buf[32] = "";
	int fd = T(rw("f"));

	T(write(fd, "0123456789", 10));
	T(lseek(fd, 0, SEEK_CUR));
	T(lseek(fd, 2, SEEK_SET));
	T(read(fd, buf, 3));
	T(write(fd, "XY", 2));
	T(lseek(fd, 0, SEEK_CUR));
	T(read(fd, buf, 32));
	T(read(fd, buf, 32));
	T(pwrite(fd, "P", 1, 0));
	T(pread(fd, buf, 32, 8));
	T(lseek(fd, 0, SEEK_CUR));
	say("%.10s\n", buf);
	show("f");
}

CASE(seeks)
{
	int fd = T(rw("f"));

	T(write(fd, "0123456789", 10));
	T(lseek(fd, -3, SEEK_END));
	T(lseek(fd, -3, SEEK_CUR));
	T(lseek(fd, -5, SEEK_CUR));
	T(lseek(fd, -1, SEEK_SET));
	T(lseek(fd, -11, SEEK_END));
	T(lseek(fd, 5, SEEK_END));
	T(lseek(fd, 0, 77));
	T(lseek(fd, 0, -1));
	T(lseek(fd, 1L << 40, SEEK_SET));
	T(read(fd, &(char){0}, 1));
	T(lseek(fd, 0, SEEK_CUR));
	T(lseek(fd, INT64_MIN, SEEK_CUR));
}

CASE(seek_data_and_hole)
{
	int fd = T(rw("f"));

	T(lseek(fd, 0, SEEK_DATA));
	T(lseek(fd, 0, SEEK_HOLE));
	T(write(fd, "0123456789", 10));
	T(lseek(fd, 3, SEEK_DATA));
	T(lseek(fd, 3, SEEK_HOLE));
	T(lseek(fd, 0, SEEK_CUR));
	T(lseek(fd, 10, SEEK_DATA));
	T(lseek(fd, 10, SEEK_HOLE));
	T(lseek(fd, -1, SEEK_DATA));
	T(lseek(fd, -1, SEEK_HOLE));
	T(lseek(fd, 0, SEEK_CUR));
}

CASE(holes_read_as_zeros)
{
	char buf[64];
	int fd = T(rw("f"));

	T(pwrite(fd, "end", 3, 20000));
	T(pwrite(fd, "mid", 3, 7000));
	T(pread(fd, buf, 8, 6998));
	T(memcmp(buf, "\0\0mid\0\0\0", 8));
	T(lseek(fd, 30000, SEEK_SET));
	T(read(fd, buf, 8));
	T(write(fd, "far", 3));
	show("f");
}

CASE(far_away)
{
	char buf[8] = "";
	int fd = T(rw("f"));
	struct stat st;

	T(pwrite(fd, "far", 3, 5L << 30));
	T(fstat(fd, &st));
	say("%ld\n", (long)st.st_size);
	T(pread(fd, buf, 8, 5L << 30));
	T(pread(fd, buf, 8, (5L << 30) + 3));
	T(pwrite(fd, "x", 1, -1));
	T(pread(fd, buf, 1, -1));
	T(ftruncate(fd, -1));
	T(ftruncate(fd, 3L << 30));
	T(pread(fd, buf, 8, 5L << 30));
	T(ftruncate(fd, 5));
}

/* Up to the last offset there is; which of them a file system has is its own affair. */
CASE(beyond_all_offsets)
{
	char buf[8] = "";
	int fd = T(rw("f"));
	struct iovec iov = {buf, 2};

	T(pwrite(fd, "x", 1, INT64_MAX));
	T(pwrite(fd, "xy", 2, INT64_MAX - 1));
	T(pwrite(fd, "x", 0, INT64_MAX));
	T(pwritev(fd, &iov, 1, INT64_MAX - 1));
	T(pread(fd, buf, 1, INT64_MAX));
	T(pread(fd, buf, 2, INT64_MAX - 1));
	T(pread(fd, buf, 1, INT64_MAX - 1));
	T(pread(fd, buf, 0, INT64_MAX));
	T(preadv(fd, &iov, 1, INT64_MAX - 1));
	T(posix_fallocate(fd, INT64_MAX, 1));
	T(fallocate(fd, 0, INT64_MAX - 1, 2));
	T(lseek(fd, 0, SEEK_END));
}

CASE(truncate_both_ways)
{
	int fd = T(rw("f"));

	T(write(fd, "0123456789", 10));
	T(ftruncate(fd, 4));
	T(lseek(fd, 0, SEEK_CUR));
	show("f");
	T(ftruncate(fd, 8));
	show("f");
	T(write(fd, "AB", 2));
	show("f");
	T(truncate(at("f"), 1));
	show("f");
	T(truncate(at("f"), 6));
	T(pwrite(fd, "z", 1, 3));
	show("f");
	T(ftruncate(fd, 0));
	T(pwrite(fd, "q", 1, 2));
	show("f");
	T(close(fd));
	show("f");
}

CASE(truncated_bytes_never_come_back)
{
	for (int i = 0; i < 3; i++) {
		int fd = rw("f");

		T(pwrite(fd, "aaaaaaaaaa", 10, 0));
		if (i)
			T(i == 1 ? fsync(fd) : close(fd));
		if (i == 2)
			fd = rw("f");
		T(ftruncate(fd, 3));
		T(pwrite(fd, "b", 1, 8));
		show("f");
		T(close(fd));
		show("f");
	}
}

CASE(empty_and_null_transfers)
{
	char buf[4];
	int fd = T(rw("f"));

	T(write(fd, NULL, 0));
	T(write(fd, "abc", 3));
	T(read(fd, NULL, 0));
	T(pread(fd, buf, 0, 100));
	T(pwrite(fd, buf, 0, 100));
	T(writev(fd, NULL, 0));
	T(lseek(fd, 0, SEEK_SET));
	T(read(fd, NULL, 3));
	T(lseek(fd, 0, SEEK_CUR));
	T(write(fd, NULL, 3));
	T(lseek(fd, 0, SEEK_CUR));
	show("f");
}

CASE(vectors)
{
	char a[3], b[5], c[64];
	struct iovec out[] = {{"abc", 3}, {"", 0}, {"defgh", 5}, {"ijklmnopq", 9}};
	struct iovec in[] = {{a, 3}, {NULL, 0}, {b, 5}, {c, 64}};
	int fd = T(rw("f"));

	T(writev(fd, out, 4));
	T(lseek(fd, 0, SEEK_CUR));
	T(pwritev(fd, out, 2, 5));
	T(pwritev2(fd, out, 3, 30, 0));
	T(pwritev2(fd, out, 1, -1, 0));
	T(lseek(fd, 0, SEEK_CUR));
	T(lseek(fd, 1, SEEK_SET));
	T(readv(fd, in, 4));
	say("%.3s %.5s %.8s\n", a, b, c);
	T(preadv(fd, in, 3, 0));
	T(preadv2(fd, in, 3, 2, 0));
	T(preadv2(fd, in, 1, -1, 0));
	T(preadv(fd, in, 1, 1000));
	T(preadv(fd, in, 1, -5));
	T(pwritev(fd, out, 1, -5));
	T(readv(fd, in, -1));
	T(readv(fd, in, 2000));
	T(writev(fd, out, 2000));
	T(writev(fd, &(struct iovec){"x", (size_t)-1}, 1));
	T(pwritev2(fd, out, 1, 0, 0x40000000));
	T(preadv2(fd, in, 1, 0, 0x40000000));
	T(pwritev2(fd, out, 1, 0, RWF_DSYNC));
	T(preadv2(fd, in, 3, 2, RWF_DSYNC));
	T(preadv2(fd, in, 3, 2, RWF_SYNC | RWF_APPEND));
	show("f");
}

CASE(two_descriptions_see_each_other)
{
	char buf[16] = "";
	int a = T(rw("f")), b = T(open(at("f"), O_RDWR)), c = T(open(at("f"), O_RDONLY));

	T(write(a, "hello", 5));
	T(read(b, buf, 16));
	T(write(b, " world", 6));
	T(read(a, buf, 16));
	T(pwrite(a, "J", 1, 0));
	T(read(c, buf, 16));
	say("%s\n", buf);
	T(pwrite(b, "E", 1, 1));
	T(pread(c, buf, 16, 0));
	say("%s\n", buf);
	T(ftruncate(a, 2));
	T(read(c, buf, 16));
	T(lseek(c, 0, SEEK_END));
}

CASE(append_from_two_descriptions)
{
	char buf[32] = "";
	int a = T(open(at("f"), O_RDWR | O_CREAT | O_APPEND, 0644)),
	    b = T(open(at("f"), O_WRONLY | O_APPEND));

	T(write(a, "one", 3));
	T(write(b, "two", 3));
	T(lseek(a, 0, SEEK_CUR));
	T(lseek(b, 0, SEEK_CUR));
	T(lseek(a, 0, SEEK_SET));
	T(write(a, "three", 5));
	T(lseek(a, 0, SEEK_CUR));
	T(lseek(a, 1, SEEK_SET));
	T(read(a, buf, 4));
	T(lseek(a, 0, SEEK_CUR));
	T(pwrite(a, "P", 1, 0));
	T(ftruncate(a, 4));
	T(write(b, "x", 1));
	T(writev(a, (struct iovec[]){{"v", 1}, {"w", 1}}, 2));
	show("f");
	T(fcntl(a, F_GETFL) & O_APPEND);
	T(fcntl(a, F_SETFL, 0));
	T(lseek(a, 0, SEEK_SET));
	T(write(a, "S", 1));
	T(fcntl(a, F_SETFL, O_APPEND));
	T(write(a, "E", 1));
	show("f");
}

CASE(append_from_processes_loses_nothing)
{
	enum { writers = 6, lines = 200 };
	char line[32];
	FILE *in;
	int seen[writers] = {0}, w, n, bad = 0;

	for (w = 0; w < writers; w++)
		if (fork() == 0) {
			int fd = open(at("log"), O_WRONLY | O_CREAT | O_APPEND, 0644);
			for (n = 0; n < lines; n++) {
				int len = snprintf(line, sizeof line, "%d %d %.*s\n", w, n, n % 13,
						   "xxxxxxxxxxxxx");
				if (write(fd, line, len) != len)
					say("short\n");
			}
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	in = fopen(at("log"), "r");
	while (fgets(line, sizeof line, in)) {
		if (sscanf(line, "%d %d", &w, &n) != 2 || w < 0 || w >= writers || seen[w] != n ||
		    (int)strlen(line) != snprintf(NULL, 0, "%d %d \n", w, n) + n % 13)
			bad++;
		else
			seen[w]++;
	}
	for (w = 0; w < writers; w++)
		say("%d: %d\n", w, seen[w]);
	say("bad %d\n", bad);
	unlink(at("log"));
}

CASE(sizes_and_offsets_of_every_kind)
{
	static const size_t lens[] = {1, 511, 4095, 4096, 4097, 65535, 65536, 65537, 1000000};
	static char buf[1000000], got[1000000];
	int fd = T(rw("f"));
	off_t off = 0;

	for (size_t i = 0; i < sizeof buf; i++)
		buf[i] = i * 2654435761u >> 13;
	for (int i = 0; i < 9; i++) {
		T(pwrite(fd, buf + i, lens[i] - (i == 8 ? 8 : 0), off));
		off += lens[i] + i;
	}
	off = 0;
	for (int i = 0; i < 9; i++) {
		size_t len = lens[i] - (i == 8 ? 8 : 0);
		T(pread(fd, got, len, off));
		T(memcmp(got, buf + i, len));
		off += lens[i] + i;
	}
}

CASE(overlapping_writes_last_wins)
{
	int fd = T(rw("f"));

	T(pwrite(fd, "aaaaaaaaaaaaaaaaaaaa", 20, 0));
	T(pwrite(fd, "bbbbbbbbbb", 10, 5));
	T(pwrite(fd, "cc", 2, 9));
	T(pwrite(fd, "dddddddddd", 10, 15));
	T(pwrite(fd, "e", 1, 0));
	show("f");
	T(close(fd));
	fd = T(rw("f"));
	T(pwrite(fd, "ffffff", 6, 7));
	show("f");
	T(close(fd));
	show("f");
}

CASE(strided_by_processes)
{
	enum { procs = 4, block = 47, blocks = 300 };
	char buf[block];

	for (int p = 0; p < procs; p++)
		if (fork() == 0) {
			int fd = rw("f");
			memset(buf, 'a' + p, block);
			for (int i = 0; i < blocks; i++)
				pwrite(fd, buf, block, (off_t)(i * procs + p) * block);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
}

CASE(space)
{
	struct stat st;
	int fd = T(rw("f"));

	V(posix_fallocate(fd, 0, 1000));
	T(fstat(fd, &st));
	say("%ld\n", (long)st.st_size);
	T(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 5000));
	T(fstat(fd, &st));
	say("%ld\n", (long)st.st_size);
	T(pwrite(fd, "abcdefghij", 10, 100));
	V(posix_fallocate(fd, 0, 500));
	T(fallocate(fd, 0, 900, 200));
	T(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 102, 3));
	T(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 102, 3));
	T(fallocate(fd, FALLOC_FL_ZERO_RANGE, 107, 1));
	T(fallocate(fd, FALLOC_FL_ZERO_RANGE, 1090, 100));
	V(posix_fallocate(fd, -1, 10));
	V(posix_fallocate(fd, 0, 0));
	V(posix_fallocate(fd, 0, -10));
	V(posix_fallocate(-1, 0, 10));
	V(posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL));
	V(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	V(posix_fadvise(fd, 0, 0, 77));
	T(readahead(fd, 0, 100));
	T(fallocate(fd, 0, -1, 10));
	T(fallocate(fd, 0, 0, 0));
	show("f");
}

CASE(synced_in_every_way)
{
	int fd = T(rw("f")), dir = T(open(at(""), O_RDONLY));

	T(write(fd, "abc", 3));
	T(fsync(fd));
	T(fdatasync(fd));
	T(sync_file_range(fd, 0, 3, SYNC_FILE_RANGE_WRITE));
	T(syncfs(fd));
	T(fsync(dir));
	T(syncfs(dir));
	T(write(fd, "def", 3));
	T(fdatasync(fd));
	show("f");
	T(close(fd));
	fd = T(open(at("g"), O_WRONLY | O_CREAT | O_SYNC, 0644));
	T(write(fd, "sync", 4));
	T(fcntl(fd, F_GETFL) & O_SYNC);
	show("g");
}

CASE(file_size_limit)
{
	struct rlimit rl = {2000000, 2000000};
	static char buf[2000];
	int fd = T(rw("f"));

	signal(SIGXFSZ, SIG_IGN);
	T(setrlimit(RLIMIT_FSIZE, &rl));
	T(pwrite(fd, buf, 10, 990));
	T(pwrite(fd, buf, 10, 3000000));
	T(ftruncate(fd, 3000000));
	T(ftruncate(fd, 1500000));
	T(pwrite(fd, buf, 10, 2000));
	T(close(fd));
}

CASE(nonblocking_and_direct_flags)
{
	static char raw[8192 + 4096];
	char *buf = (char *)(((uintptr_t)raw + 4095) & ~4095UL);
	int fd = T(open(at("f"), O_RDWR | O_CREAT | O_NONBLOCK, 0644));

	T(write(fd, "abc", 3));
	T(fcntl(fd, F_GETFL) & O_NONBLOCK);
	T(close(fd));
	fd = T(open(at("g"), O_RDWR | O_CREAT | O_DIRECT, 0644));
	memset(buf, 'd', 4096);
	T(write(fd, buf, 4096));
	T(pwrite(fd, buf, 4096, 8192));
	T(pread(fd, buf, 4096, 0));
	T(close(fd));
	show("g");
}

/* All that is asked for is a multiple of 4096, or of nothing: file systems ask for 512 or 4096. */
static void try_direct(int fd, char *buf)
{
	struct iovec iov[2] = {{buf, 4096}, {buf + 8192, 4096}}, odd[2] = {{buf, 4096}, {buf + 8193, 4096}},
		     small[2] = {{buf, 4096}, {buf + 8192, 100}};

	T(pwrite(fd, buf, 4096, 0));
	T(pwrite(fd, buf, 100, 0));
	T(pwrite(fd, buf + 1, 4096, 0));
	T(pwrite(fd, buf, 4096, 100));
	T(pwrite(fd, buf, 0, 1));
	T(pwrite(fd, buf + 1, 1, -1));
	T(pread(fd, buf, 4096, 0));
	T(pread(fd, buf, 100, 0));
	T(pread(fd, buf + 1, 4096, 0));
	T(pread(fd, buf, 4096, 100));
	T(pread(fd, buf, 0, 1));
	T(pread(fd, buf, 4096, 1 << 20));
	T(pread(fd, buf, 100, 1 << 20));
	T(pread(fd, buf + 1, 100, (1 << 20) + 1));
	T(pwritev(fd, iov, 2, 4096));
	T(pwritev(fd, small, 2, 4096));
	T(preadv(fd, iov, 2, 0));
	T(preadv(fd, odd, 1, 4096));
	T(lseek(fd, 0, SEEK_SET));
	T(write(fd, buf, 5));
	T(read(fd, buf + 3, 4096));
	T(lseek(fd, 0, SEEK_CUR));
	T(read(fd, buf, 4096));
	T(write(fd, buf, 4096));
	T(lseek(fd, 0, SEEK_CUR));
}

CASE(direct_transfers_are_aligned)
{
	static char raw[4096 * 8];
	char *buf = (char *)(((uintptr_t)raw + 4095) & ~4095UL);
	int fd = T(open(at("f"), O_RDWR | O_CREAT, 0644)), other;

	memset(raw, 'd', sizeof raw);
	for (int i = 0; i < 16; i++) /* blocks that are there: in holes file systems are not so strict */
		pwrite(fd, buf, 4096, i * 4096);
	T(fsync(fd));
	T(pwrite(fd, buf + 1, 100, 1));
	T(fcntl(fd, F_SETFL, O_DIRECT));
	T(fcntl(fd, F_GETFL) & O_DIRECT);
	try_direct(fd, buf);
	T(fcntl(fd, F_SETFL, 0));
	T(pwrite(fd, buf + 1, 100, 1));
	T(fcntl(fd, F_SETFL, O_DIRECT | O_APPEND));
	T(write(fd, buf, 100));
	T(fcntl(fd, F_SETFL, 0));
	other = T(open(at("f"), O_RDWR | O_DIRECT));
	try_direct(other, buf);
	T(fsync(other));
	IN_CHILD(T(pwrite(other, buf, 100, 0)); T(pwrite(other, buf, 512 * 8, 0)));
	T(close(other));
	other = T(open(at("f"), O_RDONLY | O_DIRECT));
	T(pwrite(other, buf, 100, 0));
	T(pread(other, buf, 100, 0));
	show("f");
}

/* Run by the next case in a fresh image. */
CASE(child_with_a_direct_descriptor)
{
	static char raw[4096 * 2];
	char *buf = (char *)(((uintptr_t)raw + 4095) & ~4095UL);

	if (fcntl(7, F_GETFL) < 0)
		return;
	T(fcntl(7, F_GETFL) & O_DIRECT);
	T(pread(7, buf, 100, 0));
	T(pread(7, buf, 4096, 0));
}

CASE(a_direct_descriptor_is_inherited)
{
	static char raw[4096 * 2];
	char *buf = (char *)(((uintptr_t)raw + 4095) & ~4095UL);
	int fd = T(open(at("f"), O_RDWR | O_CREAT | O_DIRECT, 0644));

	T(write(fd, buf, 4096));
	IN_CHILD(dup2(fd, 7); execl(self, self, "child_with_a_direct_descriptor", NULL));
}
