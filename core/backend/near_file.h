/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * near.HOST, or spread.N.HOST, as a file: the one at home, in the hostdir @dir relative to the store's root,
 * and the one of the same bytes near, which is the lock (place.h). @file is its name.
 */
#ifndef PLFS_NEAR_FILE_H
#define PLFS_NEAR_FILE_H

#include "core/backend/place_settings.h"

/* "near.HOST" into @file (STORE_PATH_LEN), which is returned. */
const char *near_file_name(char *file, const char *host, size_t host_len);

/* "@dir/@file" into @path (STORE_PATH_LEN). -ENAMETOOLONG. */
int near_file_path(char *path, const char *dir, const char *file);

/* The PLACE_LEN bytes of the file @path. -ENODATA: it is shorter; -errno. */
int near_file_raw(struct store *s, const char *path, uint8_t *raw);

/*
 * The one at home. -ENOENT: there is none, or it leads nowhere as yet; -EBADMSG: it is damaged, or of another
 * version: *@p has the host, and words for the place; -errno.
 */
int near_file_read(struct store *home, const char *dir, const char *file, uint8_t *raw, struct place *p);

/* The one near is locked: its bytes. -ENODATA: it has none, or is damaged; -errno. */
int near_file_read_locked(struct place_dir *near, const char *dir, const char *file, uint8_t *raw,
			  struct place *p);

/* The lock is held, exclusively, here and below. */
int near_file_write_locked(struct place_dir *near, const uint8_t *raw);

/* Write the one near anew. @path: of NEAR/plfs.UID/BACKEND-ID. */
int near_file_fill(struct store *home, struct place_dir *near, const char *dir, const char *host,
		   const char *path, uint32_t features);

/* That at home, @path, becomes as the one near. -EREMOTE: a process has led a spread.N.HOST elsewhere. */
int near_file_write_home(struct store *home, const char *path, mode_t mode, struct place_dir *near,
			 bool durably);

/*
 * Whether that at home is as the one near, which is locked. -ENODATA: home has none, and it is to be made;
 * -EREMOTE: home has another; -ENODEV: another of this backend, which lacks what it had; -EAGAIN: the one
 * near has lost its name. With @make: make it, from the one near, which is made anew if it is none.
 */
int near_file_compare(struct store *home, const struct place_settings *ps, const char *dir, const char *file,
		      mode_t mode, struct place_dir *near, bool make);

/* Whether the file that is locked has lost its name. */
bool near_file_is_gone(struct place_dir *near);

#endif
