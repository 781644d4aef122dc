/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking at the kept map (globalcache.h): whether it misleads readers, and what it knows of logs and indexes that are lost.
 */
#include "look.h"

#include "globalcache.h"

#include <stdlib.h>

static bool is_indexed(const struct look_log *log)
{
	return log->nr_blocks || log->live != LOOK_NONE;
}

struct extra_arg {
	struct look *l;
	struct look_log **logs; /* as the map numbers them; NULL: of no interest */
	uint32_t nr_logs;
};

static int add_extra(void *arg, const struct index_piece *piece)
{
	struct extra_arg *ea = arg;
	struct look *l = ea->l;

	if (piece->log_no >= ea->nr_logs || !ea->logs[piece->log_no])
		return 0;
	if (!LOOK_ROOM(l, extras))
		return -ENOMEM;
	l->extras[l->nr_extras++] = (struct look_extra){ ea->logs[piece->log_no]->no, piece->logical_off, piece->len,
		piece->log_off };
	return 0;
}

/* Logs that the map knows and nothing else: their indexes are lost, and perhaps they. */
static int look_for_logs(struct look *l, const struct index_map *map, char *const *logs, uint32_t nr)
{
	struct extra_arg ea = { l, mem_zalloc((nr + (size_t)1) * sizeof(*ea.logs)), nr };
	bool any = false;
	int ret = ea.logs ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < nr && !ret; i++) {
		struct look_log *log = look_log(l, logs[i]);
		const struct finding *f;

		if (!log) {
			ret = -ENOMEM;
		} else if (!is_indexed(log)) {
			ea.logs[i] = log;
			any = log->placed = true;
			if (log->listed)
				continue;
			log->state = -ENOENT;
			f = findings_add(l->found, PLFS_DAMAGED, "log-missing", log->path, 0,
					 "the log is missing, and so is its index; index.global knows of it");
			ret = look_add_bad(l, log, 0, INT64_MAX, f);
		}
	}
	if (!ret && any)
		ret = index_map_each(map, add_extra, &ea);
	mem_free(ea.logs);
	return ret;
}

/* Node indexes only grow: one that is shorter than the map had it is cut. */
static int look_for_indexes(struct look *l, const struct global_index *gi, bool *cut)
{
	char path[CONTAINER_PATH_LEN];
	const char *inputs, *end;

	inputs = global_inputs(gi, &end);
	while (inputs < end) {
		const char *line_end = memchr(inputs, '\n', (size_t)(end - inputs)),
			*space = memchr(inputs, ' ', (size_t)(end - inputs));
		const struct look_index *idx = NULL;
		uint64_t had;

		if (!line_end || !space || space > line_end || space - inputs >= CONTAINER_PATH_LEN - 64)
			break;
		memcpy(path, inputs, (size_t)(space - inputs));
		path[space - inputs] = '\0';
		had = strtoull(space + 1, NULL, 10);
		for (uint32_t i = 0; i < l->nr_indexes && !idx; i++)
			if (!strcmp(l->indexes[i].path, path))
				idx = &l->indexes[i];
		if (!idx || idx->len < had) {
			*cut = true;
			findings_add(l->found, PLFS_DAMAGED, idx ? "index-cut" : "index-lost", path, 0,
				     idx ? "the node index has lost its end: it had %llu bytes when index.global was made" :
					   "the node index is missing: it had %llu bytes when index.global was made",
				     (unsigned long long)had);
		}
		inputs = line_end + 1;
	}
	return 0;
}

static bool has_written_since(const struct look *l)
{
	for (uint32_t i = 0; i < l->nr_lives; i++)
		if (!l->lives[i].ret && l->lives[i].state.nr_records)
			return true;
	return false;
}

static int compare(struct look *l, const struct global_index *gi)
{
	struct index_inputs in;
	struct index_map map;
	char **logs = NULL;
	uint32_t nr_logs = 0;
	bool made, cut = false;
	int ret = global_take(gi, &map, &logs, &nr_logs);

	if (ret == -EBADMSG || ret == -EPROTONOSUPPORT) {
		l->stale_global = true;
		findings_add(l->found, PLFS_NOTED, "global-damaged", "index.global", 0,
			     "the kept map is damaged: it is ignored, and made anew");
		ret = 0;
		goto out;
	}
	if (!ret)
		ret = index_inputs_list(&in, l->c, NULL);
	if (ret == -ENOENT || ret == -EIO) /* it has just gone; or a live file cannot be read, which has been told */
		ret = 0;
	else if (!ret) {
		made = global_made_from(gi, &in) && global_logs_digest(gi) == in.logs_digest;
		index_inputs_release(&in);
		if (made)
			goto out;
		ret = look_for_indexes(l, gi, &cut);
		if (!ret)
			ret = look_for_logs(l, &map, logs, nr_logs);
		if (cut || ret)
			goto out;
		l->stale_global = true;
		if (global_is_confirmed(gi) && (!l->nr_lives || has_written_since(l)))
			findings_add(l->found, PLFS_DAMAGED, "global-wrong", "index.global", 0,
				     "an old kept map in the place of the present one: who opens the file reads by it");
		else
			findings_add(l->found, PLFS_NOTED, "global-stale", "index.global", 0,
				     "the kept map is old: it is ignored, and made anew");
	}
out:
	for (uint32_t i = 0; logs && i < nr_logs; i++)
		mem_free(logs[i]);
	mem_free(logs);
	return ret;
}

int look_at_global(struct look *l)
{
	struct global_index gi;
	int ret = global_open(&gi, l->c, l->stub.generation_ns);

	if (ret == -EBADMSG) {
		l->stale_global = true;
		findings_add(l->found, PLFS_NOTED, "global-stale", "index.global", 0,
			     "the kept map is old, revoked or damaged: it is ignored, and made anew");
	}
	if (ret == -ENOENT || ret == -EBADMSG || ret == -ENODEV || ret == -ELOOP)
		return 0;
	if (!ret)
		ret = compare(l, &gi);
	global_close(&gi, l->c);
	return ret;
}
