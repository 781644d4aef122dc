// SPDX-License-Identifier: BSD-3-Clause
/*
 * What other processes do to a file that this one has open: its size, as stat tells it, when all is closed.
 */
#include "posix.h"

static void truncate_elsewhere(const char *name, off_t size)
{
	IN_CHILD(execl("/usr/bin/truncate", "truncate", "-s", size ? "5000" : "0", at(name), NULL));
}

static void size_after_truncation(bool write_before, off_t size)
{
	char text[70000];
	struct stat st;
	int fd;

	memset(text, 'x', sizeof text);
	fd = open(at("f"), O_RDWR | O_CREAT, 0644);
	T(write(fd, text, sizeof text));
	T(close(fd));
	fd = open(at("f"), O_RDWR);
	if (write_before)
		T(pwrite(fd, "before", 6, 100));
	truncate_elsewhere("f", size);
	T(pwrite(fd, "after", 5, size + 35));
	T(close(fd));
	T(stat(at("f"), &st));
	say("%lld bytes\n", (long long)st.st_size);
	show("f");
}

CASE(written_after_another_has_emptied_it) { size_after_truncation(false, 0); }
CASE(written_before_and_after_another_has_emptied_it) { size_after_truncation(true, 0); }
CASE(written_after_another_has_cut_it) { size_after_truncation(false, 5000); }
CASE(written_before_and_after_another_has_cut_it) { size_after_truncation(true, 5000); }
