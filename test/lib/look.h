/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What plfs stat, map, du, places and watch look at.
 */
#ifndef TEST_LOOK_H
#define TEST_LOOK_H

/* Of the file @name. 0; -errno. */
int look_at(const char *name);

#endif
