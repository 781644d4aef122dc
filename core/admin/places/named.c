/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of a backend's places: listed, given, taken away.
 */
#include "core/backend/mount.h"
#include "core/backend/place_names.h"
#include "core/base/alloc.h"
#include "core/base/msg.h"
#include "core/plfs_admin.h"
#include "core/store/posix.h"

#include <stdio.h>
#include <unistd.h>

static int tell(const struct plfs_mount *m, int ret)
{
	if (ret == -EPERM)
		msg_error(
			"%s/.plfs/places does not count: others may write it (chmod 644 mends that), or it is another user's",
			m->backend);
	else if (ret < 0)
		msg_error("%s/.plfs/places: %s", m->backend, strerror(-ret));
	return ret;
}

static struct place_names list_of(struct plfs_mount *m)
{
	return (struct place_names){ &m->store, m->uid, m->backend };
}

int plfs_place_names(const char *path, int (*fn)(void *arg, const char *name, const char *dir), void *arg)
{
	int saved ERRNO_KEPT = errno;
	struct place_names names;
	struct plfs_mount m;
	int ret = mount_open_unmapped(&m, path);

	if (ret)
		return ret;
	names = list_of(&m);
	ret = tell(&m, place_names_each(&names, fn, arg));
	store_posix_close(&m.store);
	return ret;
}

/* The list @old with @dir as the place @name, or without; all else stays. *@had: whether it had that. */
static char *list_with(const char *old, const char *name, const char *dir, bool *had)
{
	char *all = mem_alloc(strlen(old) + strlen(name) + (dir ? strlen(dir) : 0) + 32), *to = all;
	struct place_line pl;

	*had = false;
	for (size_t len; all && *old; old += len) {
		len = strcspn(old, "\n");
		len += old[len] == '\n';
		if (place_names_line(old, &pl) && !strcmp(pl.name, name)) {
			*had = true;
			continue;
		}
		memcpy(to, old, len);
		to += len;
		if (to[-1] != '\n')
			*to++ = '\n';
	}
	if (all)
		*to = '\0';
	if (all && dir)
		sprintf(to, "place %s posix %s\n", name, dir);
	return all;
}

/* Variables have their values where a program runs. */
static int check(const char *name, const char *dir)
{
	char err[256] = "", *path = NULL;

	if (!option_is_place_name(name))
		msg_error("\"%s\" is no name of a place: up to %d letters, digits, _, - and . make one, but for \"auto\"",
			  name, CONFIG_NAME_MAX);
	else if (dir && strchr(dir, '\n'))
		msg_error("a place cannot have a newline in its directory's name");
	else if (dir && !option_names_variables(dir))
		msg_error("\"%s\": behind \"$\" there is no name of a variable, as in $TMPDIR, without braces", dir);
	else if (dir && !strchr(dir, '$') && option_near(&path, dir, err, sizeof(err)))
		msg_error("%s", err);
	else
		name = NULL;
	mem_free(path);
	return name ? -EINVAL : 0;
}

static int change(struct plfs_mount *m, const char *name, const char *dir)
{
	const struct place_names names = list_of(m);
	char *old = NULL, *all = NULL;
	int ret = place_names_read(&names, &old);
	bool had = false;

	if (!ret || ret == -ENOENT) {
		all = list_with(old ? old : "", name, dir, &had);
		ret = !all ? -ENOMEM : dir || had ? 0 : -ENOENT;
	}
	if (!ret)
		ret = store_replace_durably(&m->store, PLACE_NAMES_PATH, 0644,
					    geteuid() == m->uid ? STORE_NOBODY : m->uid, all, strlen(all));
	mem_free(old);
	mem_free(all);
	return ret == -ENOENT && !had ? ret : tell(m, ret);
}

int plfs_place_name(const char *path, const char *name, const char *dir)
{
	int saved ERRNO_KEPT = errno;
	struct plfs_mount m;
	int ret = check(name, dir);

	if (!ret)
		ret = mount_open_unmapped(&m, path);
	if (ret)
		return ret;
	if (geteuid() && geteuid() != m.uid) {
		msg_error("%s: its owner, user %u, gives places their names", m.backend, (unsigned)m.uid);
		ret = -EPERM;
	}
	if (!ret)
		ret = mount_prepare(&m);
	if (!ret)
		ret = change(&m, name, dir);
	store_posix_close(&m.store);
	return ret;
}
