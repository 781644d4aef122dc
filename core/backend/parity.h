/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parity of closed data logs that lie in several backends (parity=). A group has at most one log of each
 * backend, and one or two parity files in backends that have none of them: so what one backend has, or two,
 * can be made of what the others have. The first file is the sum of the logs, and the second that of
 * their multiples by 1, 2, 4, 8 ... in the order in which its block names them (core/base/gf256.h).
 *
 *   BACKEND/.plfs/XX/ID/parity                             at home: a block for each parity file, appended
 *   BACKEND/.plfs/XX/ID/hostdir.K/parity.HOST.N            a parity file at home, or
 *   OTHER/plfs.UID/BACKEND-ID-shared/XX/ID/hostdir.K/      in another backend
 *       parity.HOST.N
 *
 *   block                         (little-endian)
 *   off size field
 *     0   8  magic          "PLFSPAR1"
 *     8   4  version        1
 *    12   4  crc            CRC-32C of the whole block with this field 0
 *    16  16  id             of the container
 *    32   8  len            bytes of the sum: the length of the longest log
 *    40   4  data_crc       in a parity file: CRC-32C of the sum; in "parity": 0
 *    44   4  size           of the block, a multiple of 8
 *    48   4  compat         features that a reader may ignore: 0
 *    52   4  incompat       features that a reader must know: 1: "row" is not 0
 *    56   4  nr             of logs, at most 7; 0: this file is no more
 *    60   4  row            0: the first parity file of the group; 1: the second
 *    64   .  file           "hostdir.K/parity.HOST.N" and a zero
 *     .   .  top            OTHER/plfs.UID/BACKEND-ID-shared and a zero; the zero alone: home
 *     .   .  logs           each: 8 bytes with the length of its file, its path in the container, a zero
 *     .   .  zeros
 *
 *   parity.HOST.N
 *     0   .  a block, then zeros
 *  4096   .  the sum of the logs' files, each as long as it was, with zeros behind it
 *
 * What was appended to a log never changes, and no other log gets its name. So parity stays right when a log
 * is continued; it does not cover what is new. With a log that is removed a group covers nothing any more.
 * Two files are of one group if they name the same logs, of the same lengths.
 *
 * The block in "parity" comes before the file: a file to which nothing leads would stay for ever. The first
 * byte of "parity" is locked by the process that makes groups.
 */
#ifndef PLFS_PARITY_H
#define PLFS_PARITY_H

#include "core/backend/container.h"
#include "core/backend/option.h"
#include "core/backend/place.h"

#define PARITY_MAGIC "PLFSPAR1"
#define PARITY_VERSION 1
#define PARITY_INCOMPAT_ROW 1u
#define PARITY_INCOMPAT_KNOWN PARITY_INCOMPAT_ROW
#define PARITY_ROWS_MAX 2u
#define PARITY_HEADER_LEN 64
#define PARITY_DATA_OFF 4096
#define PARITY_LOGS_MAX (CONFIG_BACKENDS_MAX - 1)
#define PARITY_NAME "parity"

struct parity_log {
	uint64_t len; /* of the file */
	char path[CONTAINER_REST_MAX + 1];
};

/* A parity file, and the logs that it is of. */
struct parity_group {
	uint64_t len;
	uint32_t data_crc;
	unsigned row;
	unsigned nr; /* of logs */
	char file[CONTAINER_REST_MAX + 1];
	char top[PLACE_PATH_LEN];
	struct parity_log logs[PARITY_LOGS_MAX];
};

/* Into @buf of PARITY_DATA_OFF bytes, zeros behind it; the size of the block. */
size_t parity_encode(const struct container *c, const struct parity_group *g, uint8_t *buf);

/* Of @len bytes at @buf. The size; -EBADMSG: it is none of this container; -EPROTONOSUPPORT. */
ssize_t parity_decode(const struct container *c, struct parity_group *g, const uint8_t *buf, size_t len);

/* The parity files of a container that are not dropped, in the order in which they were made. */
struct parity_groups {
	struct parity_group *v;
	size_t nr, cap;
	size_t nr_dropped;
};

/* Zeros to begin with; released in any case. 0: also if there are none; -errno. */
int parity_read(const struct container *c, struct parity_groups *gs);
void parity_release(struct parity_groups *gs);

/* Whether both are of the same logs, with the same lengths. */
bool parity_is_of_same(const struct parity_group *a, const struct parity_group *b);

/* Whether they are the first and the second parity file of one group. */
bool parity_is_pair(const struct parity_group *a, const struct parity_group *b);

/* The other parity file of the group that @g is of, the latest. NULL: there is none. */
const struct parity_group *parity_other(const struct parity_groups *gs, const struct parity_group *g);

/* The length of the log @path in @g; 0: it is none of its logs. */
uint64_t parity_has(const struct parity_group *g, const char *path);

/* Open "parity", made if need be, and lock it. A handle of the home store; -EBUSY: another has it; -errno. */
int parity_lock(const struct container *c);

/* Append the block of @g, durably; with @g->nr 0 it drops that file. @h: of parity_lock(). */
int parity_append(const struct container *c, int h, const struct parity_group *g);

/* The path of a new parity file beside the log @path, into @g->file. -errno. */
int parity_name(struct parity_group *g, const char *path);

/* The hostdir of the parity file; parity_begin() makes it, of @ps (NULL: home). *@dir: to place_leave(). */
int parity_enter(const struct container *c, const struct parity_group *g, struct place_dir *dir);
int parity_begin(const struct container *c, const struct place_settings *ps, struct parity_group *g,
		 struct place_dir *dir);

/* "OTHER/plfs.UID/BACKEND-ID-shared" of @ps into @top (PLACE_PATH_LEN). */
int parity_top(const struct container *c, const struct place_settings *ps, char *top);

#endif
