/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changing a stub's header, under its lock (stub.h).
 */
#ifndef PLFS_STUB_LOCK_H
#define PLFS_STUB_LOCK_H

#include "core/backend/stub.h"

/*
 * Two things keep others from the header: byte 0, and the lock of the file's container. All that changes the
 * header of a file with a container is done with the container's lock, which only those can have who may
 * write the file, and with byte 0 if that can be had. Of a file without one byte 0 alone counts. It cannot be
 * had while a process that only reads the file holds a shared lock there, which is never one of ours: that is
 * not waited for. -EBUSY then, and the caller gives the file a container by stub_propose().
 */

/*
 * Claim the stub: write a header with a container id unless there is one. Racing processes all get the same
 * id. @make first makes the container with stub->id, so a stub with an id has a container; it sets the maker
 * and the features.
 * @number: the stub's inode number. @fd is writable and without O_APPEND. The caller excludes the process's
 * other threads. 0; -EBUSY: byte 0 cannot be had, or the word "claim" is set; -errno.
 */
int stub_claim(int fd, struct stub *stub, uint64_t now_ns, ino_t number,
	       int (*make)(void *arg, struct stub *stub), void *arg);

/*
 * Wait while another process has byte 0 exclusively, for a second at most: it may be claiming the stub. @fd
 * may be read-only. This process must not be at it.
 */
void stub_wait_claimed(int fd);

/*
 * The same without byte 0, on a store that no other host shares: propose a container, which has been made.
 * Set the word "claim" to @claim unless it is set. *@decided: what it is now. Then the caller takes the lock
 * of the container that stub_claimed_id() says, and calls stub_finish_claim(): 0, with stub->has_container,
 * or in_body; -errno. @maker: who owns that container, which the caller has checked.
 */
int stub_propose(int fd, uint64_t claim, uint64_t *decided);
int stub_finish_claim(int fd, struct stub *stub, const uint8_t *id, uint64_t now_ns, ino_t number,
		      uid_t maker);

/*
 * Read the header. If a mover is at a file without a container, wait until it has finished; if it has died,
 * clear "moving" in the header, unless @fd is read-only. 0: with stub->moving, a file with a container is
 * being moved, or its mover has died; -EBUSY: the file is not this user's alone, and somebody who may write
 * it has kept byte 0 locked for a second, one line says so; -errno.
 */
int stub_settle_bare(int fd, struct stub *stub);

/* With the container's lock, which no mover has then: clear "moving", and read the header. 0; -errno. */
int stub_clear_moving(int fd, struct stub *stub);

/*
 * Begin to copy the logs into the body: lock and read the header, and mark it as moving. It stays locked
 * until stub_end_move(). @locked: with the container's lock. 0, with stub->in_body: the file is in its body
 * already, and there is nothing to end; 0; -EAGAIN: it has a container, whose lock is needed; -EBUSY: it has
 * none, and byte 0 cannot be had; -errno. Conditions as for stub_claim().
 */
int stub_begin_move(int fd, struct stub *stub, bool locked);

/*
 * End the move: the copy is complete (@in_body), and the container can go, or it is given up. 0; -EAGAIN: the
 * lock was lost meanwhile and another process has changed the file: begin anew; -errno.
 */
int stub_end_move(int fd, struct stub *stub, bool in_body);

/*
 * Make this very stub, inode @number, the owner of its container. 0; -EAGAIN: it has another container by
 * now; -errno. Conditions as for stub_claim().
 */
int stub_set_number(int fd, const struct stub *stub, ino_t number);

/*
 * Void all records stamped at or before @generation_ns. Conditions as for stub_claim(). The caller has the
 * container's lock, as the mover has. @stub: what is known of the header (stub_read_known()), then what it
 * is; so of the next three. 0; -errno.
 */
int stub_set_generation(int fd, struct stub *stub, uint64_t generation_ns);

/* Set "clocks": stamps may be ahead of the file system's clock. Conditions as for the last. 0; -errno. */
int stub_set_clocks(int fd, struct stub *stub);

/* Set "placed": logs may lie elsewhere from here on. Conditions as for the last. 0; -errno. */
int stub_set_placed(int fd, struct stub *stub);

/* The same of "spread": they may lie in other backends. */
int stub_set_spread(int fd, struct stub *stub);

/* Set "copied": closed logs may have copies. Conditions as for the last. 0; -errno. */
int stub_set_copied(int fd, struct stub *stub);

/*
 * stub_set_synced() under the header's lock: a process that is claiming the stub has finished, or will find
 * the word. Conditions as for stub_claim(). 0; -errno.
 */
int stub_mark_synced(int fd);

/*
 * Keep the stub from being claimed while bytes are appended to its body, or that is cut, and read the header.
 * 0; -errno, also without working locks, or when that takes long: there is nothing to end. @fd is writable.
 * For processes of one thread. With stub->claim, another process is giving the file a container.
 */
int stub_begin_append(int fd, struct stub *stub);
void stub_end_append(int fd);

#endif
