/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scratch directory whose logs are near (near=), and a process of another boot.
 */
#ifndef TEST_NEAR_H
#define TEST_NEAR_H

#include "test/lib/scratch.h"

extern char near_dir[64]; /* of near= */

/* Map the scratch directory with "small=0,near=...", and @options, which begin with a comma. */
void near_setup(const char *options);

/* The same directory is another backend instead, for copies: "mirror=2,small=0", and @options. */
void near_setup_copies(const char *options);

/*
 * Map it with other backends, NEAR_DIR/2 to NEAR_DIR/NEAR_LAST, and "small=0,spread=RULE". Those are what the
 * functions below find and count. near_last is 3, or set before.
 */
extern int near_last;
void near_spread(const char *rule);

/* The same with other options, SHARE instead of spread=RULE. */
void near_share(const char *share);

/* Make those, and write the options of such a mapping into @options. */
void near_backends(const char *rule, char *options, size_t len);

/*
 * Map the scratch directory to /q as well, in this process: @rest has other backends, which begin with a
 * comma, and options. 0; -1.
 */
int near_map_q(const char *rest);

/* open(2) of /q/a. 0; -errno. */
int near_open_q(struct lfile *l, int flags);

/* For in_child(): plfs drain --to home of the file "a". 0: all of it is. */
int near_bring(void *arg);

/*
 * A process that drains the file "a" whenever it is asked, also by a child: a fork in the middle of a call
 * would wait for that. near_drain_a(): how many logs went home; -errno.
 */
void near_start_drainer(void);
int near_drain_a(void);
void near_end_drainer(void);

void near_remove(void);

/* The number of files near whose names begin with @prefix. */
int near_count(const char *prefix);

/* Write the path of one of them into @path, of PATH_MAX bytes. False: there is none. */
bool near_find(const char *prefix, char *path);

/* All that is near goes. */
void near_lose(void);

/* Run @fn as in_child() does, in a process that believes that the host was restarted. */
int after_reboot(int (*fn)(void *arg));

extern int near_errno; /* why not: ENOENT */

/* This process is on another host from here on: of another name, and what is near is not there. */
void near_go_elsewhere(void);

#endif
