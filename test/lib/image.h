/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file "a" that child processes write, and what it should have: read by pieces of several sizes, drained,
 * checked and repaired. For tests of logs of which there is more than one copy.
 */
#ifndef TEST_IMAGE_H
#define TEST_IMAGE_H

#include "test/lib/scratch.h"

#define IMAGE_MAX ((size_t)8 << 20)

extern unsigned char image[IMAGE_MAX];
extern off_t image_len;

struct image_piece {
	off_t off;
	size_t len;
	unsigned round;
};

/* For in_child(): write the struct image_piece @arg, and close the file. */
int image_write_piece(void *arg);

/* The image has these bytes. */
void image_note(off_t off, size_t len, unsigned round);

/* Both: a child writes them. */
void image_write(off_t off, size_t len, unsigned round);

/*
 * For in_child(): by pieces of *(size_t *)@arg. 0: as the image; 1: an error after right bytes alone;
 * 2: wrong bytes.
 */
int image_read(void *arg);

/* The worst of several sizes: through windows, and straight. */
int image_look(void);

/* 100 with an error; else the number of copies or parity files that were made; 50 more: something is left. */
int image_drain(void);

/* The result of a check or repair; 10 more if the finding @code, unless NULL, was not there. */
int image_check(const char *code);
int image_repair(const char *code);

/* For in_child(): give the file this mode. */
int image_chmod(void *mode);

/* The same in this process. */
int image_drain_here(void);
int image_check_here(bool repair);

#endif
