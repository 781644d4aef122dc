/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The container: the directory that holds a logical file's droppings.
 *
 *   .plfs/3f/3fa9.../             named by the 32 hexadecimal digits of the id
 *       hostdir.K/                K = hash of the host's name, modulo the number of hostdirs
 *           data.HOST.PID.SEQ     a data log                           (datalog.h)
 *           live.HOST.PID.SEQ     its live index and stage, while open (live.h)
 *           index.HOST            the node index: blocks of closed logs (datalog.h)
 *           notice.HOST           pages that the host's processes share  (notice.h, lease.h)
 *           near.HOST             where logs of the host may lie besides (place.h)
 *           spread.N.HOST         another backend in which logs of the host may lie (spread.h)
 *       index.global              a kept map of them all               (kept_map.h)
 *       lock                      held by a process that appends at the end, or changes the header
 *       for.UID                   the container was made by another user, for the stub's owner UID; or it is
 *                                 being given to that one (given.h)
 */
#ifndef PLFS_CONTAINER_H
#define PLFS_CONTAINER_H

#include "core/store/store.h"
#include "core/backend/stub.h"

#define CONTAINER_HOSTDIRS 32 /* unless the mapping gives another number */
#define CONTAINER_PATH_LEN 256 /* enough for any path inside a container, relative to it or to the store */
#define CONTAINER_ID_OFF 16 /* of the id in the headers of droppings, but for a node index */
#define CONTAINER_REST_MAX 180 /* the longest path of a dropping, relative to the container */

struct place_dir;

struct container {
	struct store *store;
	uint8_t id[STUB_ID_LEN];
	char dir[64]; /* relative to the store's root */
	uid_t uid;    /* the stub's owner, or CONTAINER_ANYBODY: nothing is checked */
	gid_t gid;
	ino_t number; /* the stub's inode number */
	mode_t mode;  /* the stub's permissions, which the droppings follow */
	unsigned nr_hostdirs; /* that new droppings are spread over; those of others may be in any */
	unsigned checked;     /* the uses that container_check() has allowed: 1 << use */
	bool told;            /* why it is refused, or cannot be changed, has been reported */
	bool finishes;        /* who uses it now finishes a change of its owner that was killed (given.h) */
	bool give;            /* this process is root's, and gives its droppings to the stub's owner */
	bool copied;          /* its logs may have copies (spare.h) */
	bool filled;          /* the stub has a length: see container_is_purged() */
	bool near;            /* new logs of this process are made near, if they can be (placed.h) */
	struct place_dir *hold; /* while one is made: by placed_hold() or spread_hold() */
	bool spreads;           /* new logs of this process go to several backends (spread.h) */
	unsigned full;          /* of these have no space: 1 << number */
	bool made;            /* by this process, just now: a dropping of another is not likely to be there */
	uid_t caller;         /* the user of this process when the stub was looked at */
	uid_t maker;          /* of the container, as the stub's header says; or CONTAINER_ANYBODY */
	uid_t owner;          /* of the container, as container_check() has found it; or CONTAINER_ANYBODY */
	/*
	 * The stub has an access control list: the group's permissions are the most that any user in it has.
	 */
	bool listed;
	/* Of the stub, for container_chmod(). 0: not known; -1: it has no list; else acl_group() + 1 */
	int list_group;
	const void *acl;      /* the stub's access control list, while the container is made */
	size_t acl_len;
};

#define CONTAINER_ANYBODY ((uid_t)-1)

void container_init(struct container *c, struct store *store, const uint8_t *id, mode_t mode);

/* The same for the stub with the attributes @stub. */
void container_init_for(struct container *c, struct store *store, const uint8_t *id, const struct stat *stub);

/* The same, with what the header @stub says. */
void container_init_from(struct container *c, struct store *store, const struct stub *stub,
			 const struct stat *st);

/* The stub has changed its owner, group or mode. */
void container_set_stub(struct container *c, const struct stat *stub);

/* Whether @c is as the stub @stub has it. */
bool container_is_as(const struct container *c, const struct stat *stub);

/*
 * To be called after these; @fd is the stub. It reads the stub's list only where container_check() needs it.
 */
void container_look_at_list(struct container *c, int fd);

/* Before container_chmod(): set c->list_group by the stub @fd; negative: there is no descriptor of it. */
void container_look_at_group(struct container *c, int fd);

/*
 * Whether the container belongs to this stub. The stub's header names it, and a user who may write the stub
 * can forge that name: another user's container, or one that the stub's owner keeps private. The next process
 * to use the stub, its owner's or root's, would then do to that container what the forger may not. So the
 * container must have been made by the stub's owner, or for that owner by a user who could write the stub:
 * root, the maker that its header names, or others if the stub's mode lets others write. All users who may
 * write the stub must be able to read the container (CONTAINER_READ), or to write to it (CONTAINER_CHANGE:
 * anything that changes or removes it).
 *
 * 0: it does, or it is missing; -EIO: it is damaged or not of this stub; -EACCES: more users may write the
 * stub than the container. One line reports either.
 *
 * A missing container may appear later. container_is_checked() is false then: the caller checks again once it
 * has begun to use it.
 */
enum container_use { CONTAINER_READ, CONTAINER_CHANGE };
int container_check(struct container *c, enum container_use use);
bool container_is_checked(const struct container *c, enum container_use use);

/*
 * Whether the file is being given to its owner, or that was not finished (given.h). Until then its former
 * owner may still change what is in it, or have put it there: container_check() says -EIO.
 */
bool container_is_half_given(const struct container *c);

/* The same as container_check(), without a line. */
int container_try_check(struct container *c, enum container_use use);

/*
 * store_open() of a dropping; @path is relative to the store. A file that root makes becomes the stub's
 * owner's. With O_CREAT alone it is container_open_shared(), without a proof.
 */
int container_open(const struct container *c, const char *path, int flags, mode_t mode);

/*
 * Whether a file of @c, with the attributes @st, whose first @len bytes are at @head (all of them, or
 * CONTAINER_HEAD_LEN), is a dropping of this kind.
 */
#define CONTAINER_HEAD_LEN 64
typedef bool container_proof(const struct container *c, const struct stat *st, const uint8_t *head,
			     size_t len);

/*
 * A dropping that many processes write has nothing in it yet when the first of them has made it, and that may
 * be killed then. So it is made with a bit that no file has by chance, and that its owner alone can set.
 */
#define CONTAINER_UNBORN S_ISGID

static inline bool container_is_unborn(const struct stat *st)
{
	return (st->st_mode & (CONTAINER_UNBORN | S_IXGRP)) == CONTAINER_UNBORN;
}

/*
 * Whether the file at @h, with the attributes @st, may be written to under the name of a dropping. Anybody
 * who may write the stub may have renamed it to that: a file of the caller's, say, which he himself may not
 * write. So it has one name; and either all who may write the stub may write it too, or it belongs to one who
 * may have made it here, and @proof says yes. @proof NULL: nothing is written, it is locked.
 */
bool container_knows_file(const struct container *c, int h, const struct stat *st, container_proof *proof);

/* The same of the file @path, relative to the store. 0; -EIO, and one line. */
int container_check_file(const struct container *c, const char *path, int h, const struct stat *st,
			 container_proof *proof);

/*
 * Open a dropping that many processes write. With O_CREAT in @flags a missing one is made. Unless it is
 * opened for reading alone, one that was there is checked as above. A handle; -EIO, and one line; -errno.
 */
int container_open_shared(const struct container *c, const char *path, int flags, mode_t mode,
			  container_proof *proof);

/*
 * Open the lock of the container, to read and write; with @make a missing one is made. It says in it whose it
 * is. @flags: 0 or STORE_BRIEFLY. A handle; -errno.
 */
int container_open_lock(const struct container *c, int flags, bool make);

/* "DIR/REST" into @out (CONTAINER_PATH_LEN). */
void container_path(const struct container *c, const char *rest, char *out);

/*
 * Permissions of the container's directories: read of the file is listing them, write of the file is adding
 * droppings.
 */
mode_t container_dir_mode(mode_t mode);

/* "DIR/for.UID" into @out (CONTAINER_PATH_LEN). */
void container_for_path(const struct container *c, char *out);

/* Permissions of a dropping that other processes write (@shared) or only read. */
mode_t container_file_mode(const struct container *c, bool shared);

/*
 * Permissions of the container's lock: those who may write the file can open it, and nobody else. Who could
 * read it could hold a lock on it for ever.
 */
mode_t container_lock_mode(const struct container *c);

#endif
