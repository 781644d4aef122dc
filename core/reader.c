/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lookups through the stack of maps and reads from the logs. A log is read in windows: strided data that is read in order
 * is in order in every log too, so a window that doubles while that holds turns many small reads
 * into few large ones. Descriptors and windows are bounded, whatever the number of logs.
 */
#include "reader.h"

#include "../index/merge.h"
#include "alloc.h"
#include "dropping.h"
#include "log.h"
#include "own.h"
#include "stamp.h"
#include "sys.h"

#include <stdio.h>

#define OPEN_LOGS_MAX 64 /* and no more than a quarter of what the process may have */
#define WINDOW_MIN 4096
#define WINDOW_FIRST 65536
#define WINDOW_MAX (1024 * 1024)
#define WINDOWS_BUDGET (48 * 1024 * 1024)
/* From here on a piece is read where it is wanted, past the window. */
#define DIRECT_LEN (128 * 1024)

void reader_init(struct reader *r, const struct container *c)
{
	memset(r, 0, sizeof(*r));
	r->c = c;
	r->own_log = UINT32_MAX;
}

static void drop_window(struct reader *r, struct reader_log *log)
{
	if (log->window)
		r->window_bytes -= log->win_cap;
	mem_free(log->window);
	log->window = NULL;
	log->win_len = log->win_cap = 0;
}

static void close_log(struct reader *r, struct reader_log *log)
{
	if (log->h >= 0) {
		store_close(r->c->store, &log->h);
		r->nr_open--;
	}
}

static void drop_levels(struct reader *r, int from)
{
	while (r->nr_levels > from) {
		struct reader_level *l = &r->levels[--r->nr_levels];

		if (!l->mapped)
			mem_free(l->image);
	}
	if (!from)
		global_index_release(&r->global);
}

static void drop_base(struct reader *r)
{
	drop_levels(r, 0);
	for (uint32_t i = 0; i < r->nr_logs; i++) {
		drop_window(r, &r->logs[i]);
		close_log(r, &r->logs[i]);
		mem_free(r->logs[i].path);
	}
	r->nr_logs = 0;
	r->nr_own = 0;
	r->own_log = UINT32_MAX;
	r->loaded = false;
	index_inputs_release(&r->inputs);
}

void reader_release(struct reader *r)
{
	drop_base(r);
	mem_free(r->logs);
	mem_free(r->own);
	watch_release(&r->watch, r->c);
	reader_init(r, r->c);
}

/* Take over @path. */
static int add_log(struct reader *r, char *path)
{
	if (r->nr_logs == r->cap_logs) {
		uint32_t cap = r->cap_logs ? 2 * r->cap_logs : 16;
		struct reader_log *logs = mem_realloc(r->logs, cap * sizeof(*logs));

		if (!logs)
			return -ENOMEM;
		r->logs = logs;
		r->cap_logs = cap;
	}
	r->logs[r->nr_logs] = (struct reader_log){ .path = path, .h = -1, .ahead = WINDOW_FIRST };
	return (int)r->nr_logs++;
}

static int install(struct reader *r, struct gathered *g, struct index_inputs *in)
{
	int ret = 0;

	drop_base(r);
	for (uint32_t i = 0; i < g->nr_logs; i++) {
		if (ret >= 0)
			ret = add_log(r, g->logs[i]);
		if (ret < 0)
			mem_free(g->logs[i]);
	}
	mem_free(g->logs);
	r->levels[0] = (struct reader_level){ .image = g->image, .image_len = g->image_len, .mapped = g->mapped, .map = g->map };
	r->nr_levels = 1;
	r->global = g->global;
	if (ret < 0) {
		drop_base(r);
		return ret;
	}
	r->inputs = *in;
	memset(in, 0, sizeof(*in));
	r->loaded = true;
	stamp_seen(g->map.max_stamp_ns);
	return 0;
}

/* The live file that belongs to the data log @log_path. */
static void live_path(const char *log_path, char *path)
{
	const char *name = strchr(log_path, '/') + 1;

	snprintf(path, CONTAINER_PATH_LEN, "%.*slive.%s", (int)(name - log_path), log_path, name + sizeof("data.") - 1);
}

static int own_log_no(struct reader *r, const struct writer *w)
{
	char *path;
	int ret;

	if (r->own_log != UINT32_MAX)
		return (int)r->own_log;
	for (uint32_t i = r->nr_logs; i-- > 0;)
		if (!strcmp(r->logs[i].path, w->log_path))
			return (int)(r->own_log = i);
	path = mem_strdup(w->log_path);
	ret = path ? add_log(r, path) : -ENOMEM;
	if (ret >= 0)
		r->own_log = (uint32_t)ret;
	return ret;
}

int reader_load(struct reader *r, struct writer *w, uint64_t generation_ns)
{
	char own[CONTAINER_PATH_LEN], suspect[CONTAINER_PATH_LEN] = "";
	struct index_inputs in;
	struct gathered g;
	int ret = -EAGAIN;

	if (w) {
		writer_break(w); /* what is in the base must not grow behind its back */
		live_path(w->log_path, own);
	}
	/*
	 * Logs that are being closed move under our feet; each time round there is one less of them. One that no index
	 * knows, and that is no longer open, may have been closed since the indexes were read: then they know it the next time.
	 */
	for (int tries = 0, lost = 0; tries < 1000 && (ret == -EAGAIN || (ret == -ENOMSG && lost < 3)); tries++) {
		if (ret == -ENOMSG)
			memcpy(suspect, g.lost, sizeof(suspect));
		watch_word(&r->watch, r->c, r->may_make);
		ret = index_inputs_list(&in, r->c, w ? own : NULL);
		if (ret == -ENOENT)
			return -ESTALE;
		if (!ret)
			watch_lives(&r->watch, r->c, &in);
		if (!ret)
			ret = gather(&g, r->c, &in, w ? own : NULL, generation_ns);
		if (ret == -ENOMSG)
			lost = strcmp(suspect, g.lost) ? 0 : lost + 1;
		if (!ret)
			ret = install(r, &g, &in);
		index_inputs_release(&in);
	}
	if (ret == -ENOMSG)
		memcpy(r->lost, g.lost, sizeof(r->lost));
	if (!ret && w) {
		w->nr_pinned = w->stage.nr_records;
		ret = own_log_no(r, w);
		ret = ret < 0 ? ret : 0;
	}
	log_debug(LOG_INDEX, "%s: merged %llu records of %u logs: %s", r->c->dir,
		  ret ? 0ULL : (unsigned long long)r->levels[0].map.nr_records, r->nr_logs, strerror(-ret));
	return ret == -EAGAIN ? -EIO : ret;
}

int reader_reload(struct reader *r, struct writer *w, uint64_t generation_ns, bool *changed)
{
	char own[CONTAINER_PATH_LEN];
	struct index_inputs in;
	int ret;

	*changed = true;
	if (r->loaded) {
		if (w)
			live_path(w->log_path, own);
		watch_word(&r->watch, r->c, r->may_make);
		ret = index_inputs_list(&in, r->c, w ? own : NULL);
		if (!ret)
			watch_lives(&r->watch, r->c, &in);
		if (!ret && index_inputs_equal(&in, &r->inputs))
			*changed = false;
		index_inputs_release(&in);
		if (ret && ret != -ENOENT)
			return ret;
	}
	return *changed ? reader_load(r, w, generation_ns) : 0;
}

/* Build the map of own[first...] and put it on top. */
static int push_level(struct reader *r, size_t first)
{
	struct reader_level *l = &r->levels[r->nr_levels];
	struct index_merge m;
	int ret = 0;

	index_merge_init(&m);
	for (size_t i = first; i < r->nr_own && !ret; i++)
		ret = index_merge_add(&m, r->own[i].log_no, &r->own[i].rec);
	*l = (struct reader_level){ .first_own = first };
	if (!ret)
		ret = index_merge_build(&m, &l->image, &l->image_len);
	if (!ret)
		ret = index_map_open(&l->map, l->image, l->image_len, false);
	index_merge_release(&m);
	if (ret)
		mem_free(l->image);
	else
		r->nr_levels++;
	return ret;
}

int reader_add_own(struct reader *r, struct writer *w)
{
	uint64_t nr = w->stage.nr_records, have = w->nr_pinned;
	size_t first = r->nr_own;
	int log_no, ret;

	if (have == nr)
		return 0;
	log_no = own_log_no(r, w);
	if (log_no < 0)
		return log_no;
	if (r->nr_own + (nr - have) > r->cap_own) {
		size_t cap = 2 * r->cap_own + (nr - have) + 64;
		struct reader_own *own = mem_realloc(r->own, cap * sizeof(*own));

		if (!own)
			return -ENOMEM;
		r->own = own;
		r->cap_own = cap;
	}
	writer_break(w);
	for (; have < nr; have++, r->nr_own++) {
		writer_record(w, have, &r->own[r->nr_own].rec);
		r->own[r->nr_own].log_no = (uint32_t)log_no;
	}
	/* Levels that are not at least twice as large as what is above them are merged with it: few levels, and
	 * each record is merged a logarithmic number of times. */
	while (r->nr_levels > 1) {
		size_t below = first - r->levels[r->nr_levels - 1].first_own;

		if (below >= 2 * (r->nr_own - first) && r->nr_levels < READER_LEVELS_MAX)
			break;
		first = r->levels[r->nr_levels - 1].first_own;
		drop_levels(r, r->nr_levels - 1);
	}
	w->nr_pinned = nr;
	ret = push_level(r, first);
	if (ret)
		drop_base(r); /* it lacks records now: made anew when next needed */
	return ret;
}

uint64_t reader_end(const struct reader *r)
{
	uint64_t end = 0, cut = UINT64_MAX;

	for (int i = r->nr_levels - 1; i >= 0; i--) {
		end = max_u64(end, min_u64(r->levels[i].map.end, cut));
		cut = min_u64(cut, r->levels[i].map.cut);
	}
	return end;
}

void reader_lookup(const struct reader *r, uint64_t logical_off, uint64_t len, struct index_piece *piece)
{
	for (int i = r->nr_levels - 1; i >= 0; i--) {
		index_map_lookup(&r->levels[i].map, logical_off, len, piece);
		if (piece->log_no != INDEX_LOG_HOLE)
			return;
		len = piece->len;
	}
	*piece = (struct index_piece){ .logical_off = logical_off, .len = len, .log_no = INDEX_LOG_HOLE };
}

/* Take descriptors or windows from other logs, in turn, until there is room. */
bool reader_is_stale(const struct reader *r, uint64_t logical_off, uint64_t len)
{
	struct index_piece piece;

	if (likely(watch_is_idle(&r->watch)) || !watch_changed(&r->watch))
		return false;
	if (r->own_log == UINT32_MAX)
		return true;
	reader_lookup(r, logical_off, len, &piece);
	return piece.log_no != r->own_log || piece.len < len;
}

static void make_room(struct reader *r, const struct reader_log *keep, size_t window)
{
	for (uint32_t i = 0; i < r->nr_logs; i++) {
		struct reader_log *log = &r->logs[r->hand];

		if (r->nr_open < r->max_open && r->window_bytes + window <= WINDOWS_BUDGET)
			return;
		r->hand = (r->hand + 1) % r->nr_logs;
		if (log == keep)
			continue;
		if (r->nr_open >= r->max_open)
			close_log(r, log);
		if (r->window_bytes + window > WINDOWS_BUDGET)
			drop_window(r, log);
	}
}

static void close_others(struct reader *r, const struct reader_log *keep)
{
	for (uint32_t i = 0; i < r->nr_logs; i++)
		if (&r->logs[i] != keep)
			close_log(r, &r->logs[i]);
}

static int open_log(struct reader *r, struct reader_log *log)
{
	if (log->h >= 0)
		return 0;
	if (!r->max_open) {
		struct rlimit limit;

		r->max_open = OPEN_LOGS_MAX;
		if (!sys.getrlimit(RLIMIT_NOFILE, &limit))
			r->max_open = (uint32_t)max_u64(1, min_u64(OPEN_LOGS_MAX, limit.rlim_cur / 4));
	}
	make_room(r, log, 0);
	log->h = dropping_open_log(r->c, log->path);
	if (log->h == -EMFILE || log->h == -ENFILE) { /* give back what we hold and try once more */
		close_others(r, log);
		log->h = dropping_open_log(r->c, log->path);
	}
	if (log->h < 0) {
		int ret = log->h;

		log->h = -1;
		r->missing = (uint32_t)(log - r->logs);
		if (ret == -EIO)
			log_error("%s/%s: the data log is damaged", r->c->dir, log->path);
		return ret;
	}
	r->nr_open++;
	return 0;
}

/* Read up to @len bytes; fewer where the log, as it is now, ends. What another process still has staged is read from there. */
static ssize_t read_log(struct reader *r, struct reader_log *log, void *buf, size_t len, uint64_t log_off)
{
	struct store *s = r->c->store;
	char live[CONTAINER_PATH_LEN];
	size_t done = 0;

	for (int tries = 0; tries < 3; tries++) {
		ssize_t n = s->ops->pread(s, log->h, (char *)buf + done, len - done, DROPPING_DATA_OFF + log_off + done);

		if (n < 0)
			return n;
		done += (size_t)n;
		if (done == len)
			break;
		live_path(log->path, live);
		n = stage_load_bytes(r->c, live, log_off + done, (char *)buf + done, len - done);
		if (n == -EMFILE || n == -ENFILE) {
			close_others(r, log);
			n = stage_load_bytes(r->c, live, log_off + done, (char *)buf + done, len - done);
		}
		if (n < 0 && n != -ENOENT)
			return n;
		done += n > 0 ? (size_t)n : 0;
		if (done == len)
			break; /* else it has been flushed in between: it is in the log now */
	}
	return (ssize_t)done;
}

static int too_short(struct reader *r, const struct reader_log *log, uint64_t log_off)
{
	log_error("%s/%s: the data log is shorter than its index says (byte %llu is missing)", r->c->dir, log->path,
		  (unsigned long long)log_off);
	return -EIO;
}

static int read_direct(struct reader *r, struct reader_log *log, void *buf, size_t len, uint64_t log_off)
{
	ssize_t n = read_log(r, log, buf, len, log_off);

	if (n < 0)
		return (int)n;
	return (size_t)n < len ? too_short(r, log, log_off + (size_t)n) : 0;
}

/* Fill the window from @log_off on, larger the longer the reading has been in order. Returns 0 with at least @len bytes in it. */
static int fill_window(struct reader *r, struct reader_log *log, size_t len, uint64_t log_off)
{
	bool in_order = log_off >= log->next_off && log_off - log->next_off <= log->ahead;
	size_t want;
	ssize_t n;

	log->ahead = in_order ? min_size(2 * log->ahead, WINDOW_MAX) : log->ahead / 2 > WINDOW_MIN ? log->ahead / 2 : WINDOW_MIN;
	want = log->ahead > len ? log->ahead : (size_t)round_up_u64(len, WINDOW_MIN);
	log->win_len = 0;
	if (want > log->win_cap) {
		drop_window(r, log);
		make_room(r, log, want);
		log->window = mem_alloc(want);
		if (!log->window)
			return -ENOMEM;
		log->win_cap = want;
		r->window_bytes += want;
	}
	n = read_log(r, log, log->window, want, log_off);
	if (n < 0)
		return (int)n;
	log->win_off = log_off;
	log->win_len = (size_t)n;
	log->next_off = log_off + (size_t)n;
	return (size_t)n < len ? too_short(r, log, log_off + (size_t)n) : 0;
}

static int read_piece(struct reader *r, const struct writer *w, struct reader_log *log, uint8_t *buf, size_t len,
		      uint64_t log_off)
{
	int ret;

	if (w && r->own_log != UINT32_MAX && log == &r->logs[r->own_log]) {
		uint64_t flushed = writer_flushed_len(w);

		if (log_off + len > flushed) {
			uint64_t from = max_u64(log_off, flushed);

			writer_read_stage(w, buf + (from - log_off), (size_t)(log_off + len - from), from);
			len = (size_t)(from - log_off);
			if (!len)
				return 0;
		}
	}
	if (log_off < log->win_off || log_off + len > log->win_off + log->win_len) {
		ret = open_log(r, log);
		if (ret)
			return ret;
		if (len >= DIRECT_LEN)
			return read_direct(r, log, buf, len, log_off);
		ret = fill_window(r, log, len, log_off);
		if (ret)
			return ret;
	}
	memcpy(buf, log->window + (log_off - log->win_off), len);
	return 0;
}

ssize_t reader_extent(struct reader *r, uint64_t logical_off, uint64_t len, int *fd, uint64_t *fd_off)
{
	struct index_piece piece;
	struct reader_log *log;
	struct stat st;
	int ret;

	*fd = -1;
	reader_lookup(r, logical_off, len, &piece);
	if (piece.log_no >= r->nr_logs)
		return (ssize_t)piece.len;
	log = &r->logs[piece.log_no];
	ret = open_log(r, log);
	if (!ret)
		ret = r->c->store->ops->fstat(r->c->store, log->h, &st);
	if (ret)
		return ret;
	*fd_off = DROPPING_DATA_OFF + piece.log_off;
	if (*fd_off + piece.len <= (uint64_t)st.st_size) /* else its end is in a stage */
		*fd = log->h;
	return (ssize_t)piece.len;
}

static int read_body(int stub_fd, void *buf, size_t len, uint64_t logical_off)
{
	ssize_t n = own_pread_all(stub_fd, buf, len, PLFS_BODY_OFF + logical_off);

	if (n < 0)
		return (int)n;
	memset((char *)buf + n, 0, len - (size_t)n);
	return 0;
}

void reader_log_missing(const struct reader *r)
{
	log_error("%s/%s: the data log is missing", r->c->dir, r->missing < r->nr_logs ? r->logs[r->missing].path : "");
}

int reader_read(struct reader *r, const struct writer *w, int stub_fd, void *buf, size_t len, uint64_t logical_off)
{
	uint8_t *p = buf;

	while (len) {
		struct index_piece piece;
		int ret;

		reader_lookup(r, logical_off, len, &piece);
		if (piece.log_no == INDEX_LOG_HOLE || piece.log_no == INDEX_LOG_CUT)
			ret = read_body(stub_fd, p, piece.len, logical_off);
		else if (piece.log_no >= r->nr_logs)
			ret = -EIO;
		else
			ret = read_piece(r, w, &r->logs[piece.log_no], p, piece.len, piece.log_off);
		if (ret)
			return ret;
		p += piece.len;
		logical_off += piece.len;
		len -= piece.len;
	}
	return 0;
}
