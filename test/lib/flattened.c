/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/lib/flattened.h"

#define LEN LEN_OF_A

char path_of_a[PATH_MAX];

void make_a(void)
{
	struct lfile l = made("a");

	if (lfill(&l, 0, LEN, 1) != LEN)
		die("write");
	lclose(&l);
	lpath("a", path_of_a);
}

int flatten_a(void)
{
	return plfs_flatten(AT_FDCWD, path_of_a, NULL);
}

bool a_is_plain(void)
{
	struct stat st;

	return !sys.fstatat(AT_FDCWD, path_of_a, &st, 0) && !plfs_maybe_stub(st.st_mode);
}

bool a_is_whole(void)
{
	struct lfile l;
	char *buf = malloc(LEN + 1);
	ssize_t n;
	bool ok;

	if (ltry(&l, "a", O_RDONLY))
		return false;
	n = l.f ? plfs_pread(l.f, buf, LEN + 1, 0) : pread(l.fd, buf, LEN + 1, 0);
	ok = n == LEN && pattern_check(buf, LEN, 0, 1) == LEN;
	free(buf);
	lclose(&l);
	return ok;
}

bool a_left_nothing(void)
{
	return !count_files("data.") && !count_files("index.") && !count_files(".plfs-flatten");
}
