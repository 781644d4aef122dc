/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of a near.HOST, the file that leads from a container to a place (place.h), and of a spread.N.HOST
 * (spread.h), which leads to another backend.
 *
 *   near.HOST, spread.N.HOST      (little-endian)
 *   off size field
 *     0   8  magic          "PLFSNEA1"
 *     8   4  version        1
 *    12   4  crc            CRC-32C of all 1280 bytes with this field 0
 *    16  16  id             of the container
 *    32  16  token          random
 *    48   8  created_ns
 *    56   4  compat         features that a reader may ignore: 0
 *    60   4  incompat       features that a reader must know: 1 shared, 2 own_host, 4 own_process, 8 noted
 *    64  64  host           NUL-padded
 *   128 1144 path           of NEAR/plfs.UID/BACKEND-ID, NUL-padded
 *  1272   8  origin         which backend has the container (origin.h); 0: not known
 *
 * shared: in a spread.N.HOST: all hosts can read there.
 * own_host, own_process: there, each host, or each process, has its logs in a directory of its own.
 * noted: at home, notes of live files follow (spread_open.h).
 */
#ifndef PLFS_NEAR_HOST_H
#define PLFS_NEAR_HOST_H

#include "core/backend/stub.h"

#define PLACE_MAGIC "PLFSNEA1"
#define PLACE_VERSION 1
#define PLACE_SHARED 1u
#define PLACE_OWN_HOST 2u
#define PLACE_OWN_PROCESS 4u
#define PLACE_NOTED 8u
#define PLACE_INCOMPAT_KNOWN 15u
#define PLACE_LEN 1280
#define PLACE_PATH_LEN 1144
#define PLACE_TOKEN_LEN 16

struct place {
	uint8_t id[STUB_ID_LEN];
	uint8_t token[PLACE_TOKEN_LEN];
	uint64_t created_ns;
	uint64_t origin;   /* origin_identity() */
	uint32_t features; /* PLACE_SHARED and the like */
	char host[64];
	char path[PLACE_PATH_LEN];
};

void place_encode(const struct place *p, uint8_t *buf);

/* 0; -EIO: they are none; -EPROTONOSUPPORT: of another version, or with unknown features. */
int place_decode(struct place *p, const uint8_t *buf);

/* The host's name, without the digits that HOST has behind it, into @out. */
void place_host(const struct place *p, char *out, size_t len);

/* The length of NEAR, or of the other backend, in @path, NEAR/plfs.UID/BACKEND-ID. */
int place_near_len(const char *path);

#endif
