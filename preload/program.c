/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running programs. The kernel is asked first, always: of a stub it checks all that it checks of a program
 * (permissions, mount options, writers, the size of the arguments) before it finds no known format and says
 * ENOEXEC. Only then is it our turn: a binary becomes a plain file, or a copy in memory, and is run by the
 * kernel; of a script the interpreter is run, with the script's name as the program gave it.
 *
 * Plain files are the kernel's, but for scripts whose name it does not know as the program does: those below
 * a prefix that does not exist, and those whose interpreter is logical or lies below such a prefix.
 */
#include "program.h"

#include "fdtable.h"
#include "image.h"
#include "needed.h"
#include "stranger.h"
#include "through.h"

#include <paths.h>
#include <stdlib.h>

#define DEPTH_MAX 5      /* interpreters of interpreters: Linux says ELOOP above */
#define TRIES 100        /* the file became a plain one meanwhile: start over */
#define BUSY_TRIES 20    /* somebody has it open for writing: perhaps only to make it a plain one */
#define BUSY_NS 1000000
#define AGAIN (INT_MIN + 1)

#ifndef AT_EXECVE_CHECK
#define AT_EXECVE_CHECK 0x10000 /* Linux 6.14: say whether it would be run, and do not run it */
#endif

struct run {
	char *const *argv, *const *envp;
	int depth;
	bool shell; /* what is neither binary nor script is given to one */
};

static int run_path(const struct run *run, int dirfd, const char *path, int at_flags);

/* ---- scripts ---- */

/*
 * Run the interpreter of the script that begins with @head and is called @name. -errno; -ENOEXEC: it has
 * none.
 */
static int run_script(const struct run *run, char *head, const char *name)
{
	struct script script;
	size_t nr = 0, at = 0;
	int r = script_parse(&script, head);

	if (r < 0)
		return r;
	if (run->depth >= DEPTH_MAX)
		return -ELOOP;
	while (run->argv && run->argv[nr])
		nr++;
	char *argv[nr + 4];
	struct run next = {argv, run->envp, run->depth + 1, false};

	argv[at++] = script.interpreter;
	if (script.arg)
		argv[at++] = script.arg;
	argv[at++] = (char *)name;
	if (nr > 1) {
		memcpy(argv + at, run->argv + 1, (nr - 1) * sizeof(*argv));
		at += nr - 1;
	}
	argv[at] = NULL;
	msg_debug(MSG_PROC, "%s: a script of %s", name, script.interpreter);
	return run_path(&next, AT_FDCWD, script.interpreter, 0);
}

/*
 * What the interpreter finds the script by: its name as it was given, or one that begins with the descriptor.
 * False: it will not find it, because the descriptor is closed before it starts.
 */
static bool script_name(int dirfd, const char *path, char *out, size_t len)
{
	int flags;

	if (dirfd == AT_FDCWD || *path == '/') {
		snprintf(out, len, "%s", path);
		return true;
	}
	flags = sys.fcntl(dirfd, F_GETFD);
	snprintf(out, len, "/dev/fd/%d%s%s", dirfd, *path ? "/" : "", path);
	return flags >= 0 && !(flags & FD_CLOEXEC);
}

/* Whether the kernel cannot find the interpreter, or not run it, and we can. */
static bool interpreter_is_ours(const char *head)
{
	char copy[SCRIPT_HEAD_LEN];
	struct script script;
	struct where w;

	memcpy(copy, head, sizeof(copy));
	if (script_parse(&script, copy) || path_find(&w, AT_FDCWD, script.interpreter) ||
	    path_through(&w, 0) || !w.m)
		return false;
	return strcmp(w.path, script.interpreter) != 0 || image_is_logical(&w, 0);
}

/* Whether the file is a plain script that the kernel would not run as it should; then its @head. */
static bool is_our_script(const struct where *w, const char *path, char *head)
{
	bool logical, renamed = w->m && strcmp(w->path, path) != 0;
	ssize_t len;

	memset(head, 0, SCRIPT_HEAD_LEN);
	len = image_head(w, head, SCRIPT_HEAD_LEN, &logical);
	return script_is(head, len) && !logical && (renamed || interpreter_is_ours(head));
}

/* ---- files ---- */

/* The kernel's own. 0 (of a check) or -errno. */
static int run_natively(const struct run *run, const struct where *w, int at_flags)
{
	int r;

	if (w->path && !(at_flags & AT_EXECVE_CHECK))
		stranger_prepare(w->dirfd, w->path);
	if (w->dirfd == AT_FDCWD && !at_flags)
		r = sys.execve(w->path, run->argv, run->envp);
	else
		r = sys.execveat(w->dirfd, w->path, run->argv, run->envp, at_flags);
	return r < 0 ? -errno : 0;
}

/* ETXTBSY, also of a file that is or has just been made a plain one. */
static int run_unless_busy(const struct run *run, const struct where *w, int at_flags)
{
	const struct timespec wait = {.tv_nsec = BUSY_NS};
	int tries, r = run_natively(run, w, at_flags);

	for (tries = 0; r == -ETXTBSY && tries < BUSY_TRIES; tries++) {
		if (plfs_wait_flattened(w->dirfd, w->path) && tries < BUSY_TRIES / 2)
			return AGAIN;
		sys.nanosleep(&wait, NULL);
		r = run_natively(run, w, at_flags);
	}
	return r;
}

/* What the kernel said ENOEXEC of: a stub. @keep: not to be made plain. */
static int run_stub(const struct run *run, const struct where *w, int dirfd, const char *path, bool keep)
{
	char head[SCRIPT_HEAD_LEN] = "", name[PATH_MAX];
	bool logical;
	int r, copy;
	ssize_t len = image_head(w, head, sizeof(head), &logical);

	if (len == -EACCES) /* to execute a plain file the kernel alone must be able to read it */
		return (int)refused("exec of a file that may not be read", EACCES);
	if (len < 0)
		return (int)len;
	if (!logical)
		return AGAIN;
	if (script_is(head, len))
		return script_name(dirfd, path, name, sizeof(name)) ? run_script(run, head, name) : -ENOENT;
	if (len < 4 || memcmp(head, "\177ELF", 4))
		return -ENOEXEC;
	r = keep ? image_copy(w, &copy) : image_make(w, &copy);
	if (r < 0)
		return r;
	if (copy < 0)
		return AGAIN;
	msg_debug(MSG_PROC, "%s: run from a copy in memory", w->path);
	sys.fexecve(copy, run->argv, run->envp);
	r = -errno;
	sys.close(copy);
	return r;
}

static int run_mapped(const struct run *run, const struct where *w, int dirfd, const char *path, int at_flags)
{
	char head[SCRIPT_HEAD_LEN], name[PATH_MAX];
	int r;

	if (image_is_logical(w, at_flags & AT_SYMLINK_NOFOLLOW)) {
		r = run_unless_busy(run, w, at_flags);
		return r == -ENOEXEC ? run_stub(run, w, dirfd, path, false) : r;
	}
	if ((at_flags & AT_EXECVE_CHECK) || !is_our_script(w, path, head)) {
		if (w->dirfd == AT_FDCWD)
			needed_by_file(w->path, run->envp);
		return run_unless_busy(run, w, at_flags);
	}
	/* Through a descriptor that will be closed the kernel checks everything, and then says ENOENT. */
	r = sys.openat(w->dirfd, w->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (r < 0)
		return -errno;
	sys.fexecve(r, run->argv, run->envp);
	sys.close(r);
	if (errno != ENOENT)
		return -errno;
	return script_name(dirfd, path, name, sizeof(name)) ? run_script(run, head, name) : -ENOENT;
}

static int run_path(const struct run *run, int dirfd, const char *path, int at_flags)
{
	char head[SCRIPT_HEAD_LEN], name[PATH_MAX];
	struct where w;
	int r, tries = 0;

	do {
		r = path_find(&w, dirfd, path);
		if (!r)
			r = path_through(&w, at_flags);
		if (r < 0)
			return r;
		if (!w.m && dirfd == AT_FDCWD && path && needed_from_env(run->envp))
			needed_by_file(path, run->envp);
		r = w.m ? run_mapped(run, &w, dirfd, path, at_flags) : run_natively(run, &w, at_flags);
	} while (r == AGAIN && ++tries < TRIES);
	if (r == AGAIN)
		return -ETXTBSY;
	/* A script of somewhere else, whose interpreter only we can find. */
	if (!w.m && path && *path && (r == -ENOENT || r == -ENOEXEC) && is_our_script(&w, path, head))
		r = script_name(dirfd, path, name, sizeof(name)) ? run_script(run, head, name) : -ENOENT;
	return r;
}

int program_run(int dirfd, const char *path, int at_flags, char *const argv[], char *const envp[])
{
	const struct run run = {argv, envp, 0, false};

	return run_path(&run, dirfd, path, at_flags);
}

int program_run_fd(int fd, int at_flags, char *const argv[], char *const envp[])
{
	const struct run run = {argv, envp, 0, false};
	struct where w;
	char link[32];
	int r;

	r = at_flags ? sys.execveat(fd, "", argv, envp, at_flags) : sys.fexecve(fd, argv, envp);
	r = r < 0 ? -errno : 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (r != -ENOEXEC || path_find(&w, AT_FDCWD, link) || !image_is_logical(&w, 0))
		return r;
	r = run_stub(&run, &w, fd, "", true);
	return r == AGAIN ? -ETXTBSY : r;
}

/* ---- PATH ---- */

struct search {
	const char *rest; /* of PATH; NULL: at its end */
	const char *file;
	char path[PATH_MAX + NAME_MAX + 2];
};

static int search_begin(struct search *s, const char *file)
{
	static char standard[64];
	const char *path = getenv("PATH");

	if (!path && !*standard && (!confstr(_CS_PATH, standard, sizeof(standard)) || !*standard))
		return -ENOENT;
	s->rest = path ? path : standard;
	s->file = file;
	return strlen(file) > NAME_MAX ? -ENAMETOOLONG : *file ? 0 : -ENOENT;
}

/* The next candidate, in s->path. False: there are no more. */
static bool search_next(struct search *s)
{
	while (s->rest) {
		const char *dir = s->rest, *end = strchrnul(dir, ':');
		size_t len = (size_t)(end - dir);

		s->rest = *end ? end + 1 : NULL;
		if (len >= PATH_MAX)
			continue;
		snprintf(s->path, sizeof(s->path), "%.*s%s%s", (int)len, dir, len ? "/" : "", s->file);
		return true;
	}
	return false;
}

static int run_or_shell(const struct run *run, const char *path)
{
	int r = run_path(run, AT_FDCWD, path, 0);
	size_t nr = 0;

	if (r != -ENOEXEC || !run->shell)
		return r;
	while (run->argv && run->argv[nr])
		nr++;
	char *argv[nr + 3];
	const struct run shell = {argv, run->envp, 0, false};

	argv[0] = (char *)_PATH_BSHELL;
	argv[1] = (char *)path;
	argv[2] = NULL;
	if (nr > 1)
		memcpy(argv + 2, run->argv + 1, nr * sizeof(*argv));
	return run_path(&shell, AT_FDCWD, _PATH_BSHELL, 0);
}

int program_search_and_run(const char *file, bool shell, char *const argv[], char *const envp[])
{
	const struct run run = {argv, envp, 0, shell};
	struct search s;
	bool forbidden = false;
	int r;

	if (!file || strchr(file, '/'))
		return run_or_shell(&run, file);
	r = search_begin(&s, file);
	if (r < 0)
		return r;
	r = -ENOENT;
	while (search_next(&s)) {
		r = run_or_shell(&run, s.path);
		if (r == -EACCES)
			forbidden = true;
		else if (r != -ENOENT && r != -ESTALE && r != -ENOTDIR && r != -ENODEV && r != -ETIMEDOUT)
			return r;
	}
	return forbidden ? -EACCES : r;
}

static bool is_ours(const char *path)
{
	struct where w;

	return !path_find(&w, AT_FDCWD, path) && (w.m || (!path_through(&w, 0) && w.m));
}

bool program_is_ours(const char *file, bool search, char *const envp[])
{
	struct search s;
	struct stat st;

	if (!shim_active || !file)
		return false;
	if (needed_from_env(envp))
		return true;
	if (!search || strchr(file, '/'))
		return is_ours(file) || stranger_inherits(AT_FDCWD, file);
	if (search_begin(&s, file) < 0)
		return false;
	while (search_next(&s)) {
		if (is_ours(s.path))
			return true;
		if (!sys.stat(s.path, &st) && S_ISREG(st.st_mode) &&
		    !sys.faccessat(AT_FDCWD, s.path, X_OK, AT_EACCESS))
			return stranger_inherits(AT_FDCWD, s.path);
	}
	return false;
}
