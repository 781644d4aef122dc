/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Damage to a file: what disks and people do to logs and their copies.
 */
#ifndef TEST_SPOIL_H
#define TEST_SPOIL_H

#include "test/lib/scratch.h"

enum spoil {
	SPOIL_REMOVE, SPOIL_FLIP, SPOIL_FLIP_END, SPOIL_CUT, SPOIL_CUT_END, SPOIL_EMPTY, SPOIL_HEADER,
	SPOIL_ZEROS, NR_SPOILS
};

extern const char *const SPOIL_NAMES[NR_SPOILS];

/* Do it to the file @path, of more than 200000 bytes. */
void spoil(const char *path, enum spoil how);

/* Flip a bit of the byte at @off. */
void spoil_bit(const char *path, off_t off);

#endif
