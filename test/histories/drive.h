/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What drive.c and walk.c share: the servers of an environment, and a history on their board. Those that
 * return false leave the servers in an unknown state; env_finish() then replaces them.
 */
#ifndef DRIVE_H
#define DRIVE_H

#include "histories.h"

enum { TIMEOUT_MS = 20000 };

/* Servers that have the same environment: mappings of all variants that can share it. */
struct env {
	struct board *board;
	int board_fd, said_fd; /* what they write to standard error */
	off_t said_len;
	pid_t zygote;
};

/* Where all directories and backends of this driver lie. */
const char *drive_dir(void);

struct env *env_get(const struct variant *v);
bool env_spawn(struct env *env, int slot);
/* The step at which the board is, and those that follow without the driver. */
bool env_go_on(struct env *env);
/* The outcomes of a history that has ended, or got stuck (@ok false); the servers are ready for the next. */
bool env_finish(struct env *env, struct outcome *out, bool ok);

void board_begin(const struct variant *v, struct board *b, const struct history *h);
/* Until the turn is the driver's. false: whoever has it has gone, or does not come back. */
bool board_wait_for_turn(struct board *b);

/* Until it has ended, its files closed and its locks gone. */
bool process_wait_for_end(int pidfd);
void part_ended(struct part *part); /* its process has ended: the one that forked it is on top again */

_Noreturn void drive_fail(const char *what);

#endif
