/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which logs in another backend have live files there, noted at home: behind the bytes of spread.N.HOST
 * (near_host.h). While that backend is not there, they tell whether it has records that no node index has.
 *
 *   note     (little-endian), 16 bytes; the first is at 1280, and of two of a log the later counts
 *   off size field
 *     0   4  pid
 *     4   4  seq
 *     8   4  state          1: a live file of the log is about to be made; 2: it was removed
 *    12   4  crc            CRC-32C of the first 12 bytes
 *
 * Only processes of HOST make a live file, and note it; a repair on any host notes its end. All lock the file
 * at home meanwhile. A process killed in between leaves a note without a live file: while the backend is not
 * there, this counts as one. A repair that finds no live file of HOST removes all notes.
 */
#ifndef PLFS_SPREAD_OPEN_H
#define PLFS_SPREAD_OPEN_H

#include "core/backend/place.h"

#define SPREAD_NOTE_LEN 16

/*
 * Note in spread.@slot.HOST of the hostdir @dir of @s that the live file called @live is about to be made
 * there, or was removed. 0; -errno.
 */
int spread_note(struct store *s, const char *dir, unsigned slot, const char *live, bool made);

/*
 * Whether the file @file, "spread.N.HOST", in @dir has a note of a live file that was not removed; with @live
 * of that alone. True also if that cannot be told.
 */
bool spread_has_open(struct store *s, const char *dir, const char *file, const char *live);

/* Remove all notes: nobody can make a live file there just now, and there is none. 0; -errno. */
int spread_forget_notes(struct store *s, const char *dir, const char *file);

/*
 * One line for the backend that the file @file in @dir leads to, which is not there: for several calls with
 * one @dir, one after the other, a single one.
 */
void spread_tell_gone(struct store *s, const char *dir, const char *file);

/* The same for all in @dir that are not there, whether or not they have open logs. */
void spread_tell_all_gone(struct store *s, const char *dir);

#endif
