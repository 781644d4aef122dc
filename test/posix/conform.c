/* SPDX-License-Identifier: BSD-3-Clause */
/* What the conformance suites for file systems ask beyond the other cases: rare combinations of what is there and how it is asked for. */
#include "posix.h"

#include <sys/sysmacros.h>

/* A fifo, a directory, a link: O_CREAT finds them there, whoever looks at them first. */
CASE(creating_what_is_there_but_no_file)
{
	static const char *const names[] = {"fifo", "dir", "null", "link", "dangling", "loop", "plain"};
	static const int modes[] = {O_RDONLY, O_WRONLY, O_RDWR};

	T(mkfifo(at("fifo"), 0644));
	T(mkdir(at("dir"), 0755));
	T(mknod(at("null"), S_IFCHR | 0666, makedev(1, 3)));
	T(symlink("dir", at("link")));
	T(symlink("none/none", at("dangling")));
	T(symlink("loop", at("loop")));
	make("plain", "text");
	alarm(10); /* an open of a fifo waits for the other end */
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		for (size_t m = 0; m < 3; m++) {
			say("%s, mode %d\n", names[i], modes[m]);
			T(open(at(names[i]), modes[m] | O_CREAT | O_EXCL, 0644));
			T(open(at(names[i]), modes[m] | O_CREAT | O_EXCL | O_TRUNC, 0644));
			T(open(at(names[i]), modes[m] | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
			T(open(at(names[i]), modes[m] | O_CREAT | O_NONBLOCK, 0644));
			T(open(at(names[i]), modes[m] | O_CREAT | O_NONBLOCK | O_TRUNC, 0644));
			T(open(at(names[i]), modes[m] | O_CREAT | O_NONBLOCK | O_NOFOLLOW, 0644));
		}
	show("plain");
}
