/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * index.global: the map of a container's closed logs, kept for the next reader. It is valid while its inputs, listed
 * in it, are unchanged. One that is *confirmed* is known to be all there is, and nothing needs to be listed.
 *
 *   index.global                  (little-endian)
 *   off size field
 *     0   8  magic          "PLFSGLB1"
 *     8   4  version        2
 *    12   4  crc            CRC-32C of bytes 0..127 with this field 0
 *    16  16  container id
 *    32   8  generation_ns  as in the stub when it was made
 *    40   8  inputs_len     bytes of the list of inputs, at 144
 *    48   8  names_len      bytes of the list of logs, behind it
 *    56   8  map_off        where the map (index/map.h) begins, a multiple of 8
 *    64   8  map_len
 *    72   4  nr_logs
 *    76   4  lists_crc      CRC-32C of both lists
 *    80  48  zeros
 *   128   8  confirmed      the file's inode number; 0, or another as in a copy: not confirmed
 *   136   8  revoked        not 0: a log has been begun since
 *   144      inputs         sorted lines "PATH SIZE\n", a line for each node index
 *     .      logs           "hostdir.K/data...", each followed by a NUL, in the map's numbering
 *
 * Who makes a map renames it into place (R1), lists the container once more (R2), and confirms it (R3) if there is
 * nothing in the list that the map does not have. Who begins a log makes its live file (W1), revokes the map and
 * takes its name away (W2), tells the readers of its host (watch.h), and only then does its first write return (W3).
 * So a map that has its name and is confirmed has all that was written before it was opened:
 *
 *   W1 before R2: the list has the live file; or, if the log was closed by then, a data log that the map does not know, or a
 *                 node index that has grown. The map is not confirmed.
 *   W1 after R2:  then W2 is after R1. It takes the name from this map, or from one that came later still.
 *
 * Truncating to 0 begins no log, but changes the generation. A process killed between W1 and W2 has had no write
 * return. That a writer lists nothing, and a reader no more than once, makes it work for any number of both. It needs
 * directories that show every host what another has just done: a store that is coherent (store.h).
 */
#ifndef PLFS_GLOBALCACHE_H
#define PLFS_GLOBALCACHE_H

#include "../index/map.h"
#include "inputs.h"

struct global_index {
	const uint8_t *base; /* the mapped file, or NULL */
	size_t len;
	uint64_t ino, id; /* store_ops.identify() */
	/* As the header said when it was checked: whoever made the file may write to it still. */
	size_t inputs_len, names_len, map_off, map_len;
	uint32_t nr_logs;
};

/* What a kept map consists of. */
struct global_parts {
	const struct index_inputs *inputs;
	uint64_t generation_ns;
	char *const *logs;
	uint32_t nr_logs;
	const void *image;
	size_t image_len;
};

/* Map the file, whatever inputs it was made from. -ENOENT; -EBADMSG: damaged, revoked, or of another generation. */
int global_open(struct global_index *gi, const struct container *c, uint64_t generation_ns);

/* The same of one that global_create() has just made, by its handle. */
int global_adopt(struct global_index *gi, const struct container *c, int h, uint64_t generation_ns);
void global_close(struct global_index *gi, const struct container *c);

/* The map in it, verified. -EBADMSG */
int global_map(const struct global_index *gi, struct index_map *map);

/* The names of its logs as well: *@logs, an array of *@nr_logs, and each of them, are mem_alloc()ed, also after an error. */
int global_take(const struct global_index *gi, struct index_map *map, char ***logs, uint32_t *nr_logs);

/* Whether it was made from the node indexes of @in, no more and no less, and there are no live files. */
bool global_made_from(const struct global_index *gi, const struct index_inputs *in);

/* The list of what it was made from, up to *@end: lines "PATH SIZE\n". */
const char *global_inputs(const struct global_index *gi, const char **end);

/* As index_inputs.logs_digest, of the logs that it knows. */
uint64_t global_logs_digest(const struct global_index *gi);

/* Whether it is confirmed. Of one that had its name when it was opened: it has all that was written before that. */
bool global_is_confirmed(const struct global_index *gi);

/* Whether it is confirmed and has its name: it has all that was written until now. */
bool global_is_current(const struct global_index *gi, const struct container *c);

/* Changes to other than 0 when somebody of this host begins a log. */
const uint64_t *global_revoked(const struct global_index *gi);

/* Make the file, or another in place of it, not confirmed. Returns a handle, or -errno. */
int global_create(const struct container *c, const struct global_parts *parts);

/* R3, if the store is coherent: of the file with this handle, or of one that was opened. Best effort. */
void global_confirm(const struct container *c, int h);
void global_confirm_opened(const struct container *c, const struct global_index *gi);

/* W2. -errno: readers may still be using it. */
int global_revoke(const struct container *c);

#endif
