/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scans the kept map (kept_map.h): does it mislead readers, and what does it know of lost logs and indexes?
 */
#include "core/admin/scan/scan_global.h"

#include "core/gather/kept_map.h"

#include <stdlib.h>

static bool is_indexed(const struct scan_log *log)
{
	return log->nr_blocks > log->nr_told || log->live != SCAN_NONE;
}

struct extra_arg {
	struct scan *l;
	struct scan_log **logs; /* by the map's numbers; NULL: not needed */
	uint32_t nr_logs;
	uint64_t pieces_left;
};

/* Any number may be in the map of a stranger; then the rest is not looked for. */
#define EXTRAS_MAX (1u << 20)
#define PIECES_MAX ((uint64_t)1 << 28)

static int add_extra(void *arg, const struct index_piece *piece)
{
	struct extra_arg *ea = arg;
	struct scan *l = ea->l;

	if (!ea->pieces_left-- || l->nr_extras == EXTRAS_MAX)
		return 1;
	if (piece->log_no >= ea->nr_logs || !ea->logs[piece->log_no])
		return 0;
	if (!SCAN_ROOM(l, extras))
		return -ENOMEM;
	l->extras[l->nr_extras++] = (struct scan_extra){ ea->logs[piece->log_no]->no, piece->logical_off,
		piece->len,
		piece->log_off };
	return 0;
}

/* Find logs that only the map knows: their indexes are lost, and perhaps the logs too. */
static int compare_logs(struct scan *l, const struct index_map *map, char *const *logs, uint32_t nr)
{
	struct extra_arg ea = { l, mem_zalloc((nr + (size_t)1) * sizeof(*ea.logs)), nr, PIECES_MAX };
	bool any = false;
	int ret = ea.logs ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < nr && !ret; i++) {
		struct scan_log *log = scan_log(l, logs[i]);
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
					 "the log and its node index are missing; only index.global names "
					 "it");
			ret = scan_add_bad(l, log, 0, INT64_MAX, f);
		}
	}
	if (!ret && any)
		ret = index_map_each(map, add_extra, &ea);
	mem_free(ea.logs);
	return ret < 0 ? ret : 0;
}

/* Node indexes only grow: one that is shorter than when the map was built has lost its end. */
static int compare_indexes(struct scan *l, const struct kept_map *gi, bool *cut)
{
	char path[CONTAINER_PATH_LEN];
	const char *inputs, *end;

	inputs = kept_map_inputs(gi, &end);
	while (inputs < end) {
		const char *line_end = memchr(inputs, '\n', (size_t)(end - inputs)),
			*space = memchr(inputs, ' ', (size_t)(end - inputs));
		const struct scan_index *idx = NULL;
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
			findings_add(
				l->found, PLFS_DAMAGED, idx ? "index-cut" : "index-lost", path, 0,
				idx ? "the node index is too short: it had %llu bytes when index.global was made" :
				      "the node index is missing: it had %llu bytes when index.global was made",
				(unsigned long long)had);
		}
		inputs = line_end + 1;
	}
	return 0;
}

/*
 * As kept_map_logs_digest(), of the logs that are there, and of those that no node index names. The map also
 * names logs that are missing: they are reported, and the map is not older for that.
 */
static uint64_t digest_of(struct scan *l, char *const *logs, uint32_t nr)
{
	uint64_t digest = 0;

	for (uint32_t i = 0; i < nr; i++) {
		const struct scan_log *log = scan_log(l, logs[i]);

		if (!log || log->listed || !log->nr_blocks)
			digest += index_log_digest(logs[i], strlen(logs[i]));
	}
	return digest;
}

static bool has_written_since(const struct scan *l)
{
	for (uint32_t i = 0; i < l->nr_lives; i++)
		if (!l->lives[i].ret && l->lives[i].state.nr_records)
			return true;
	return false;
}

static int compare(struct scan *l, const struct kept_map *gi)
{
	struct index_inputs in;
	struct index_map map;
	char **logs = NULL;
	uint32_t nr_logs = 0;
	bool made, cut = false;
	int ret = kept_map_take(gi, &map, &logs, &nr_logs);

	if (ret == -EBADMSG || ret == -EPROTONOSUPPORT) {
		l->stale_global = true;
		findings_add(l->found, PLFS_NOTED, "global-damaged", "index.global", 0,
			     "the kept map is damaged: readers ignore it and build it anew");
		ret = 0;
		goto out;
	}
	if (!ret)
		ret = index_inputs_list(&in, l->c, NULL);
	/* just removed; or a live file is unreadable, which is reported already */
	if (ret == -ENOENT || ret == -EIO)
		ret = 0;
	else if (!ret) {
		made = kept_map_made_from(gi, &in) && digest_of(l, logs, nr_logs) == in.logs_digest;
		index_inputs_release(&in);
		if (made)
			goto out;
		ret = compare_indexes(l, gi, &cut);
		if (!ret)
			ret = compare_logs(l, &map, logs, nr_logs);
		if (cut || ret)
			goto out;
		l->stale_global = true;
		if (kept_map_is_confirmed(gi) && (!l->nr_lives || has_written_since(l)))
			findings_add(l->found, PLFS_DAMAGED, "global-wrong", "index.global", 0,
				     "an old kept map in the place of the present one: readers use it and "
				     "find old data; plfs repair removes it");
		else
			findings_add(l->found, PLFS_NOTED, "global-stale", "index.global", 0,
				     "the kept map is old: readers ignore it and build it anew");
	}
out:
	for (uint32_t i = 0; logs && i < nr_logs; i++)
		mem_free(logs[i]);
	mem_free(logs);
	return ret;
}

int scan_global(struct scan *l)
{
	struct kept_map gi;
	int ret = kept_map_open(&gi, l->c, l->stub.generation_ns);

	if (ret == -EBADMSG) {
		l->stale_global = true;
		findings_add(l->found, PLFS_NOTED, "global-stale", "index.global", 0,
			     "the kept map is old, revoked or damaged: readers ignore it and build it anew");
	}
	if (ret == -ENOENT || ret == -EBADMSG || ret == -ENODEV || ret == -ELOOP)
		return 0;
	if (!ret)
		ret = compare(l, &gi);
	kept_map_close(&gi, l->c);
	return ret;
}
