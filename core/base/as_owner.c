/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ids that the file system goes by, of one thread. The C library would change the groups of all threads,
 * so the kernel is asked itself. Without root's id the kernel also takes the capabilities away that concern
 * files; with it they come back.
 */
#include "core/base/as_owner.h"

#include "core/base/alloc.h"
#include "core/base/sys.h"

#include <grp.h>
#include <sys/syscall.h>
#include <unistd.h>

/* 32-bit kernels have a second set of calls, for ids of more than 16 bits. */
#ifdef SYS_setfsuid32
#define SETFSUID SYS_setfsuid32
#define SETFSGID SYS_setfsgid32
#define SETGROUPS SYS_setgroups32
#else
#define SETFSUID SYS_setfsuid
#define SETFSGID SYS_setfsgid
#define SETGROUPS SYS_setgroups
#endif

/* These two return the id from before, whether it could be changed or not. */
uid_t as_owner_set_uid(uid_t uid) { return (uid_t)sys.syscall(SETFSUID, (unsigned long)uid); }

uid_t as_owner_uid(void) { return as_owner_set_uid((uid_t)-1); } /* which is nobody's: nothing changes */

static gid_t set_gid(gid_t gid) { return (gid_t)sys.syscall(SETFSGID, (unsigned long)gid); }

static bool keep_groups(struct as_owner *a)
{
	a->nr_groups = getgroups(0, NULL);
	a->groups = a->nr_groups < 0 ? NULL : mem_alloc((size_t)(a->nr_groups + 1) * sizeof(gid_t));
	if (a->groups)
		a->nr_groups = getgroups(a->nr_groups, a->groups);
	return a->groups && a->nr_groups >= 0;
}

void as_owner_begin(struct as_owner *a, uid_t uid, gid_t gid)
{
	int saved ERRNO_KEPT = errno;

	if (a->is || !uid || geteuid())
		return;
	if (keep_groups(a) && !sys.syscall(SETGROUPS, 0, NULL)) {
		a->is = true;
		a->gid = set_gid(gid);
		a->uid = as_owner_set_uid(uid);
		if (as_owner_set_uid(uid) == uid && set_gid(gid) == gid)
			return;
	}
	as_owner_end(a);
}

void as_owner_end(struct as_owner *a)
{
	int saved ERRNO_KEPT = errno;

	if (a->is) {
		as_owner_set_uid(a->uid);
		set_gid(a->gid);
		/* Without them root can do all the same. */
		if (sys.syscall(SETGROUPS, (unsigned long)a->nr_groups, a->groups))
			a->nr_groups = 0;
	}
	mem_free(a->groups);
	*a = (struct as_owner){ .is = false };
}
