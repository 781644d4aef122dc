/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A child that reads a damaged file has a limit of memory and an alarm: a hang or a huge allocation fails the
 * test.
 */
#include "test/lib/hostile.h"
#include "test/lib/sanitized.h"

#include <sys/resource.h>

struct store hostile_store;
struct container hostile_container;
char hostile_dir[PATH_MAX];

void hostile_setup(void)
{
	scratch_in_memory = true;
	scratch_setup();
}

void hostile_file(void)
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
	cr_assert_eq(store_posix_open(&hostile_store, scratch), 0);
	container_init(&hostile_container, &hostile_store, stub.id, 0644);
	snprintf(hostile_dir, sizeof(hostile_dir), "%s/%s", scratch, hostile_container.dir);
}

int use_it(void *arg)
{
	const struct use *use = arg;
	struct rlimit limit = { 3ul << 30, 3ul << 30 };
	struct lfile l;
	char buf[LEN];
	ssize_t n;

	if (!is_sanitized())
		setrlimit(RLIMIT_AS, &limit);
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

void expect(ssize_t want)
{
	struct use use = { .want = want };

	cr_assert_eq(in_child(use_it, &use), 0);
}

void expect_damage(void)
{
	struct use use = { .want = -EIO, .or_right = true };

	cr_assert_eq(in_child(use_it, &use), 0);
}

char *in_container(const char *rest)
{
	static char path[PATH_MAX + 300];

	snprintf(path, sizeof(path), "%s/%s", hostile_dir, rest);
	return path;
}

char *instead_of(const char *prefix)
{
	static char path[PATH_MAX];

	cr_assert(find_file(prefix, path));
	cr_assert_eq(unlink(path), 0);
	return path;
}

void hostile_put(const char *path, const void *buf, size_t len, off_t size)
{
	int fd = open(path, O_RDWR | O_CREAT, 0644);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, buf, len), (ssize_t)len);
	if (size > (off_t)len)
		cr_assert_eq(ftruncate(fd, size), 0);
	close(fd);
}
