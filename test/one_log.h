/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store with one container and one log in it that is being written, without any file around them.
 */
#ifndef TEST_ONE_LOG_H
#define TEST_ONE_LOG_H

#include "scratch.h"

#include "../core/writer.h"

#include <criterion/criterion.h>

static struct store store;
static struct container c;
static struct writer w;

static void log_setup(void)
{
	static const uint8_t id[STUB_ID_LEN] = { 1 };

	scratch_dir();
	if (store_posix_open(&store, scratch) || store.ops->mkdir(&store, PLFS_DIR_NAME, 0755))
		die("store");
	container_init(&c, &store, id, 0644);
	if (writer_open(&w, &c))
		die("writer_open");
}

static void put(uint64_t off, size_t len)
{
	void *buf = malloc(len);

	pattern_fill(buf, len, off, 1);
	cr_assert_eq(writer_write(&w, buf, len, off), (ssize_t)len);
	free(buf);
}

#endif
