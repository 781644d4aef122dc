/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For cases that run or load files of the directory: how they get there.
 */
#include "posix.h"

/* The same with a slash in it: a name that is not looked for elsewhere. */
static __attribute__((unused)) char *path(const char *name)
{
	char *out = at(name);

	if (!strchr(out, '/')) {
		memmove(out + 2, out, strlen(out) + 1);
		memcpy(out, "./", 2);
	}
	return out;
}

/* A copy of a program of the system, there. */
static __attribute__((unused)) void install(const char *from, const char *name)
{
	char command[1024];

	snprintf(command, sizeof command, "cp %s %s", from, at(name));
	if (system(command))
		say("cannot copy %s\n", from);
}

static __attribute__((unused)) void script(const char *name, const char *text)
{
	make(name, text);
	T(chmod(at(name), 0755));
}

static __attribute__((unused)) char *const some[] = {"argv0", "one", "two words", "", NULL};
