/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes that a release has left near.
 */
#include "core/file/release.h"

#include "core/backend/place.h"
#include "core/backend/stub.h"
#include "core/base/msg.h"
#include "core/write/durable.h"

static __attribute__((noinline, cold)) void tell(struct inode *ino, int fd)
{
	const char *near = ino->m->store.near->near;
	char name[PATH_MAX];

	if (ino->release_told)
		return;
	ino->release_told = true;
	msg_error("%s: what was written stays in %s, where other hosts cannot read it (release=home): %s; then run plfs drain %s",
		  stub_name(fd, name, sizeof(name)), near, strerror(-ino->release_error), near);
}

void release_note(struct inode *ino, int ret, bool tells)
{
	if (likely(!ret) || !place_releases_home(&ino->m->store))
		return;
	ino->release_error = ret;
	if (tells)
		tell(ino, inode_any_fd(ino));
}

/* What a sync copies is what this process, and others of the host, have released, and more. */
int release_end(struct inode *ino, int fd)
{
	bool insist = true;
	int ret = 0;

	if (likely(!ino->release_error))
		return 0;
	if (!ino->v.stub.in_body)
		ret = durable_sync(&ino->c, NULL, &insist);
	ino->release_error = ret < 0 ? (ret == -EREMOTE ? -EIO : ret) : 0;
	ret = ino->release_error;
	if (ret)
		tell(ino, fd);
	release_forget(ino);
	return ret;
}
