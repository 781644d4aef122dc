/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a name on the command line to an open file: below a prefix, on a backend of the settings, or on
 * another one, which its container directory identifies.
 */
#include "tool.h"

#include <dlfcn.h>
#include <stdlib.h>

#define LIBRARY "libplfs.so"
#define MAX_LINKS 40 /* as the kernel */

/* ---- the library in front of the command ---- */

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

/* The library's wrapper of execv() keeps an LD_PRELOAD that is set, even to an empty value. */
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
	for (char *p = list ? strtok_r(list, ": ", &save) : NULL; p && rest;
	     p = strtok_r(NULL, ": ", &save)) {
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

/* @dir as it stands in a mapping, its special characters escaped, into @out (2 * PATH_MAX). */
static void escape(const char *dir, char *out)
{
	for (; *dir; dir++) {
		if (strchr(":,={}\\", *dir))
			*out++ = '\\';
		*out++ = *dir;
	}
	*out = '\0';
}

enum has { NO_CONTAINERS, OWN_CONTAINERS, CONTAINERS_OF_OTHERS };

/* What the directory @dir has for files of the user @uid. *@owner: whose its containers are. */
static enum has look_for_containers(const char *dir, uid_t uid, uid_t *owner)
{
	char path[PATH_MAX + sizeof("/" PLFS_DIR_NAME "/format")];
	struct stat st, plfs;

	snprintf(path, sizeof(path), "%s/" PLFS_DIR_NAME "/format", dir);
	if (!*dir || access(path, F_OK))
		return NO_CONTAINERS;
	*strrchr(path, '/') = '\0';
	if (lstat(dir, &st) || lstat(path, &plfs))
		return NO_CONTAINERS;
	*owner = plfs.st_uid;
	return plfs_counts(&st, &plfs, uid) ? OWN_CONTAINERS : CONTAINERS_OF_OTHERS;
}

/*
 * Shorten @path to the nearest directory, itself or above it, that holds its containers, or is in the
 * settings @text. Those of others count where there are no better ones. False: none does.
 */
static bool find_backend(char *path, const char *text)
{
	char others[PATH_MAX] = "", escaped[2 * PATH_MAX], *slash;
	uid_t owner = 0, owner_of_others = 0;
	struct stat st;

	for (bool found = !lstat(path, &st); found; *slash = '\0') {
		enum has has = look_for_containers(path, st.st_uid, &owner);

		escape(path, escaped);
		if (has == OWN_CONTAINERS || (has && mentions(text, escaped))) {
			if (*others)
				tool_error(
					"%s/" PLFS_DIR_NAME ": user %u owns it, who has no containers of files of user %u: passed over for %s; -m %s takes it",
					others, (unsigned)owner_of_others, (unsigned)st.st_uid, path, others);
			return true;
		}
		if (has && !*others) {
			strcpy(others, path);
			owner_of_others = owner;
		}
		slash = strrchr(path, '/');
		if (!slash)
			break;
	}
	strcpy(path, others);
	return *path;
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
	char escaped[2 * PATH_MAX], *grown;

	escape(dir, escaped);
	if (mentions(*text, escaped))
		return;
	grown = realloc(*text, len + strlen(escaped) + 2);
	if (!grown)
		return;
	*text = grown;
	sprintf(grown + len, "%s%s", len ? ":" : "", escaped);
}

/* @all: a directory that is no backend is mapped too. */
static void setup(const char *map, char *const *names, int nr, bool all)
{
	const char *rc = getenv("PLFSRC");
	char *text, *absolute;

	tool_leave_library();
	if (!map)
		map = getenv("PLFS_MAP");
	if ((!map || !*map) && rc && *rc) {
		plfs_setup(NULL);
		return;
	}
	absolute = map ? plfs_map_absolute(map) : NULL;
	text = strdup(absolute ? absolute : map ? map : "");
	mem_free(absolute);
	for (int i = 0; text && i < nr; i++) {
		char path[PATH_MAX];
		struct stat st;

		if (canonical(names[i], path) && find_backend(path, text))
			add_in_place(&text, path);
		else if (all && realpath(names[i], path) && !stat(path, &st) && S_ISDIR(st.st_mode))
			add_in_place(&text, path);
	}
	plfs_setup(text ? text : map);
	free(text);
}

void target_setup(const char *map, char *const *names, int nr)
{
	setup(map, names, nr, false);
}

void target_setup_directory(const char *map, char *name)
{
	setup(map, &name, 1, true);
}

/* ---- files ---- */

/* Whether @path has an empty component, "." or "..". */
static bool is_untidy(const char *path)
{
	for (; (path = strchr(path, '/')); path++) {
		size_t len = strcspn(path + 1, "/");

		if (len <= 2 && !strncmp(path + 1, "..", len))
			return true;
	}
	return false;
}

/* The canonical path of @path, but for its last component, which may be a link. False: there is none. */
static bool tidy(const char *path, char *out)
{
	char dir[PATH_MAX], *base;
	size_t len;

	snprintf(dir, sizeof(dir), "%s", path);
	base = strrchr(dir, '/') + 1;
	if (!*base || !strcmp(base, ".") || !strcmp(base, ".."))
		return realpath(path, out);
	base[-1] = '\0';
	if (!realpath(*dir ? dir : "/", out))
		return false;
	len = strlen(out);
	return snprintf(out + len, PATH_MAX - len, "/%s", base) < (int)(PATH_MAX - len);
}

/* Whether the canonical @path is in the backend of @m, where no link led to another. */
static bool is_in(const struct plfs_mount *m, const char *path)
{
	size_t len = strlen(plfs_backend(m));

	return !strncmp(path, plfs_backend(m), len) && (path[len] == '/' || !path[len]);
}

/* As plfs_path_map(), and tidy: verbs compare the path, and a walk takes the part below the backend. */
static int map_tidily(const char *full, char *path, struct plfs_mount **m)
{
	int ret = plfs_path_map(full, path, m);
	struct plfs_mount *first = *m;
	char real[PATH_MAX];

	if (ret != 1 || !tidy(path, real) || (!is_untidy(path) && is_in(first, real)))
		return ret;
	ret = plfs_path_map(real, path, m);
	if (ret == 1 && !strcmp(plfs_backend(*m), plfs_backend(first)))
		*m = first; /* of several mappings of it */
	return ret;
}

bool target_find(const char *name, char *path, struct plfs_mount **m)
{
	char full[PATH_MAX], real[PATH_MAX];
	int ret;

	*m = NULL;
	if (!make_absolute(name, full))
		return false;
	ret = map_tidily(full, path, m);
	if (!ret && realpath(full, real)) /* through a symbolic link from outside */
		ret = plfs_path_map(real, path, m);
	if (ret == -ENOENT)
		tool_error("%s: inside a container directory: name the logical file instead", name);
	else if (ret < 0)
		tool_error("%s: %s", name, strerror(-ret));
	if (!ret) {
		*m = NULL;
		strcpy(path, full);
	}
	return ret >= 0;
}

/* The path that the link @path holds, absolute, into @full. 0; -errno. */
static int read_link(const char *path, char *full)
{
	char to[PATH_MAX];
	ssize_t n = readlink(path, to, sizeof(to) - 1);
	int dir_len = (int)(strrchr(path, '/') + 1 - path);

	if (n < 0)
		return -errno;
	to[n] = '\0';
	if (*to == '/')
		dir_len = 0;
	return snprintf(full, PATH_MAX, "%.*s%s", dir_len, path, to) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

bool target_follow(const char *name, char *path, struct plfs_mount **m)
{
	char full[PATH_MAX];
	struct stat st;
	int ret = 0;

	if (!target_find(name, path, m))
		return false;
	for (int i = 0; *m && !ret && !lstat(path, &st) && S_ISLNK(st.st_mode); i++) {
		ret = i < MAX_LINKS ? read_link(path, full) : -ELOOP;
		if (!ret && !target_find(full, path, m))
			return false;
	}
	if (ret)
		tool_error("%s: %s", name, strerror(-ret));
	return !ret;
}

const char *target_unmapped(const char *path, const char *otherwise)
{
	if (!access(path, F_OK) || errno != ENOENT || plfs_mount_at(0))
		return otherwise;
	return "No such file or directory; there is no mapping: give one with -m, or name the file on its backend";
}

/* The kernel's name of the open file: a rename must replace that one if symbolic links led to it. */
static void take_real_path(struct target *t)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", t->fd);
	n = readlink(link, t->path, sizeof(t->path) - 1);
	if (n > 0)
		t->path[n] = '\0';
}

static void tell_stray(const char *name, const char *base, const char *backend)
{
	char there[PATH_MAX];

	snprintf(there, sizeof(there), "%s/%s", backend ? backend : "BACKEND", base);
	if (backend && access(there, F_OK))
		tool_error(
			"%s is a stub; its data is in %s, which this directory is not part of: bring it back to where it was there, or to any place: mv %s %s",
			name, backend, name, there);
	else
		tool_error(
			"%s is a stub; its data is in %s, which this directory is not part of: plfs flatten -o %s %s",
			name, backend ? backend : "a backend", name, there);
}

/*
 * A stub that lies in no backend: cp, tar or rsync without the library brought it there alone. What it looks
 * like is not what the file has.
 */
static bool is_stray(const struct target *t)
{
	const char *backend, *base = strrchr(t->name, '/');
	int stray = plfs_is_stray(t->fd, &backend);

	if (stray == PLFS_STRAY_BODY)
		tool_error(
			"%s is a stub in a directory that is no backend; its data is behind its first 4096 bytes: tail -c +4097 %s >FILE",
			t->name, t->name);
	else if (stray == PLFS_STRAY_CONTAINER)
		tell_stray(t->name, base ? base + 1 : t->name, backend);
	return stray > 0;
}

const char *target_directory_hint = "";

bool target_open_unsized(struct target *t, const char *name)
{
	char holder[128];
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

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
		tool_error("%s: %s%s", name, t->fd == -ENOENT ? target_unmapped(t->path, strerror(ENOENT)) :
			   strerror(-t->fd), t->fd == -EBUSY ? tool_holder(t->path, holder, sizeof(holder)) : "");
		return false;
	}
	take_real_path(t);
	if (fstat(t->fd, &t->st) || !S_ISREG(t->st.st_mode)) {
		tool_error("%s: %s%s", name, S_ISDIR(t->st.st_mode) ? "a directory" : "not a regular file",
			   S_ISDIR(t->st.st_mode) ? target_directory_hint : "");
		target_close(t);
		return false;
	}
	if (!t->file && is_stray(t)) {
		target_close(t);
		return false;
	}
	t->size = t->file ? 0 : (uint64_t)t->st.st_size;
	return true;
}

bool target_open(struct target *t, const char *name)
{
	off_t size;

	if (!target_open_unsized(t, name))
		return false;
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
	/* The kernel's descriptor first: its lock says that the file is in use. */
	if (t->fd >= 0)
		close(t->fd);
	if (t->file)
		plfs_close(t->file);
	t->fd = -1;
	t->file = NULL;
}
