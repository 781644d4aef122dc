/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The container: the directory that holds a logical file's droppings.
 *
 *   .plfs/3f/3fa9.../             named by the 32 hexadecimal digits of the id
 *       hostdir.K/                K = hash of the host's name, modulo the number of hostdirs
 *           data.HOST.PID.SEQ     a data log                           (dropping.h)
 *           live.HOST.PID.SEQ     its live index and stage, while open (stage.h)
 *           index.HOST            the node index: blocks of closed logs (dropping.h)
 *           notice.HOST           what processes of the host tell each other (watch.h, lease.h, durable.h)
 *       index.global              a kept map of them all               (globalcache.h)
 *       lock                      held by who appends at the file's end
 *       for.UID                   made by another user than the stub's owner UID, for him
 */
#ifndef PLFS_CONTAINER_H
#define PLFS_CONTAINER_H

#include "store.h"
#include "stub.h"

#define CONTAINER_HOSTDIRS 32 /* unless the mapping says another number */
#define CONTAINER_PATH_LEN 256 /* enough for any path inside a container, relative to it or to the store */
#define CONTAINER_REST_MAX 180 /* longest path of a dropping, relative to the container: longer ones are none of ours */

struct container {
	struct store *store;
	uint8_t id[STUB_ID_LEN];
	char dir[64]; /* relative to the store's root */
	uid_t uid;    /* the stub's owner, or CONTAINER_ANYBODY: nothing is checked */
	gid_t gid;
	mode_t mode;  /* the stub's permissions, which the droppings follow */
	unsigned nr_hostdirs; /* that new droppings are spread over; those of others may be in any */
	unsigned checked;     /* what container_check() has found to be right: 1 << use */
	bool told;            /* that it is refused */
	bool give;            /* this process is root's, and works for the stub's owner: its droppings are his */
	/* The stub has an access control list: the group's permissions are the most that anybody in it has. */
	bool listed;
	const void *acl;      /* while it is made: the stub's access control list */
	size_t acl_len;
};

#define CONTAINER_ANYBODY ((uid_t)-1)

/* Whether @name, of @len bytes, is that of a hostdir: "hostdir.K", K being below CONFIG_HOSTDIRS_MAX. */
bool container_is_hostdir(const char *name, size_t len);

enum dropping_kind { DROPPING_OTHER, DROPPING_DATA, DROPPING_LIVE, DROPPING_INDEX };

void container_init(struct container *c, struct store *store, const uint8_t *id, mode_t mode);

/* The same for a stub with these attributes. */
void container_init_for(struct container *c, struct store *store, const uint8_t *id, const struct stat *stub);

/* The stub has changed its owner, group or mode. */
void container_set_stub(struct container *c, const struct stat *stub);

/* After one of these: @fd is the stub. Asks only where it makes a difference to container_check(). */
void container_look_at_list(struct container *c, int fd);

/*
 * Whether the container is one of this stub. Its header names it, and who may write the stub can write another name
 * there: of somebody else's container, or of one that the stub's owner keeps for himself. Whoever then works with the
 * stub, its owner or root above all, would do with that container what the forger could not. So it is refused unless
 * whoever may write the stub may also read the container, for reading, or write to it, for anything that changes or
 * removes it; it must have been made by the stub's owner, or for him. 0, also if it is missing; -EIO: it is damaged
 * or not of this stub, -EACCES: it may be, but others than those of the container may write the stub (one line says
 * so of both).
 *
 * One that was missing may appear: what is done then is checked again when it has been begun, unless
 * container_is_checked().
 */
enum container_use { CONTAINER_READ, CONTAINER_CHANGE };
int container_check(struct container *c, enum container_use use);
bool container_is_checked(const struct container *c, enum container_use use);

/* Open a dropping, @path relative to the store; as store_open(). What root makes for somebody is his. */
int container_open(const struct container *c, const char *path, int flags, mode_t mode);

/* "DIR/REST" into @out (CONTAINER_PATH_LEN). */
void container_path(const struct container *c, const char *rest, char *out);

/*
 * Make the container's directory and hostdir.@hostdir. Racing processes may do it at once. -EACCES where this user
 * may not make it (one line says who can help).
 */
int container_make(const struct container *c, unsigned hostdir);

/* Permissions of a dropping that others may have to write into (@shared) or only read. */
mode_t container_file_mode(const struct container *c, bool shared);

/*
 * @fn for each dropping: @path is relative to the container ("hostdir.3/data..."), @name its last component. What can
 * have no name like this is passed over. -ENOENT if there is no such container, or not even a hostdir in it, which
 * all have that a stub names. Stops at and returns a non-zero.
 */
int container_list(const struct container *c,
		   int (*fn)(void *arg, const char *path, const char *name, enum dropping_kind kind), void *arg);

/*
 * Remove it with all that is in it; that it is gone already is no error. One that is not of this stub is left
 * (container_check()).
 */
int container_remove(const struct container *c);

/*
 * Let directory and droppings follow the stub's new permissions or owner; what is not ours to change is left. -EPERM:
 * so the container's directory is, and it is open to some who are to have no permission any more. @c is that of the
 * stub as it was.
 */
int container_chmod(struct container *c, mode_t mode);
int container_chown(const struct container *c, uid_t uid, gid_t gid);

#endif
