/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * index.global: the map of a container's closed logs, kept for the next reader. It is valid while its inputs,
 * which it lists, are unchanged. A *confirmed* one is known to be complete: its reader lists nothing.
 *
 *   index.global                  (little-endian)
 *   off size field
 *     0   8  magic          "PLFSGLB1"
 *     8   4  version        3
 *    12   4  crc            CRC-32C of bytes 0..127 with this field 0
 *    16  16  id             of the container
 *    32   8  generation_ns  as in the stub when it was made
 *    40   8  inputs_len     bytes of the list of inputs, at 144
 *    48   8  names_len      bytes of the list of logs, behind it
 *    56   8  map_off        where the map (index/map/map.h) begins, a multiple of 8
 *    64   8  map_len
 *    72   4  nr_logs
 *    76   4  lists_crc      CRC-32C of both lists
 *    80   4  compat         features that a reader may ignore: 0
 *    84   4  incompat       features that a reader must know: 0; with one that it does not know the file is
 *                           ignored
 *    88  40  zeros
 *   128   8  confirmed      the file's inode number; 0, or another as in a copy: not confirmed
 *   136   8  revoked        not 0: a log has been begun since
 *   144   .  inputs         sorted lines "PATH SIZE\n", a line for each node index
 *     .   .  logs           "hostdir.K/data...", each followed by a NUL, in the map's numbering
 *     .   .  zeros          up to map_off, then the map
 *
 * The reader that makes a map renames it into place (R1) and lists the container once more (R2). If the map
 * has all that is listed, the reader confirms it (R3). A writer that begins a log makes its live file (W1),
 * revokes the map and removes its name (W2), and notifies the readers of its host (notice.h). Only then its
 * first write returns (W3). So a map that has its name and is confirmed has all that was written before it
 * was opened:
 *
 *   W1 before R2: the list has the live file; or, if the log was closed by then, a data log that the map does
 *   not know, or a
 *                 node index that has grown. The map is not confirmed.
 *   W1 after R2:  then W2 is after R1. It takes the name from this map, or from one that came later still.
 *
 * A truncation to 0 begins no log, but changes the generation. A process that is killed between W1 and W2 has
 * had no write return. The cost grows with neither: a writer lists nothing, and a reader lists once. All this
 * needs directories that show every host at once what another one has done: a coherent store (store.h).
 */
#ifndef PLFS_KEPT_MAP_H
#define PLFS_KEPT_MAP_H

#include "index/map/map.h"
#include "core/gather/inputs.h"

struct kept_map {
	const uint8_t *base; /* the mapped file, or NULL */
	size_t len;
	uint64_t ino, id; /* store_ops.identify() */
	/* The header's values when it was checked: other processes may still write to the file. */
	size_t inputs_len, names_len, map_off, map_len;
	uint32_t nr_logs;
};

/* The contents of a kept map. */
struct kept_map_parts {
	const struct index_inputs *inputs;
	uint64_t generation_ns;
	char *const *logs;
	uint32_t nr_logs;
	const void *image;
	size_t image_len;
};

/*
 * Map the file. Its inputs are not compared. -ENOENT; -EBADMSG: damaged, revoked, or of another generation.
 */
int kept_map_open(struct kept_map *gi, const struct container *c, uint64_t generation_ns);

/* The same for the file that kept_map_create() has just made, by its handle. */
int kept_map_adopt(struct kept_map *gi, const struct container *c, int h, uint64_t generation_ns);
void kept_map_close(struct kept_map *gi, const struct container *c);

/* The map in the file, verified. -EBADMSG */
int kept_map_map(const struct kept_map *gi, struct index_map *map);

/*
 * The map and the names of its logs. *@logs, an array of *@nr_logs, and each name are mem_alloc()ed, after an
 * error too.
 */
int kept_map_take(const struct kept_map *gi, struct index_map *map, char ***logs, uint32_t *nr_logs);

/* Whether the map was made from exactly the node indexes of @in, and @in has no live files. */
bool kept_map_made_from(const struct kept_map *gi, const struct index_inputs *in);

/* The list of its inputs, up to *@end: lines "PATH SIZE\n". */
const char *kept_map_inputs(const struct kept_map *gi, const char **end);

/* As index_inputs.logs_digest, of the logs in the map. */
uint64_t kept_map_logs_digest(const struct kept_map *gi);

/*
 * Whether the map is confirmed. If it had its name when it was opened, it has all that was written before
 * that.
 */
bool kept_map_is_confirmed(const struct kept_map *gi);

/* Whether the map is confirmed and still has its name: then it has all that was written until now. */
bool kept_map_is_current(const struct kept_map *gi, const struct container *c);

/* A word of the file that becomes nonzero when a writer of this host begins a log; NULL: no map is open. */
const uint64_t *kept_map_revoked(const struct kept_map *gi);

/* Make the file, not confirmed, in place of any other. Returns a handle, or -errno. */
int kept_map_create(const struct container *c, const struct kept_map_parts *parts);

/* R3, if the store is coherent: for the file at @h, or for one that was opened. Best effort. */
void kept_map_confirm(const struct container *c, int h);
void kept_map_confirm_opened(const struct container *c, const struct kept_map *gi);

/* W2. -errno: readers may still use the map. */
int kept_map_revoke(const struct container *c);

#endif
