/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The temporary file of a flattening, and how it gets the name of the stub.
 *
 * Whoever owns the directory of the stub, or one above it, can put another thing in its place at any moment,
 * and root may be the one who flattens. So both directories are opened once, without following a link, and
 * names are changed in these alone; what gets the name is what was made here, and what loses it is the stub
 * that was read.
 */
#ifndef PLFS_FLATTEN_NAMES_H
#define PLFS_FLATTEN_NAMES_H

#include "core/base/as_owner.h"
#include "core/file/file.h"

/* One attempt. */
struct flatten {
	struct plfs_progress *watch;
	char name[PATH_MAX]; /* what the kernel calls the stub, for messages */
	int dir;             /* hidden, of the directory that the stub is in, or -1 */
	const char *base;    /* its name there */
	int temp_dir;        /* the same of the temporary file */
	char temp[40];       /* its name there, "" while there is none */
	struct plfs_mount *m;
	int fd;     /* hidden, of the stub */
	bool alone; /* with the in-use byte locked exclusively */
	struct stat st, made; /* of the stub, and of the temporary file */
	struct plfs_file *file;
	struct as_owner owner;
	uint64_t size;
	int to;
	int pin; /* hidden, of the temporary file when that is complete: for no more than its number */
};

/*
 * Make f->to: in the container, or if that has none beside all of them; beside the file if that is not ours
 * to write, or on another file system. There root makes it as root, if the owner may not. 0; -errno, which
 * has been told.
 */
int flatten_make_temp(struct flatten *f);

/* Remove it, unless it has got the name. */
void flatten_drop_temp(struct flatten *f);

/* Whether @name in the directory @dir is the stub, from which nothing that was copied has changed since. */
bool flatten_has_stub(const struct flatten *f, int dir, const char *name);

/*
 * The temporary file and the stub change names: so whatever happened to either name since they were looked at
 * shows before anything is lost. Where the file system cannot, the stub's is taken. 0; -EAGAIN: all is as it
 * was, and what others did meanwhile stays, but for a file that they put in the place of one that only root
 * could replace; another -errno, which has been told.
 */
int flatten_take_name(struct flatten *f);

#endif
