/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file whose container somebody changes to do harm, and a child that uses it: with little memory, and no time to wait for ever.
 */
#ifndef TEST_HOSTILE_H
#define TEST_HOSTILE_H

#include "scratch.h"

#include "../core/container.h"
#include "../core/stub.h"

#include <criterion/criterion.h>
#include <sys/resource.h>

#define LEN 1000
#define ERRNO_MAX 4095

static struct store store;
static struct container c;
static char dir[PATH_MAX]; /* the container's */

static void setup(void)
{
	scratch_in_memory = true;
	scratch_setup();
}

/* The file "file" of LEN bytes, and its container in @c, @store and @dir. */
static void make_file(void)
{
	char path[PATH_MAX];
	struct lfile l = made("file");
	struct stub stub;
	int fd;

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(lclose(&l), 0);
	lpath("file", path);
	fd = open(path, O_RDONLY);
	cr_assert_eq(stub_read(fd, &stub), 0);
	close(fd);
	cr_assert_eq(store_posix_open(&store, scratch), 0);
	container_init(&c, &store, stub.id, 0644);
	snprintf(dir, sizeof(dir), "%s/%s", scratch, c.dir);
}

/* What a child finds. */
struct use {
	bool write;   /* first, behind the end, when a read has failed */
	ssize_t want; /* of a read of LEN bytes from the beginning: LEN, or -errno */
	bool or_right; /* or LEN */
};

static int use_it(void *arg)
{
	const struct use *use = arg;
	struct rlimit limit = { 3ul << 30, 3ul << 30 };
	struct lfile l;
	char buf[LEN];
	ssize_t n;

#ifndef PLFS_SANITIZE
	setrlimit(RLIMIT_AS, &limit);
#else
	(void)limit;
#endif
	alarm(60);
	n = ltry(&l, "file", O_RDWR);
	if (!n && use->write && plfs_pread(l.f, buf, LEN, 0) != -EIO)
		return 5;
	if (!n && use->write && plfs_pwrite(l.f, "x", 1, 2 * LEN) != 1)
		return 4;
	if (!n) {
		n = plfs_pread(l.f, buf, LEN, 0);
		if (n == -EIO && plfs_sync(l.f) == -ENOMEM) /* looks at the index as well */
			return 6;
		if (plfs_size(l.f) < -ERRNO_MAX)
			return 7;
		lclose(&l);
	}
	if (n == LEN && (use->want == LEN || use->or_right))
		return pattern_check(buf, LEN, 0, 1) == LEN ? 0 : 3;
	if (n != use->want)
		fprintf(stderr, "%zd (%s), not %zd\n", n, n < 0 ? strerror((int)-n) : "", use->want);
	return n == use->want ? 0 : 2;
}

static void expect(ssize_t want)
{
	struct use use = { .want = want };

	cr_assert_eq(in_child(use_it, &use), 0);
}

/* An error, or the right bytes: a log says itself what is in it, and may be asked where an index is damaged. */
__attribute__((unused)) static void expect_damage(void)
{
	struct use use = { .want = -EIO, .or_right = true };

	cr_assert_eq(in_child(use_it, &use), 0);
}

__attribute__((unused)) static char *in_container(const char *rest)
{
	static char path[PATH_MAX + 300];

	snprintf(path, sizeof(path), "%s/%s", dir, rest);
	return path;
}

/* In the place of the file of the container whose name begins with @prefix. */
__attribute__((unused)) static char *instead_of(const char *prefix)
{
	static char path[PATH_MAX];

	cr_assert(find_file(prefix, path));
	cr_assert_eq(unlink(path), 0);
	return path;
}

__attribute__((unused)) static void put(const char *path, const void *buf, size_t len, off_t size)
{
	int fd = open(path, O_RDWR | O_CREAT, 0644);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, buf, len), (ssize_t)len);
	if (size > (off_t)len)
		cr_assert_eq(ftruncate(fd, size), 0);
	close(fd);
}

#endif
