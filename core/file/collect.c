/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collecting node indexes and logs all of whose records are void.
 */
#include "core/file/collect.h"

#include "core/backend/container_dirs.h"
#include "core/backend/stub_use.h"
#include "core/base/alloc.h"
#include "core/backend/names.h"
#include "core/backend/spare.h"
#include "core/backend/writer_table.h"
#include "core/dropping/node_index.h"
#include "core/dropping/live.h"
#include "core/base/sys.h"

#include <stdio.h>

struct collect_arg {
	const struct container *c;
	uint64_t generation_ns;
	const char *index; /* relative to the container */
	bool later;
	uint32_t pid, seq; /* of the one log that is asked about */
	char *lives;       /* live files, relative to the container, a NUL behind each */
	size_t lives_len;
};

static int find_later(void *arg, const struct index_block *block)
{
	struct collect_arg *ca = arg;

	if (block->max_stamp_ns > ca->generation_ns)
		ca->later = true;
	return 0;
}

/* An index must not go before all logs that it names, or those would seem to have lost theirs. */
static int remove_log(void *arg, const struct index_block *block)
{
	struct collect_arg *ca = arg;
	struct store *s = ca->c->store;
	char log[CONTAINER_PATH_LEN], live[CONTAINER_PATH_LEN], path[CONTAINER_PATH_LEN];
	struct stat st;
	int ret;

	name_log_of_block(ca->index, block, log);
	name_live_of_log(log, live);
	container_path(ca->c, live, path);
	ret = s->ops->stat(s, path, &st);
	if (ret != -ENOENT)
		return ret ? ret : -EBUSY;
	container_path(ca->c, log, path);
	if (spare_may_be(ca->c))
		spare_unlink(ca->c, log);
	ret = s->ops->unlink(s, path);
	return ret == -ENOENT ? 0 : ret;
}

static int note_live(struct collect_arg *ca, const char *path)
{
	size_t len = strlen(path) + 1;
	char *grown = mem_realloc(ca->lives, ca->lives_len + len);

	if (!grown) /* it stays for the next time */
		return 0;
	memcpy(grown + ca->lives_len, path, len);
	ca->lives = grown;
	ca->lives_len += len;
	return 0;
}

#define COLLECT_MS 20

/* The lock keeps a process from adding its block to an index that is about to go. */
static int collect_index(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct collect_arg *ca = arg;
	struct store *s = ca->c->store;
	char full[CONTAINER_PATH_LEN];
	unsigned damaged = 0;
	int h;

	(void)name;
	if (kind == DROPPING_LIVE)
		return note_live(ca, path);
	if (kind != DROPPING_INDEX)
		return 0;
	ca->index = path;
	container_path(ca->c, path, full);
	h = store_open(s, full, O_RDWR | STORE_BRIEFLY, 0);
	if (h < 0)
		return 0;
	if (!node_index_own(s, h, COLLECT_MS)) { /* else it stays for the next time */
		ca->later = false;
		if (!node_index_each(ca->c, path, find_later, ca, &damaged) && !ca->later && !damaged &&
		    !node_index_each(ca->c, path, remove_log, ca, &damaged))
			s->ops->unlink(s, full);
		store_unlock(s, h);
	}
	store_close(s, &h);
	return 0;
}

/* ---- killed writers ---- */

static int find_later_of_log(void *arg, const struct index_block *block)
{
	struct collect_arg *ca = arg;

	return block->pid == ca->pid && block->seq == ca->seq ? find_later(ca, block) : 0;
}

/*
 * Whether all that is known of the log is void: what is in the live file @live, and what its writer moved to
 * the node index before. A writer that was killed while it made the live file left one without a header.
 */
static bool is_void(struct collect_arg *ca, const char *live)
{
	const char *name = name_of(live);
	struct index_record *records = NULL;
	char index[CONTAINER_PATH_LEN];
	struct live_state state = { .nr_records = 0 };
	unsigned damaged = 0;
	int ret = live_load(ca->c, live, &state, &records);

	ca->later = false;
	for (uint64_t i = 0; !ret && i < state.nr_records; i++)
		ca->later |= records[i].stamp_ns > ca->generation_ns;
	mem_free(records);
	if ((ret && ret != -ENODATA) || ca->later)
		return false;
	name_log_numbers(name, &ca->pid, &ca->seq);
	name_index_of_live(live, index);
	ret = node_index_each(ca->c, index, find_later_of_log, ca, &damaged);
	return (!ret || ret == -ENOENT) && !damaged && !ca->later;
}

/* The log first: a live file without a log whose records are void does no harm. */
static bool collect_live(struct collect_arg *ca, const char *live)
{
	struct store *s = ca->c->store;
	char log[CONTAINER_PATH_LEN], path[CONTAINER_PATH_LEN];
	int ret;

	/*
	 * By the locks no process has the file open. But a description may have been handed on by ways that
	 * no lock shows.
	 */
	if (name_is_running(name_of(live)) || !is_void(ca, live))
		return false;
	name_log_of_live(live, log);
	container_path(ca->c, log, path);
	if (spare_may_be(ca->c))
		spare_unlink(ca->c, log);
	ret = s->ops->unlink(s, path);
	if (ret && ret != -ENOENT)
		return false;
	container_path(ca->c, live, path);
	return !s->ops->unlink(s, path);
}

/*
 * The live files were found before the locks were looked at: so none is of a process that has opened the file
 * since.
 */
static bool collect_lives(struct collect_arg *ca, unsigned *nr_ours)
{
	char path[CONTAINER_PATH_LEN];
	bool any = false;

	for (const char *live = ca->lives; live < ca->lives + ca->lives_len; live += strlen(live) + 1) {
		bool owners;

		container_path(ca->c, live, path);
		owners = writer_table_is_owners(ca->c, path);
		if (!collect_live(ca, live))
			continue;
		any = true;
		*nr_ours += owners && name_is_our_live(name_of(live));
	}
	return any;
}

static int find_live(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	(void)name;
	return kind == DROPPING_LIVE ? note_live(arg, path) : 0;
}

unsigned collect_dead(const struct container *c, uint64_t generation_ns, int stub_fd)
{
	int saved ERRNO_KEPT = errno;
	struct collect_arg ca = { .c = c, .generation_ns = generation_ns };
	unsigned nr_ours = 0;

	container_list_there(c, find_live, &ca);
	if (ca.lives && stub_is_alone(stub_fd))
		collect_lives(&ca, &nr_ours);
	mem_free(ca.lives);
	return nr_ours;
}

unsigned collect_void(const struct container *c, uint64_t generation_ns, int stub_fd)
{
	int saved ERRNO_KEPT = errno;
	struct collect_arg ca = { .c = c, .generation_ns = generation_ns };
	unsigned nr_ours = 0;

	container_list_there(c, collect_index, &ca);
	if (ca.lives && stub_fd >= 0 && stub_is_alone(stub_fd) && collect_lives(&ca, &nr_ours)) {
		ca.lives_len = 0;
		container_list_there(c, collect_index, &ca); /* what named their logs as well */
	}
	mem_free(ca.lives);
	return nr_ours;
}
