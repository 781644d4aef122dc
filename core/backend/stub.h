/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stub: the one regular file that stands for a logical file in the namespace. Its first 4096 bytes are a
 * header. Its *body*, from there on, has the logical file's size. It may hold bytes that were written without
 * the library: the oldest layer of the file.
 *
 *   off size field          (little-endian)
 *     0   8  magic          "PLFSTUB1"
 *     8   4  version        1
 *    12   4  crc            CRC-32C of bytes 0..127 with this field 0
 *    16   4  compat         features that a reader may ignore: 1 clocks, 2 maker, 4 copied
 *    20   4  incompat       features that a reader must know: 1 in_body, 2 moving, 4 placed, 8 spread
 *    24  16  id             the container's, random; zeros: there is none
 *    40   8  generation_ns  records stamped at or before this are void (a truncation to 0)
 *    48   8  created_ns
 *    56   8  number         the stub's inode number when it was claimed; 0: not known
 *    64   4  maker          with that feature: the user who made the container
 *    68  60  zeros
 *   128   .  a sentence for people, then zeros
 *   472   8  claim          decides which container the stub gets, while byte 0 cannot be locked; 0: nothing
 *   480  32  cut            a truncation under way; zeros, or a wrong checksum: none
 *            0   8  size      the new size
 *            8   8  stamp_ns  of its truncate record; of one to 0: of the generation
 *           16   4  crc       CRC-32C of these 32 bytes with this field 0
 *           20  12  zeros
 *   512 2048  hosts        who has written, in this generation (stub_hosts.h)
 *  2560 1528 zeros
 *  4088   8  synced         "PLFSSYNC": something of the file has been put on stable storage; zeros: nothing
 *
 * clocks: a host has written whose clock is ahead of the file system's. A writer reads the stamps in the
 * index first.
 * maker: a process of another user than the stub's owner may write through a descriptor that it was given,
 * and make the container. No user but these two may own it (container_check()).
 * copied: closed logs may have copies in other backends (spare.h).
 * in_body: the body holds all of the file, for good, and there is no container.
 * placed: logs may lie in other places as well (place.h). Once set it stays, until the body is the file.
 * spread: logs may lie in other backends as well (spread.h). It stays likewise.
 * moving: the mover, which holds byte 0, copies the logs into the body. If byte 0 is free the mover has died,
 * and the logs are the file as before.
 *
 * claim: the id is this word, then number. The word is set once, from 0, by one atomic store. Who has set it,
 * or finds it in a header without an id, takes the container's lock, waits until no process has byte 0
 * exclusively, and writes the id if there is none.
 *
 * cut: the word announces a truncation and changes nothing by itself. The truncation happens by one store: of
 * the truncate record with this stamp, or of a header with this generation. From then on the file has this
 * size, whatever the stub's length is. The truncating process cuts the body, then clears the word. If it
 * dies, the next to hold the container's lock cuts the body, or, if the truncation has not happened, only
 * clears the word.
 *
 * A stub has the sticky bit, which programs do not see; one that has lost it is known by its header
 * (stub_known.h). A stub that is empty, or whose header is all zeros as far as it goes, has no container yet:
 * the body is the whole file. Such a header has the sentence all the same, as soon as there is a body.
 *
 * Advisory locks on header bytes, out of the program's reach because its own are shifted by 4096:
 *   byte 0  exclusive: the header is being written, or the logs are being copied into the body. A process
 *           that only reads the file can hold a shared lock there. Then what the container's lock guards
 *           goes without byte 0, and a stub that has no container gets one by the word "claim".
 *   byte 2  shared, by every open file description: the file is open; exclusive: it is being made plain
 *   byte 3  flock(2), where that may lock all bytes (stub_flock())
 */
#ifndef PLFS_STUB_H
#define PLFS_STUB_H

#include "core/base/base.h"

#include <sys/stat.h>

#define STUB_MAGIC "PLFSTUB1"
#define STUB_VERSION 1
#define STUB_HEADER_LEN 128
#define STUB_SENTENCE_OFF 128
#define STUB_CLAIM_OFF 472
#define STUB_CUT_OFF 480
#define STUB_CUT_LEN 32
#define STUB_READ_LEN (STUB_CUT_OFF + STUB_CUT_LEN) /* one sector has both */
#define STUB_HOSTS_OFF STUB_READ_LEN
#define STUB_HOSTS_NR 256
#define STUB_HOSTS_LEN 2048
#define STUB_ID_LEN 16
#define STUB_SYNCED_LEN 8
#define STUB_SYNCED_OFF (PLFS_BODY_OFF - STUB_SYNCED_LEN)
#define STUB_LOCK_HEADER 0 /* the byte that is locked while the header is written */

struct stub {
	bool has_container;
	bool in_body;
	bool moving;
	bool placed, spread;
	bool clocks;
	bool copied;
	bool has_maker;
	uint32_t maker;
	uint8_t id[STUB_ID_LEN];
	uint64_t generation_ns;
	uint64_t created_ns;
	uint64_t number; /* the inode number of the stub that has the container; 0: not known */
	bool explained; /* the sentence is there; not encoded with the rest, as the words that follow */
	uint64_t claim;
	uint64_t cut_size, cut_ns; /* the truncation under way; cut_ns 0: none */
};

/* Whether a file of these attributes is a stub. */
static inline bool stub_marked(mode_t mode) { return (mode & (S_IFMT | S_ISVTX)) == (S_IFREG | S_ISVTX); }

/* Whether the file has no container yet, and may get one. */
static inline bool stub_has_none(const struct stub *stub) { return !stub->has_container && !stub->in_body; }

/* The logical size of a stub of length @st_size. */
static inline uint64_t stub_body_len(off_t st_size)
{
	return st_size > PLFS_BODY_OFF ? (uint64_t)st_size - PLFS_BODY_OFF : 0;
}

/*
 * Whether the stub with this header, found as inode @number, is a copy made without the library, or a
 * restored one. The original may still exist and own the container, so the container and its droppings must
 * not go with the copy. On a file system whose inode numbers change, every stub becomes a copy.
 */
static inline bool stub_is_copy(const struct stub *stub, ino_t number)
{
	return stub->number && stub->number != number;
}

/* Whether a truncation to 0 has happened and is not finished: the body is void, and may not be cut yet. */
static inline bool stub_is_emptied(const struct stub *stub)
{
	return stub->cut_ns && !stub->cut_size && stub->generation_ns >= stub->cut_ns;
}

/*
 * Encode the first STUB_HEADER_LEN bytes; decode these, and the word "cut" if @len is STUB_READ_LEN.
 * stub_decode(): 0; -EIO: they are no header; -EPROTONOSUPPORT: a newer library wrote them.
 */
void stub_encode(const struct stub *stub, void *buf);
int stub_decode(struct stub *stub, const void *buf, size_t len);

/*
 * Whether a file that begins with these @len bytes, all that it has of the first PLFS_BODY_OFF, is a stub,
 * sound or damaged. Without the mark it is one if the header is whole, or the sentence is there. With the
 * mark it is one unless nothing at all of a header is there: then a program without the library has written
 * it anew, and it is a plain file. plfs-format(5) has the rules.
 */
bool stub_is_one(const void *head, size_t len, bool marked);

/*
 * Whether these bytes are zeros where a header has its fields and the sentence: of a marked file without a
 * container that an older version has made, or of a plain file that begins with zeros.
 */
bool stub_is_blank(const void *head, size_t len);

/* The sentence for people, and its length. */
extern const char stub_sentence[];
extern const size_t stub_sentence_len;

/* Write the sentence into the header of a file without a container. @fd is writable. 0; -errno. */
int stub_explain(int fd);

/* Read the header through @fd. 0; -errno, as stub_decode(): one line reports it, with the file's name. */
int stub_read(int fd, struct stub *stub);

/*
 * The same by a process that has read it before, as @known (may be @stub). Another host may be shown an older
 * header for a moment, without the container or with an older generation: read again for 0.2 s before that
 * is believed.
 */
int stub_read_known(int fd, const struct stub *known, struct stub *stub);

/* As stub_read(), with the first @len bytes of the file, at least STUB_READ_LEN; zeros behind its end. */
int stub_read_into(int fd, struct stub *stub, uint8_t *buf, size_t len);

/* That line, of a damaged header. */
void stub_tell_damaged(int fd);

/* The same without that line. */
int stub_look(int fd, struct stub *stub);

/*
 * Whether the marked file has nothing of a header (stub_is_one()): -EIO of stub_read(), without a line, as
 * the file is a plain one.
 */
bool stub_is_headless(int fd);

/*
 * Announce the truncation to @size at @stamp_ns; @stamp_ns 0: clear the word. The caller has the container's
 * lock; @fd is writable and without O_APPEND. 0; -errno.
 */
int stub_set_cut(int fd, struct stub *stub, uint64_t size, uint64_t stamp_ns);

/* The id that the word "claim" decides for the stub with this inode number. */
void stub_claimed_id(uint64_t claim, uint64_t number, uint8_t *id);

/*
 * Whether anything of the file has been synced since it was made or truncated to 0. A sync first sets the
 * word, at the end of the header's page, which so reaches the disk with it.
 */
bool stub_is_synced(int fd);
int stub_set_synced(int fd, bool synced);

/*
 * Make the stub @st at least as long as its header, for the kernel appends at its end. The caller has the
 * header's lock.
 */
int stub_fill_header(int fd, const struct stat *st);

/*
 * Make the body, which the caller has just found to be shorter, reach to @end. Changes no byte and never
 * makes the file shorter, whatever other processes do to it meanwhile, where the file system has fallocate().
 * Else it writes a zero as the last byte; on a full disk, or through a descriptor with O_APPEND, it sets the
 * length. Then the file is shorter again if another process makes it longer between the last look at it and
 * that call. @fd is writable. 0; -errno.
 */
int stub_extend(int fd, uint64_t end);

/* Set the time of modification to now. Best effort; errno is kept. */
void stub_touch(int fd);

/* Set it to @mtime. Only the owner can: false. errno is kept. */
bool stub_set_mtime(int fd, const struct timespec *mtime);

/* Open the file of @fd anew, with a description of its own. A hidden descriptor; -errno. */
int stub_reopen(int fd, int flags);

/* Write the file's name, for a message, into @buf of @len bytes. Returns @buf. */
const char *stub_name(int fd, char *buf, size_t len);

#endif
