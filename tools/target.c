/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a name on the command line to an open file: below a prefix, on a backend that the settings name, or on
 * one that they do not. The last kind is known by the container directory in it.
 */
#include "tool.h"

#include <dlfcn.h>
#include <stdlib.h>

#define LIBRARY "libplfs.so"

/* ---- the library in front of us ---- */

static bool library_is_active(void)
{
	void *symbol = dlsym(RTLD_DEFAULT, "open");
	const char *slash;
	Dl_info info;

	if (!symbol || !dladdr(symbol, &info) || !info.dli_fname)
		return false;
	slash = strrchr(info.dli_fname, '/');
	return !strcmp(slash ? slash + 1 : info.dli_fname, LIBRARY);
}

/* The library's wrapper of execv() leaves an LD_PRELOAD alone that is set, be it to nothing. */
void tool_leave_library(void)
{
	const char *preload = getenv("LD_PRELOAD");
	char self[PATH_MAX], **argv = NULL;
	char *rest, *list, *save, *cmdline = NULL;
	size_t len = 0, nr = 0;
	bool found = false;
	FILE *f;

	if (!library_is_active())
		return;
	list = strdup(preload ? preload : "");
	rest = calloc(1, strlen(list ? list : "") + 2);
	for (char *p = list ? strtok_r(list, ": ", &save) : NULL; p && rest; p = strtok_r(NULL, ": ", &save)) {
		if (strstr(p, LIBRARY)) {
			found = true;
			continue;
		}
		strcat(strcat(rest, *rest ? ":" : ""), p);
	}
	f = fopen("/proc/self/cmdline", "r");
	while (f && getdelim(&cmdline, &len, 0, f) > 0) {
		char **more = realloc(argv, (nr + 2) * sizeof(*argv));

		if (!more)
			break;
		argv = more;
		argv[nr++] = strdup(cmdline);
		argv[nr] = NULL;
	}
	if (found && rest && argv && realpath("/proc/self/exe", self) && !setenv("LD_PRELOAD", rest, 1))
		execv(self, argv);
	tool_error("cannot run with " LIBRARY " in front: take it out of LD_PRELOAD and /etc/ld.so.preload");
	exit(TOOL_FAILED);
}

/* ---- settings ---- */

/* Whether @text mentions the directory @dir as a whole name. */
static bool mentions(const char *text, const char *dir)
{
	size_t len = strlen(dir);

	for (const char *p = text; (p = strstr(p, dir)); p++) {
		const char *after = p + len;

		while (*after == '/')
			after++;
		if ((p == text || strchr(":=,", p[-1])) && (!*after || strchr(":=,{", *after)))
			return true;
	}
	return false;
}

/* The directory above @path, or itself, that holds containers. False: none does. @path is cut down to it. */
static bool find_backend(char *path)
{
	char format[PATH_MAX + sizeof("/" PLFS_DIR_NAME "/format")];
	char *slash;

	for (;;) {
		snprintf(format, sizeof(format), "%s/" PLFS_DIR_NAME "/format", path);
		if (*path && !access(format, F_OK))
			return true;
		slash = strrchr(path, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
}

/* @name as an absolute path. */
static bool make_absolute(const char *name, char *path)
{
	char cwd[PATH_MAX] = "";
	bool relative = *name != '/';

	if (relative && !getcwd(cwd, sizeof(cwd))) {
		tool_error("the working directory: %s", strerror(errno));
		return false;
	}
	if (*name && snprintf(path, PATH_MAX, "%s%s%s", cwd, relative ? "/" : "", name) < PATH_MAX)
		return true;
	tool_error("%s: %s", name, strerror(*name ? ENAMETOOLONG : ENOENT));
	return false;
}

/* The canonical path of @name, or, where that does not exist yet, of the directory that it would be in. */
static bool canonical(const char *name, char *path)
{
	char full[PATH_MAX], *slash;

	if (!make_absolute(name, full))
		exit(TOOL_FAILED);
	if (realpath(full, path))
		return true;
	slash = strrchr(full, '/');
	slash[slash == full] = '\0';
	return realpath(full, path);
}

/* Add the mapping of @dir onto itself to *@text, its special characters escaped. */
static void add_in_place(char **text, const char *dir)
{
	size_t len = strlen(*text);
	char escaped[2 * PATH_MAX], *p = escaped, *grown;

	for (; *dir; dir++) {
		if (strchr(":,={}\\", *dir))
			*p++ = '\\';
		*p++ = *dir;
	}
	*p = '\0';
	if (mentions(*text, escaped))
		return;
	grown = realloc(*text, len + strlen(escaped) + 2);
	if (!grown)
		return;
	*text = grown;
	sprintf(grown + len, "%s%s", len ? ":" : "", escaped);
}

void target_setup(const char *map, char *const *names, int nr)
{
	const char *rc = getenv("PLFSRC");
	char *text;

	tool_leave_library();
	if (!map)
		map = getenv("PLFS_MAP");
	if ((!map || !*map) && rc && *rc) {
		plfs_setup(NULL);
		return;
	}
	text = strdup(map ? map : "");
	for (int i = 0; text && i < nr; i++) {
		char path[PATH_MAX];

		if (canonical(names[i], path) && find_backend(path))
			add_in_place(&text, path);
	}
	plfs_setup(text ? text : map);
	free(text);
}

/* ---- files ---- */

bool target_find(const char *name, char *path, struct plfs_mount **m)
{
	char full[PATH_MAX], real[PATH_MAX];
	int ret;

	*m = NULL;
	if (!make_absolute(name, full))
		return false;
	ret = plfs_path_map(full, path, m);
	if (!ret && realpath(full, real)) /* through a symbolic link from outside */
		ret = plfs_path_map(real, path, m);
	if (ret == -ENOENT)
		tool_error("%s: inside a container directory; name the file that is above it", name);
	else if (ret < 0)
		tool_error("%s: %s", name, strerror(-ret));
	if (!ret) {
		*m = NULL;
		strcpy(path, full);
	}
	return ret >= 0;
}

/* What the kernel calls the open file, which is what to rename over if links led to it. */
static void take_real_path(struct target *t)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", t->fd);
	n = readlink(link, t->path, sizeof(t->path) - 1);
	if (n > 0)
		t->path[n] = '\0';
}

bool target_open(struct target *t, const char *name)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	off_t size;

	memset(t, 0, sizeof(*t));
	t->name = name;
	if (!target_find(name, t->path, &t->m))
		return false;
	if (t->m) {
		t->fd = plfs_open(t->m, AT_FDCWD, t->path, flags, 0, &t->file);
	} else {
		t->fd = open(t->path, flags);
		if (t->fd < 0)
			t->fd = -errno;
	}
	if (t->fd < 0) {
		tool_error("%s: %s", name, strerror(-t->fd));
		return false;
	}
	take_real_path(t);
	if (fstat(t->fd, &t->st) || !S_ISREG(t->st.st_mode)) {
		tool_error("%s: %s", name, S_ISDIR(t->st.st_mode) ? "a directory" : "no regular file");
		target_close(t);
		return false;
	}
	size = t->file ? plfs_size(t->file) : t->st.st_size;
	if (size < 0) {
		tool_error("%s: %s", name, strerror((int)-size));
		target_close(t);
		return false;
	}
	t->size = (uint64_t)size;
	return true;
}

void target_close(struct target *t)
{
	/* The kernel's first: its descriptor says that somebody has the file open. */
	if (t->fd >= 0)
		close(t->fd);
	if (t->file)
		plfs_close(t->file);
	t->fd = -1;
	t->file = NULL;
}
