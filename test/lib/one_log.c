/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The least of a container that a writer needs.
 */
#include "test/lib/one_log.h"

#include "core/backend/container_dirs.h"

struct store store;
struct container c;
struct writer w;

void log_setup(void)
{
	static const uint8_t id[STUB_ID_LEN] = { 1 };

	scratch_dir();
	if (store_posix_open(&store, scratch) || store.ops->mkdir(&store, PLFS_DIR_NAME, 0755))
		die("store");
	container_init(&c, &store, id, 0644);
	log_begin();
}

void log_begin(void)
{
	if (container_make(&c, name_hostdir(&c)) || writer_open(&w, &c))
		die("writer_open");
}

void put(uint64_t off, size_t len)
{
	void *buf = malloc(len);

	pattern_fill(buf, len, off, 1);
	cr_assert_eq(writer_write(&w, buf, len, off), (ssize_t)len);
	free(buf);
}
