/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file whose container the test damages on purpose, and a child that uses the file. The child has little
 * memory and a minute of time: damage must end in an error or in the right bytes.
 */
#ifndef TEST_HOSTILE_H
#define TEST_HOSTILE_H

#include "test/lib/scratch.h"

#include "core/backend/container.h"
#include "core/backend/stub.h"
#include "core/store/posix.h"

#include <criterion/criterion.h>

#define LEN 1000
#define ERRNO_MAX 4095

void hostile_setup(void);

/* Make the file "file" of LEN bytes. Its store, its container, and the container's path are then in these. */
void hostile_file(void);

extern struct store hostile_store;
extern struct container hostile_container;
extern char hostile_dir[PATH_MAX];

/* ---- damage ---- */

/* The path of @rest in the container; overwritten by the next call. */
char *in_container(const char *rest);

/* Remove the file of the container whose name begins with @prefix. Returns its path, until the next call. */
char *instead_of(const char *prefix);

/* Write @buf to the beginning of @path, and make the file @size bytes long if that is more. */
void hostile_put(const char *path, const void *buf, size_t len, off_t size);

/* ---- the child ---- */

struct use {
	bool write;    /* once a read has failed: write behind the end, and read again */
	ssize_t want;  /* of a read of LEN bytes from the beginning: LEN, or -errno */
	bool or_right; /* LEN will do as well */
};

/* For in_child(), with a struct use. 0: as wanted. */
int use_it(void *arg);

/* A child that reads must get @want. */
void expect(ssize_t want);

/* A child that reads must get -EIO or the right bytes: a log can be read without its damaged index. */
void expect_damage(void);

#endif
