/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long runs in one process: what grows with the number of writes, opens or files, and should not. Memory and
 * descriptors are looked at after a tenth of the run and at its end. Every byte is checked.
 *
 *     bounds writes|append|opens FILE NUMBER     so many small writes, or so many opens with a write each
 *     bounds sparse FILE                         a file of 5 TiB with a few bytes in it
 *     bounds tree DIR NUMBER                     so many files
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "../lib/job.h"

enum { WRITE_LEN = 100, LINE_LEN = 24, FILE_LEN = 200, FILES_IN_DIR = 1000, GROWTH_KB = 12 * 1024 };

static long in_tenth, fds_in_tenth;

static long resident_kb(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		die("/proc/self/statm");
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static long descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	long nr = 0;

	if (!d)
		die("/proc/self/fd");
	while (readdir(d))
		nr++;
	closedir(d);
	return nr;
}

/* Called for each step of a run. */
static void look(long i, long nr)
{
	long kb, fds;

	if (i == nr / 10) {
		in_tenth = resident_kb();
		fds_in_tenth = descriptors();
	}
	if (i + 1 < nr)
		return;
	kb = resident_kb();
	fds = descriptors();
	errno = 0;
	printf("memory %ld kB after a tenth, %ld kB at the end; descriptors %ld, %ld\n", in_tenth, kb,
	       fds_in_tenth, fds);
	if (kb > in_tenth + GROWTH_KB)
		die("memory has grown from %ld to %ld kB", in_tenth, kb);
	if (fds > fds_in_tenth)
		die("descriptors have grown from %ld to %ld", fds_in_tenth, fds);
}

static int open_file(const char *path, int flags)
{
	int fd = open(path, flags, 0644);

	if (fd < 0)
		die("%s: open", path);
	return fd;
}

static void close_file(int fd, const char *path)
{
	if (close(fd))
		die("%s: close", path);
}

static void check_all(const char *path, off_t len)
{
	static char buf[1 << 20];
	int fd = open_file(path, O_RDONLY);
	off_t off = 0;
	size_t n;

	while ((n = read_all(fd, buf, sizeof(buf), off, path)) > 0) {
		size_t good = pattern_check(buf, n, (uint64_t)off, 1);

		errno = 0;
		if (good < n)
			die("%s: byte %lld is wrong", path, (long long)off + (long long)good);
		off += (off_t)n;
	}
	errno = 0;
	if (off != len)
		die("%s: %lld bytes, not %lld", path, (long long)off, (long long)len);
	close_file(fd, path);
}

/*
 * Block number @i of @nr in an order without a pattern: a permutation, for @nr is no multiple of the prime.
 */
static long somewhere(long i, long nr)
{
	return (long)((unsigned __int128)i * 2654435761u % (unsigned long)nr);
}

static void writes(const char *path, long nr)
{
	int fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
	char buf[WRITE_LEN];

	for (long i = 0; i < nr; i++) {
		off_t off = somewhere(i, nr) * WRITE_LEN;

		pattern_fill(buf, sizeof(buf), (uint64_t)off, 1);
		write_all(fd, buf, sizeof(buf), off, path);
		look(i, nr);
	}
	close_file(fd, path);
	check_all(path, nr * WRITE_LEN);
}

static void append(const char *path, long nr)
{
	int fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
	char buf[LINE_LEN];

	for (long i = 0; i < nr; i++) {
		pattern_fill(buf, sizeof(buf), (uint64_t)i * LINE_LEN, 1);
		if (write(fd, buf, sizeof(buf)) != sizeof(buf))
			die("%s: write", path);
		look(i, nr);
	}
	close_file(fd, path);
	check_all(path, nr * LINE_LEN);
}

/* What loops that log do: open, a line, close; now and then somebody looks. */
static void opens(const char *path, long nr)
{
	char buf[LINE_LEN];

	for (long i = 0; i < nr; i++) {
		int fd = open_file(path, O_WRONLY | O_CREAT | O_APPEND);
		struct stat st;

		pattern_fill(buf, sizeof(buf), (uint64_t)i * LINE_LEN, 1);
		if (write(fd, buf, sizeof(buf)) != sizeof(buf))
			die("%s: write", path);
		close_file(fd, path);
		if (i % 1000 == 999) {
			if (stat(path, &st))
				die("%s: stat", path);
			errno = 0;
			if (st.st_size != (i + 1) * LINE_LEN)
				die("%s: size %lld after %ld lines", path, (long long)st.st_size, i + 1);
		}
		if (i == nr / 20)
			check_all(path, (i + 1) * LINE_LEN);
		look(i, nr);
	}
	check_all(path, nr * LINE_LEN);
}

static void sparse(const char *path)
{
	static const off_t at[] = { 0, 12345, (off_t)1 << 32, (off_t)3 << 40, ((off_t)5 << 40) - WRITE_LEN };
	int fd = open_file(path, O_RDWR | O_CREAT | O_TRUNC);
	char buf[WRITE_LEN], zeros[WRITE_LEN] = "", got[WRITE_LEN];
	struct stat st;

	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		pattern_fill(buf, sizeof(buf), (uint64_t)at[i], 1);
		write_all(fd, buf, sizeof(buf), at[i], path);
	}
	close_file(fd, path);
	fd = open_file(path, O_RDONLY);
	if (fstat(fd, &st))
		die("%s: fstat", path);
	errno = 0;
	if (st.st_size != (off_t)5 << 40)
		die("%s: size %lld", path, (long long)st.st_size);
	printf("%lld kB of %lld\n", (long long)st.st_blocks / 2, (long long)st.st_size);
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		off_t hole = at[i] ? at[i] - 2 * WRITE_LEN : WRITE_LEN;

		if (read_all(fd, got, sizeof(got), at[i], path) != sizeof(got) ||
		    pattern_check(got, sizeof(got), (uint64_t)at[i], 1) != sizeof(got))
			die("%s: the bytes at %lld", path, (long long)at[i]);
		if (read_all(fd, got, sizeof(got), hole, path) != sizeof(got) ||
		    memcmp(got, zeros, sizeof(got)))
			die("%s: the hole at %lld", path, (long long)hole);
		if (lseek(fd, at[i], SEEK_DATA) != at[i])
			die("%s: no data at %lld", path, (long long)at[i]);
	}
	close_file(fd, path);
	if (truncate(path, (off_t)2 << 40) || stat(path, &st))
		die("%s: truncate", path);
	errno = 0;
	if (st.st_size != (off_t)2 << 40)
		die("%s: size %lld", path, (long long)st.st_size);
	look(0, 1);
}

static long seen, seen_kb;

static int see(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	errno = 0;
	if (type == FTW_F && st->st_size != FILE_LEN)
		die("%s: size %lld", path, (long long)st->st_size);
	seen += type == FTW_F;
	seen_kb += st->st_blocks / 2;
	return 0;
}

static void tree(const char *dir, long nr)
{
	char path[4096], buf[FILE_LEN];

	for (long i = 0; i < nr; i++) {
		int fd;

		if (i % FILES_IN_DIR == 0) {
			snprintf(path, sizeof(path), "%s/%ld", dir, i / FILES_IN_DIR);
			if ((!i && mkdir(dir, 0755)) || mkdir(path, 0755))
				die("%s: mkdir", path);
		}
		snprintf(path, sizeof(path), "%s/%ld/%ld", dir, i / FILES_IN_DIR, i);
		fd = open_file(path, O_WRONLY | O_CREAT | O_EXCL);
		pattern_fill(buf, sizeof(buf), (uint64_t)i, 1);
		write_all(fd, buf, sizeof(buf), 0, path);
		close_file(fd, path);
		look(i, nr);
	}
	if (nftw(dir, see, 20, FTW_PHYS))
		die("%s: nftw", dir);
	errno = 0;
	if (seen != nr)
		die("%s: %ld files, not %ld", dir, seen, nr);
	printf("%ld files, %ld kB\n", seen, seen_kb);
	for (long i = 0; i < nr; i += 1 + nr / 1000) {
		snprintf(path, sizeof(path), "%s/%ld/%ld", dir, i / FILES_IN_DIR, i);
		int fd = open_file(path, O_RDONLY);

		if (read_all(fd, buf, sizeof(buf), 0, path) != sizeof(buf) ||
		    pattern_check(buf, sizeof(buf), (uint64_t)i, 1) != sizeof(buf))
			die("%s: its bytes", path);
		close_file(fd, path);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	long nr = argc > 3 ? atol(argv[3]) : 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "sparse"))
		sparse(argv[2]);
	else if (nr < 10)
		die("bounds writes|append|opens|tree PATH NUMBER, sparse PATH");
	else if (!strcmp(what, "writes"))
		writes(argv[2], nr);
	else if (!strcmp(what, "append"))
		append(argv[2], nr);
	else if (!strcmp(what, "opens"))
		opens(argv[2], nr);
	else if (!strcmp(what, "tree"))
		tree(argv[2], nr);
	return 0;
}
