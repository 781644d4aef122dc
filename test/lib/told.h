/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of three hosts that do what they are told with the file "a", one call after the other, and
 * answer. The first two are of one host. Two more, of the first host and of the second, are told what the
 * command does.
 */
#ifndef TEST_TOLD_H
#define TEST_TOLD_H

#include "test/lib/scratch.h"

enum { TOLD_PROCS = 4, TOLD_ALL = 6, TOLD_LEN = 3000, TOLD_PIECE = 100 };

/*
 * COMMIT is what an unlock does, REFRESH what a lock does. READ: all. PAUSE: @off microseconds. REPAIR_ALL:
 * with --partial. LOOK: stat, map, du, places and watch. COLLECT: gc. DRAIN_KEEP: stage --to=home. BRING:
 * drain --to=home. DROP: stage --drop. COPY: flatten -o. FORGET: backend @off, or with 0 what host one has
 * near.
 */
enum told_act {
	OPEN, OPEN_READ, PAUSE, CLOSE, WRITE, APPEND, CUT, READ, SIZE, STAT, COMMIT, REFRESH, SYNC,
	/* the command's */
	COMPACT, REPAIR, REPAIR_ALL, CHECK, LOOK, COLLECT, DRAIN, DRAIN_KEEP, BRING, STAGE, DROP, FORGET,
	FLATTEN, COPY, KILL, LOSE, UNLINK, AWAY, BACK, WIPE, FLIP, NR_ACTS
};

extern const char *const told_act_names[NR_ACTS];
extern const char *const told_hosts[TOLD_ALL]; /* of which host each is */

/* Set before told_start(). */
extern bool told_apart; /* the clocks of the hosts are an hour apart */
extern bool told_local; /* hosts are containers that share a local file system */
extern bool told_once;  /* no process goes on with a log that it has closed */
extern bool told_near;  /* host one has a place for logs (near_setup()), and the others none */

struct told_order {
	enum told_act act;
	off_t off;
	size_t len;
	unsigned char byte; /* that is written */
	int stop_at;        /* told_begin()'s */
};

/*
 * APPEND: where it begins. DRAIN: how many logs are left near, or have lost something. STAGE: how many are
 * there. READ: the size; pieces that are an error. FLATTEN, COPY: the size, and the bytes of the plain file.
 * CHECK, REPAIR: the damage that is named first, "": none; pieces that are lost. -errno.
 */
struct told_answer {
	long ret;
	bool stopped;
	bool fails[TOLD_LEN / TOLD_PIECE];
	char damage[100];
	unsigned char bytes[TOLD_LEN];
};

/* AWAY and what is behind it: done by the test itself, by this. */
extern long (*told_here)(const struct told_order *o);

/* Called first in each process; NULL. */
extern void (*told_begins)(void);

void told_start(void);

/* The process that is @who now. */
pid_t told_pid(int who);

/*
 * The answer stays till the next one. KILL: another process comes in its place. LOSE: so do all of the first
 * host, and what is near there has gone.
 */
const struct told_answer *tell(int who, struct told_order o);

/*
 * Two at a time. told_begin(): @who stops before its system call number @call, until told_go_on() or a KILL.
 * False: it made fewer, and *@a is its answer.
 */
bool told_begin(int who, struct told_order o, int call, struct told_answer *a);
void told_go_on(int who, struct told_answer *a);

/* tell() in two halves, as asked_order() and asked_answer(): for one that may wait for one that stands. */
void told_order(int who, struct told_order o);
bool told_answer(int who, struct told_answer *a, int timeout_ms);

void told_end(void);

#endif
