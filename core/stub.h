/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stub: the one regular file that stands for a logical file in the namespace. Its first 4096
 * bytes are a header, its *body* from there on has the logical file's size and may hold bytes that came
 * by a road we do not see: the oldest layer of the file.
 *
 *   off size field          (little-endian)
 *     0   8  magic          "PLFSTUB1"
 *     8   4  version        1
 *    12   4  crc            CRC-32C of bytes 0..127 with this field 0
 *    16   4  compat         features that a reader may ignore: 1 clocks
 *    20   4  incompat       features that a reader must know: 1 in_body, 2 moving
 *    24  16  id             the container's, random; zeros: there is none
 *    40   8  generation_ns  records stamped at or before this are void (a truncation to 0)
 *    48   8  created_ns
 *    56   8  number         the stub's inode number when it was claimed; 0: not known
 *    64  64  zeros
 *   128   .  a sentence for people, then zeros
 *   480  32  cut            a truncation under way; zeros, or a wrong checksum: none
 *            0   8  size      the new size
 *            8   8  stamp_ns  of its truncate record; of one to 0: of the generation
 *           16   4  crc       CRC-32C of these 32 bytes with this field 0
 *           20  12  zeros
 *  4088   8  synced         "PLFSSYNC": something of the file has been put on stable storage; zeros: nothing
 *
 * clocks: a host has written whose clock is ahead of the file system's: who writes looks at the stamps in the index first.
 * in_body: the body holds all of the file, for ever, and there is no container. moving: somebody who holds
 * byte 0 is copying the logs into the body; if nobody holds it he died, and the logs are the file as before.
 *
 * cut: the word announces a truncation and changes nothing by itself. The truncation happens by one store: of the
 * truncate record with this stamp, or of a header with this generation. From then on the file has this size, whatever
 * the stub's length is. The truncating process cuts the body, then clears the word. If it dies, the next to hold the
 * container's lock cuts the body, or, if the truncation has not happened, only clears the word.
 *
 * A stub carries the sticky bit, which the program is not shown. One that is empty, or whose header, as far as there is
 * one, is all zeros, has no container yet: its body is all there is.
 *
 * Advisory locks on header bytes, out of the program's reach because its own are shifted by 4096:
 *   byte 0  exclusive, while the header is written or the logs are copied into the body
 *   byte 2  shared, by every open file description: somebody has the file open; exclusive, while it is made a plain file
 */
#ifndef PLFS_STUB_H
#define PLFS_STUB_H

#include "base.h"

#include <sys/stat.h>

#define STUB_MAGIC "PLFSTUB1"
#define STUB_VERSION 1
#define STUB_HEADER_LEN 128
#define STUB_CUT_OFF 480
#define STUB_CUT_LEN 32
#define STUB_READ_LEN (STUB_CUT_OFF + STUB_CUT_LEN) /* one sector has both */
#define STUB_ID_LEN 16

struct stub {
	bool has_container;
	bool in_body;
	bool moving;
	bool clocks;
	uint8_t id[STUB_ID_LEN];
	uint64_t generation_ns;
	uint64_t created_ns;
	uint64_t number; /* the inode number of the stub that has the container; 0: not known */
	uint64_t cut_size, cut_ns; /* the truncation under way; cut_ns 0: none. Not encoded with the rest. */
};

/* Whether a file of these attributes is a stub. */
static inline bool stub_marked(mode_t mode) { return (mode & (S_IFMT | S_ISVTX)) == (S_IFREG | S_ISVTX); }

/* Logical size that a stub's st_size says. */
static inline uint64_t stub_body_len(off_t st_size)
{
	return st_size > PLFS_BODY_OFF ? (uint64_t)st_size - PLFS_BODY_OFF : 0;
}

/*
 * Whether the stub with this header, found as inode @number, is a copy that was made without the library, of one that
 * may be there still and have the container, or one that was restored: with it the container must not go, nor what is
 * in it. On a file system whose inode numbers change all are, later.
 */
static inline bool stub_is_copy(const struct stub *stub, ino_t number) { return stub->number && stub->number != number; }

/* Whether a truncation to 0 is under way and has happened: the body counts for nothing, and may not be cut yet. */
static inline bool stub_is_emptied(const struct stub *stub)
{
	return stub->cut_ns && !stub->cut_size && stub->generation_ns >= stub->cut_ns;
}

/*
 * Encode the first STUB_HEADER_LEN bytes; decode these, and the word "cut" if @len is STUB_READ_LEN. Decode: -EIO if
 * they are no header, -EPROTONOSUPPORT.
 */
void stub_encode(const struct stub *stub, void *buf);
int stub_decode(struct stub *stub, const void *buf, size_t len);

/* Read the header through @fd. An error is logged with the file's name, as the kernel knows it. */
int stub_read(int fd, struct stub *stub);

/* The same without a word. */
int stub_look(int fd, struct stub *stub);

/*
 * Make sure that the stub has a container id: write a header unless there is one (another process may be doing the
 * same at the same time; both then have the same id). Before that @make makes the container with this id: where there
 * is an id there is a container. @number: the stub's inode number. @fd is writable and without O_APPEND. The caller
 * excludes the process's other threads.
 */
int stub_claim(int fd, struct stub *stub, uint64_t now_ns, ino_t number, int (*make)(void *arg, const uint8_t *id),
	       void *arg);

/*
 * If somebody is copying the logs into the body, wait until that is done; if he died over it, say so in the header,
 * unless @fd is read-only. Reads the header in any case.
 */
int stub_settle(int fd, struct stub *stub);

/*
 * Begin to copy the logs into the body: locks and reads the header, and marks it as moving; it stays locked until
 * stub_end_move(). If the file is in its body already (stub->in_body) nothing is left to do, nor to end. Conditions
 * as for stub_claim().
 */
int stub_begin_move(int fd, struct stub *stub);

/*
 * The copy is complete (@in_body: the container can go) or given up. -EAGAIN: the lock was lost meanwhile, and somebody has
 * gone on without us: begin anew.
 */
int stub_end_move(int fd, struct stub *stub, bool in_body);

/* The container is that of this very stub from here on. Conditions as for stub_claim(); -EAGAIN: it has another by now. */
int stub_set_number(int fd, const struct stub *stub, ino_t number);

/*
 * Void all records stamped at or before @generation_ns. Conditions as for stub_claim(). The caller has the
 * container's lock, as whoever moves the file into its body has: so when another thread's close() takes the header's
 * lock away between reading and writing, all that can be undone is that somebody has begun to move the file, which
 * stub_end_move() then finds.
 */
int stub_set_generation(int fd, struct stub *stub, uint64_t generation_ns);

/*
 * Announce the truncation to @size at @stamp_ns, or with a @stamp_ns of 0 clear the word. The caller has the
 * container's lock; @fd is writable and without O_APPEND.
 */
int stub_set_cut(int fd, struct stub *stub, uint64_t size, uint64_t stamp_ns);

/* Say that stamps may be ahead of the file system's clock. Conditions as for stub_claim(). */
int stub_set_clocks(int fd, struct stub *stub);

/*
 * Whether something of the file has been synced since it was made or truncated to nothing: a word of its own at the
 * end of the header's page, which is set by whoever syncs, before, and so comes to the disk with that.
 */
bool stub_is_synced(int fd);
int stub_set_synced(int fd, bool synced);

/* The same, so that whoever is giving the stub a container has done so, or finds the word. Conditions as for stub_claim(). */
int stub_mark_synced(int fd);

/*
 * Say, for as long as the open file description of @fd lives, that somebody has the file open. Waits while it is being made
 * a plain file: afterwards the stub has no name any more. Best effort.
 */
void stub_mark_in_use(int fd);

/* Take that back, for every descriptor of the description. */
void stub_unmark_in_use(int fd);

/* Whether a description other than that of @fd says so. Where locks do not work: false. */
bool stub_in_use(int fd);

/* Whether it is certain that none does. */
bool stub_is_alone(int fd);

/*
 * Keep the stub from being claimed while something is appended to its body; reads the header. -errno, also where
 * locks do not work: then nothing is to be ended. @fd is writable. For processes of one thread.
 */
int stub_begin_append(int fd, struct stub *stub);
void stub_end_append(int fd);

/* If the stub @st is shorter than its header make it as long: the kernel appends at its end. With the header's lock. */
int stub_fill_header(int fd, const struct stat *st);

/*
 * Keep everybody else from opening the file, until stub_unmark_in_use(). @fd is writable. Where locks do not work: 0.
 * -EBUSY: somebody has it open; -EAGAIN: things have just changed.
 */
int stub_lock_out(int fd);

/* The same, but only if it is certain that nobody has the file open: -EOPNOTSUPP where locks do not work. */
int stub_lock_alone(int fd);

/*
 * Wait for somebody who does that. 0: nobody; -EBUSY: the file is open; -EAGAIN: somebody did, it is to be looked at
 * again.
 */
int stub_wait_flattened(int fd);

/* A new open file description of the same file, hidden. @flags: O_RDONLY or O_RDWR. -errno */
int stub_reopen(int fd, int flags);

/* The file's name for a message, into @buf; returns @buf. */
const char *stub_name(int fd, char *buf, size_t len);

#endif
