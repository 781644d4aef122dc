/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that this process did not open itself: a logical file or a directory of a backend among them is
 * put into the table of descriptors (fdtable.h). All others stay as they are.
 */
#ifndef PLFS_ADOPT_H
#define PLFS_ADOPT_H

/* Find the logical files and directories among the descriptors that the process was started with. */
void fd_adopt_inherited(void);

/* Call @fn with each descriptor that is open, the library's own too. No malloc: this runs in initialisers. */
void fd_each_open(void (*fn)(int fd, int arg), int arg);

/* The same for one descriptor @fd: received from another process, or just opened by the kernel. */
void fd_adopt(int fd);

#endif
