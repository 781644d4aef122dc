/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Temporary files and names. The C library's own functions look and open where we cannot see it; on a mapped
 * path the names are made up here.
 */
#include "ofile.h"
#include "open_path.h"
#include "path.h"

#include <stdlib.h>
#include <sys/random.h>

/* Write a random name over the six X of @template before its last @suffix_len bytes. -EINVAL: there are none.
 */
static int new_name(char *template, int suffix_len)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	size_t len = strlen(template), i;
	uint8_t random[6];
	struct timespec now;

	if (suffix_len < 0 || len < 6 + (size_t)suffix_len)
		return -EINVAL;
	if (!sys.getrandom ||
	    sys.getrandom(random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random)) {
		sys.clock_gettime(CLOCK_MONOTONIC, &now);
		memcpy(random, &now.tv_nsec, 4);
		memcpy(random + 4, &now.tv_sec, 2);
	}
	for (i = 0; i < 6; i++)
		template[len - (size_t)suffix_len - 6 + i] = letters[random[i] % (sizeof(letters) - 1)];
	return 0;
}

static bool has_x(const char *template, int suffix_len)
{
	size_t len = strlen(template);

	return suffix_len >= 0 && len >= 6 + (size_t)suffix_len &&
	       !strncmp(template + len - (size_t)suffix_len - 6, "XXXXXX", 6);
}

/*
 * A new file, or with @dir a new directory, named after @template, which is mapped. The descriptor or 0, or
 * -errno.
 */
static int make_temp(char *template, int suffix_len, int flags, bool dir)
{
	struct where w;
	int tries, r = -EEXIST;

	if (!has_x(template, suffix_len))
		return -EINVAL;
	for (tries = 0; tries < TMP_MAX && r == -EEXIST; tries++) {
		r = new_name(template, suffix_len);
		if (!r)
			r = path_find(&w, AT_FDCWD, template);
		if (r < 0)
			break;
		if (dir)
			r = sys.mkdirat(w.dirfd, w.path, 0700) ? -errno : 0;
		else
			r = ofile_open(&w, (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL, 0600, NULL);
	}
	return r;
}

/* Whether the template lies below a mount; the name as it is, for the X are as good as any. */
static bool is_mapped(const char *template)
{
	struct where w;

	return shim_on() && !path_find(&w, AT_FDCWD, template) && w.m;
}

EXPORT int mkostemps(char *template, int suffix_len, int flags)
{
	if (!is_mapped(template))
		return sys.mkostemps(template, suffix_len, flags);
	return (int)done(make_temp(template, suffix_len, flags, false));
}
ALIAS(mkostemps64, mkostemps);

EXPORT int mkostemp(char *template, int flags)
{
	if (!is_mapped(template))
		return sys.mkostemp(template, flags);
	return (int)done(make_temp(template, 0, flags, false));
}
ALIAS(mkostemp64, mkostemp);

EXPORT int mkstemps(char *template, int suffix_len)
{
	if (!is_mapped(template))
		return sys.mkstemps(template, suffix_len);
	return (int)done(make_temp(template, suffix_len, 0, false));
}
ALIAS(mkstemps64, mkstemps);

EXPORT int mkstemp(char *template)
{
	if (!is_mapped(template))
		return sys.mkstemp(template);
	return (int)done(make_temp(template, 0, 0, false));
}
ALIAS(mkstemp64, mkstemp);

EXPORT char *mkdtemp(char *template)
{
	if (!is_mapped(template))
		return sys.mkdtemp(template);
	return done(make_temp(template, 0, 0, true)) < 0 ? NULL : template;
}

/* The template becomes a name that is not in use, or "" when there is none. */
EXPORT char *mktemp(char *template)
{
	int saved = errno, tries, r = 0;
	struct where w;
	struct stat st;

	if (!is_mapped(template))
		return sys.mktemp(template);
	r = has_x(template, 0) ? 0 : -EINVAL;
	for (tries = 0; tries < TMP_MAX && !r; tries++) {
		r = new_name(template, 0);
		if (!r)
			r = path_find(&w, AT_FDCWD, template);
		if (!r && sys.fstatat(w.dirfd, w.path, &st, AT_SYMLINK_NOFOLLOW))
			r = -errno;
	}
	if (r != -ENOENT) {
		errno = r ? -r : EEXIST;
		*template = '\0';
		return template;
	}
	errno = saved;
	return template;
}

static bool is_dir(const char *path)
{
	int saved ERRNO_KEPT = errno;
	struct stat st;

	return path && !stat(path, &st) && S_ISDIR(st.st_mode);
}

/*
 * The first of $TMPDIR, @dir and the system's own that is there, with a name after @prefix (5 bytes of it) in
 * it.
 */
EXPORT char *tempnam(const char *dir, const char *prefix)
{
	const char *const dirs[] = {secure_getenv("TMPDIR"), dir, P_tmpdir};
	size_t len;
	unsigned i;
	char *name;

	for (i = 0; shim_on() && i < ARRAY_SIZE(dirs) && !is_dir(dirs[i]); i++)
		;
	if (!shim_active || i == ARRAY_SIZE(dirs) || !is_mapped(dirs[i]))
		return sys.tempnam(dir, prefix);
	for (len = strlen(dirs[i]); len > 1 && dirs[i][len - 1] == '/'; len--)
		;
	if (!prefix || !*prefix)
		prefix = "file";
	if (asprintf(&name, "%.*s/%.5sXXXXXX", (int)len, dirs[i], prefix) < 0)
		return NULL;
	if (*mktemp(name))
		return name;
	free(name);
	return NULL;
}
