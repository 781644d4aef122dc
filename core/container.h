/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The container: the directory that holds a logical file's droppings.
 *
 *   .plfs/3f/3fa9.../             named by the 32 hexadecimal digits of the id
 *       hostdir.K/                K = hash of the host's name, modulo the number of hostdirs
 *           data.HOST.PID.SEQ     a data log                           (dropping.h)
 *           live.HOST.PID.SEQ     its live index and stage, while open (stage.h)
 *           index.HOST            the node index: blocks of closed logs (dropping.h)
 *           notice.HOST           a word that changes when somebody begins to write (watch.h)
 *       index.global              a kept map of them all               (globalcache.h)
 *       lock                      held by who appends at the file's end
 */
#ifndef PLFS_CONTAINER_H
#define PLFS_CONTAINER_H

#include "store.h"
#include "stub.h"

#define CONTAINER_HOSTDIRS 32 /* unless the mapping says another number */
#define CONTAINER_PATH_LEN 256 /* enough for any path inside a container */

struct container {
	struct store *store;
	uint8_t id[STUB_ID_LEN];
	char dir[64]; /* relative to the store's root */
	mode_t mode;  /* the stub's permissions, which the droppings follow */
	unsigned nr_hostdirs; /* that new droppings are spread over; those of others may be in any */
};

enum dropping_kind { DROPPING_OTHER, DROPPING_DATA, DROPPING_LIVE, DROPPING_INDEX };

void container_init(struct container *c, struct store *store, const uint8_t *id, mode_t mode);

/* "DIR/REST" into @out (CONTAINER_PATH_LEN). */
void container_path(const struct container *c, const char *rest, char *out);

/* Make the container's directory and hostdir.@hostdir. Racing processes may do it at once. */
int container_make(const struct container *c, unsigned hostdir);

/* Permissions of a dropping that others may have to write into (@shared) or only read. */
mode_t container_file_mode(const struct container *c, bool shared);

/*
 * @fn for each dropping: @path is relative to the container ("hostdir.3/data..."), @name its last component. -ENOENT if
 * there is no such container. Stops at and returns a non-zero.
 */
int container_list(const struct container *c,
		   int (*fn)(void *arg, const char *path, const char *name, enum dropping_kind kind), void *arg);

/* Remove it with all that is in it; that it is gone already is no error. */
int container_remove(const struct container *c);

/* Let directory and droppings follow the stub's new permissions or owner; what is not ours to change is left. */
int container_chmod(struct container *c, mode_t mode);
int container_chown(const struct container *c, uid_t uid, gid_t gid);

#endif
