/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The working directory. Changing into a prefix really changes into the backend directory; asked
 * where it is, the answer is mapped back.
 */
#include "bynumber.h"
#include "path.h"

#include <stdlib.h>
#include <sys/syscall.h>

EXPORT int chdir(const char *path)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	if (r < 0)
		return (int)done(r);
	critical_enter();
	r = sys.chdir(w.path);
	if (!r && shim_active)
		path_cwd_changed();
	critical_leave();
	return r;
}

EXPORT int fchdir(int fd)
{
	bool on = shim_on();
	int r;

	critical_enter();
	r = sys.fchdir(fd_seen(fd));
	if (!r && on)
		path_cwd_changed();
	critical_leave();
	return r;
}

EXPORT int chroot(const char *path)
{
	struct where w;
	int r = path_find(&w, AT_FDCWD, path);

	if (r < 0)
		return (int)done(r);
	critical_enter();
	r = sys.chroot(w.path);
	if (!r && shim_active) {
		path_root_changed();
		path_cwd_changed();
	}
	critical_leave();
	return r;
}

/*
 * The directory as programs see it, into @out (PATH_MAX bytes). Its length, or 0: the kernel's answer will
 * do.
 */
static size_t shown_cwd(char *out)
{
	char real[PATH_MAX];
	int saved = errno;
	size_t len = 0;

	if (shim_on() && path_cwd_inside() && sys.getcwd(real, sizeof(real)))
		len = path_show(real, strlen(real), out);
	errno = saved;
	return len;
}

EXPORT char *getcwd(char *buf, size_t len)
{
	char shown[PATH_MAX];
	size_t need = shown_cwd(shown);

	if (!need)
		return sys.getcwd(buf, len);
	if (buf && !len) {
		errno = EINVAL;
		return NULL;
	}
	if (len && len <= need) {
		errno = ERANGE;
		return NULL;
	}
	if (!buf) /* the program's own malloc: it is the program that frees it */
		buf = malloc(len ? len : need + 1);
	return buf ? memcpy(buf, shown, need + 1) : NULL;
}

long bynumber_getcwd(char *buf, size_t len)
{
	char shown[PATH_MAX];
	size_t need = shown_cwd(shown);

	if (!need)
		return sys.syscall(SYS_getcwd, buf, len);
	if (len <= need)
		return done(-ERANGE);
	if (!buf)
		return done(-EFAULT);
	memcpy(buf, shown, need + 1);
	return (long)need + 1;
}

EXPORT char *__getcwd_chk(char *buf, size_t len, size_t room)
{
	if (len > room)
		__chk_fail();
	return getcwd(buf, len);
}

EXPORT char *getwd(char *buf)
{
	char dir[PATH_MAX];

	if (!buf) {
		errno = EINVAL;
		return NULL;
	}
	return getcwd(dir, sizeof(dir)) ? strcpy(buf, dir) : NULL;
}

EXPORT char *__getwd_chk(char *buf, size_t room) { return room < PATH_MAX ? getcwd(buf, room) : getwd(buf); }

EXPORT char *get_current_dir_name(void)
{
	if (shim_on() && path_cwd_inside())
		return getcwd(NULL, 0);
	return sys.get_current_dir_name();
}
