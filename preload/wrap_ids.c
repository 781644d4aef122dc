/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process of root's becomes another user's, as setpriv(1), su(1) and daemons do. Descriptors stay open
 * then, but the logs of a file are opened by name when they are needed, and that user may not reach them. So
 * the files that this user could not open are moved into their bodies before. seteuid() can be taken back,
 * and does nothing here.
 */
#include "fdtable.h"
#include "ids.h"

void ids_before_user(uid_t euid)
{
	unsigned top = __atomic_load_n(&fdtable_top, __ATOMIC_RELAXED);
	int saved = errno;

	if (!top || !euid || euid == (uid_t)-1 || geteuid())
		return;
	for (unsigned fd = 0; fd < top; fd++) {
		struct ofile *f = fd_find((int)fd);
		int r = f ? plfs_before_user(f->file, euid) : 0;

		if (f)
			fd_put(f);
		if (r < 0)
			refused("a file that root has open and gives to another user", -r);
	}
	errno = saved;
}

EXPORT int setuid(uid_t uid)
{
	ids_before_user(uid);
	return sys.setuid(uid);
}

EXPORT int setreuid(uid_t uid, uid_t euid)
{
	ids_before_user(euid);
	return sys.setreuid(uid, euid);
}

EXPORT int setresuid(uid_t uid, uid_t euid, uid_t suid)
{
	ids_before_user(euid);
	return sys.setresuid(uid, euid, suid);
}
