/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of types of file systems, and what each does.
 */
#include "core/store/posix_kind.h"

#include "core/base/sys.h"

#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>

/* The kernel headers of Debian 11 and RHEL 8 have neither. */
#ifndef CEPH_SUPER_MAGIC
#define CEPH_SUPER_MAGIC 0x00c36400
#endif
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

static bool is_one_of(const struct statfs *sf, const uint32_t *types, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if ((uint32_t)sf->f_type == types[i])
			return true;
	return false;
}

/*
 * Whether only this host's kernel ever changes files of this type of file system. Those that are not known
 * are taken for network file systems: that is slower, but never wrong.
 */
static bool is_local(const struct statfs *sf)
{
	static const uint32_t types[] = {
		EXT4_SUPER_MAGIC,      XFS_SUPER_MAGIC,	     BTRFS_SUPER_MAGIC,
		F2FS_SUPER_MAGIC,      TMPFS_MAGIC,	     RAMFS_MAGIC,
		OVERLAYFS_SUPER_MAGIC, 0x2fc12fc1 /* zfs */, 0xca451a4e /* bcachefs */,
		0x3153464a /* jfs */,
	};

	return is_one_of(sf, types, ARRAY_SIZE(types));
}

/*
 * Whether names and sizes reach the disk in the order in which they changed: by one journal (ext4, XFS), or
 * by transactions of all (ZFS). btrfs and F2FS write what belongs to a file that is synced before older
 * changes of others; of the rest we do not know.
 */
static bool has_one_order(const struct statfs *sf)
{
	static const uint32_t types[] = {
		EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC, 0x2fc12fc1 /* zfs */,
	};

	return is_one_of(sf, types, ARRAY_SIZE(types));
}

/*
 * Whether its hosts' memories of names are kept the same, by locks or leases. Where a host looks again only
 * after a time (NFS, most that are in FUSE) they are not.
 */
static bool shares_names(const struct statfs *sf)
{
	static const uint32_t types[] = {
		CEPH_SUPER_MAGIC,	 OCFS2_SUPER_MAGIC,	0x01161970 /* GFS2 */,
		0x0bd00bd0 /* Lustre */, 0x47504653 /* GPFS */,
	};

	return is_one_of(sf, types, ARRAY_SIZE(types));
}

static bool is_fuse(const struct statfs *fs) { return fs->f_type == FUSE_SUPER_MAGIC; }

/* Whether the root has an attribute that only one kind of file system has. */
static bool has_attribute(const struct store *s, const char *name)
{
	char root[32];

	snprintf(root, sizeof(root), "/proc/self/fd/%d", s->root);
	return sys.getxattr(root, name, NULL, 0) > 0;
}

/* Mounted by the kernel or by ceph-fuse. All its directories have this attribute. */
static bool is_ceph(const struct store *s, const struct statfs *fs)
{
	return fs->f_type == CEPH_SUPER_MAGIC || (is_fuse(fs) && has_attribute(s, "ceph.dir.entries"));
}

/* Its own name of each file. */
static bool is_gluster(const struct store *s, const struct statfs *fs)
{
	return is_fuse(fs) && has_attribute(s, "glusterfs.gfid");
}

bool store_kind_set(struct store *s, const struct statfs *fs)
{
	bool fuse = is_fuse(fs);

	s->remote = !is_local(fs);
	s->keeps_order = has_one_order(fs);
	s->coherent = !s->remote || shares_names(fs);
	s->late_sizes = is_gluster(s, fs);
	/* NFS, Lustre and GlusterFS do; CephFS keeps the two apart; of others it is not known. */
	s->flock_is_range = s->remote && !is_ceph(s, fs);
	s->zeros_reserve = fs->f_type == EXT4_SUPER_MAGIC || fs->f_type == XFS_SUPER_MAGIC;
	s->allocates_ahead = fs->f_type == EXT4_SUPER_MAGIC;
	/*
	 * A page that ceph-fuse is asked for stays locked in the kernel until it comes, and if ceph-fuse has
	 * to give up what it knows of the file meanwhile, because another host writes it, it waits for that
	 * page: for ever. Through FUSE O_DIRECT locks none, and asks for no alignment.
	 */
	s->uncached = s->remote && fuse ? O_DIRECT : 0;
	return s->remote && fuse;
}
