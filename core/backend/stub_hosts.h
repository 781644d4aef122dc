/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hosts that have written a file, in the header of its stub. They are a witness for what a purge of old
 * files, or a copy of half a backend, takes from the container: the bytes of a host that is here and has no
 * dropping any more are lost, though no index says so.
 *
 * A host is entered when it first publishes a size in a generation, so when its log and live file are
 * there. If something of the file has been synced their names are, before: else a power failure could leave
 * the entry alone. As long as the generation lasts one of log, live file and node index stays. An entry
 * holds for its container and its generation alone: a truncation to 0 clears the table. A reclaim enters the
 * hosts for its generation before the header has that (core/file/reclaim_hosts.h).
 *
 *   in the header, from byte 512 on: 256 entries
 *   off size field        (little-endian)
 *     0   4  host         CRC-32C of HOST, as it stands in the names of droppings, made odd; even: a loss
 *     4   4  check        CRC-32C of id, generation_ns and host; else there is no entry here
 *
 * A host that is entered and has lost all that it wrote may write again. What it makes then must not pass
 * for what is lost: so before that, it enters the loss, under its own key made even, which no dropping has.
 *
 * Nobody locks the table. Of two hosts that take one entry at the same time the first is forgotten, as are
 * all behind the 256th: what these lose is not noticed.
 */
#ifndef PLFS_STUB_HOSTS_H
#define PLFS_STUB_HOSTS_H

#include "core/backend/container.h"
#include "core/backend/stub.h"

struct stub_hosts {
	unsigned nr; /* entries that hold */
	struct stub_host {
		uint32_t host;
		uint16_t place;
		bool seen; /* a dropping of it is there */
	} hosts[STUB_HOSTS_NR];
};

/*
 * Read the header and the table in one call. @hosts: without an entry where the file has no container. 0;
 * -errno as stub_read().
 */
int stub_hosts_read(int fd, struct stub *stub, struct stub_hosts *hosts);

/*
 * Enter the host of the dropping @name, unless it is there. @fd is writable, without O_APPEND. Best effort.
 */
void stub_hosts_enter(int fd, const struct stub *stub, const char *name);

/*
 * The entry of the host of the dropping @name; NULL: it is not entered. stub_hosts_enter_loss(): what it
 * wrote is lost. Best effort, as above.
 */
struct stub_host *stub_hosts_find(struct stub_hosts *hosts, const char *name);
void stub_hosts_enter_loss(int fd, const struct stub *stub, const char *name);

/* The same of the host whose notice is called @name. A notice is no dropping: it does not count as one. */
struct stub_host *stub_hosts_find_notice(struct stub_hosts *hosts, const char *name);

/* A set of hosts that have no places. false: the host of the dropping @name is not in it, for it is full. */
bool stub_hosts_add(struct stub_hosts *hosts, const char *name);

/*
 * Enter all of @hosts in the generation of @stub, which may be one that the header has not yet: @others are
 * those of the generation that it has, whose places stay. Best effort, as above.
 */
void stub_hosts_enter_all(int fd, const struct stub *stub, const struct stub_hosts *hosts,
			  const struct stub_hosts *others);

/* Those of @hosts that are among @those count as seen; those that say that something is lost. */
void stub_hosts_saw_those(struct stub_hosts *hosts, const struct stub_hosts *those);
void stub_hosts_saw_losses(struct stub_hosts *hosts);

/* There is a dropping of this name, the last part of its path: its host has something. */
void stub_hosts_saw(struct stub_hosts *hosts, const char *name);

/* The same for all droppings of @c. 0; -errno as container_list(). */
int stub_hosts_saw_all(struct stub_hosts *hosts, const struct container *c);

/* How many hosts are entered, and how many of them have nothing, or have lost what they had. */
unsigned stub_hosts_nr(const struct stub_hosts *hosts);
unsigned stub_hosts_missing(const struct stub_hosts *hosts);

/* Forget the hosts that have nothing: what they wrote is given up. 0; -errno. */
int stub_hosts_forget_missing(int fd, const struct stub_hosts *hosts);

#endif
