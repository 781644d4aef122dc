/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One object for the file, then one for each process that wrote it. Closed logs are read from the node
 * indexes; what is in an open one alone comes out of the file's map, without moments.
 */
#include "report_facts.h"

#include "advice.h"
#include "report_print.h"

#include <time.h>

#define ZOOM_PIECES 512   /* of the beginning of the file, as they lie */
#define OPEN_PIECES (1u << 21) /* of the map that are looked at for open logs */
#define OPEN_NS 2000000000ULL  /* and so long: a piece among many overlapping records is found slowly */
#define MAP_RECORDS (1u << 22) /* the map of more records is not made for a report */
#define RECLAIMABLE_PIECES (1u << 16) /* of more pieces what was overwritten is estimated */

struct piece {
	uint64_t off, len;
	uint32_t writer;
};

struct facts {
	struct target *t;
	struct plfs_info info;
	struct report_logs logs;
	struct report_bins *bins;
	uint64_t overwritten;
	struct piece zoom[ZOOM_PIECES];
	size_t nr_zoom;
	/* of a walk over the map */
	report_record_fn *fn;
	void *fn_arg;
	uint64_t nr_pieces, in_stub;
	uint64_t until_ns;
	bool is_cut; /* the map has more pieces */
	bool is_estimate; /* overwritten */
};

/* ---- what only open logs have ---- */

/* Pieces of open logs that no node index has, as records without a stamp. */
static void add_open_piece(struct facts *f, uint64_t off, uint64_t len, const char *path, uint64_t log_off)
{
	struct report_log *log = report_logs_find(&f->logs, path);
	struct index_record rec = { .type = INDEX_WRITE, .logical_off = off, .length = len, .count = 1,
				    .log_off = log_off };

	if (!log || !log->open || log_off < log->log_end)
		return;
	f->fn(f->fn_arg, log, &rec, 0, 1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int add_map_piece(void *arg, uint64_t off, uint64_t len, const char *path, uint64_t log_off)
{
	struct facts *f = arg;

	if (++f->nr_pieces > OPEN_PIECES || (f->nr_pieces % 256 == 0 && now_ns() > f->until_ns)) {
		f->is_cut = true;
		return 1;
	}
	if (path == plfs_in_stub)
		f->in_stub += len;
	else if (path && path != plfs_lost)
		add_open_piece(f, off, len, path, log_off);
	return 0;
}

/*
 * The pieces come in the order of the file; a log is a clock in its own order. So all are counted before the
 * end of the log moves.
 */
static int walk_open(struct facts *f, report_record_fn *fn, void *arg)
{
	int ret;

	f->fn = fn;
	f->fn_arg = arg;
	f->nr_pieces = f->in_stub = 0;
	f->until_ns = now_ns() + OPEN_NS;
	f->is_cut = false;
	ret = plfs_get_map(f->t->file, add_map_piece, f);
	return ret < 0 ? ret : 0;
}

/* The bytes of the samples that somebody owns are those that are seen of all that was written. */
static uint64_t estimate_overwritten(const struct facts *f)
{
	const struct report_bins *b = f->bins;
	uint64_t seen = 0, nr = 0, bytes;

	for (size_t i = 0; i < REPORT_SAMPLES; i += b->nr_steps, nr++)
		seen += b->samples[i].writer != REPORT_NOBODY;
	bytes = (uint64_t)((double)b->size * (double)seen / (double)nr);
	return f->logs.bytes > bytes + bytes / 32 ? f->logs.bytes - bytes : 0;
}

static int walk_all(struct facts *f, report_record_fn *fn, void *arg)
{
	int ret = report_logs_each(&f->logs, fn, arg);

	return ret || !f->logs.nr_open ? ret : walk_open(f, fn, arg);
}

/* ---- the beginning of the file ---- */

static int add_zoom(void *arg, uint64_t off, uint64_t len, const char *path, uint64_t log_off)
{
	struct facts *f = arg;
	struct report_log *log =
		path && path != plfs_in_stub && path != plfs_lost ? report_logs_find(&f->logs, path) : NULL;

	(void)log_off;
	f->zoom[f->nr_zoom++] = (struct piece){ off, len, log ? log->writer->no : REPORT_NOBODY };
	return f->nr_zoom == ZOOM_PIECES;
}

/* ---- JSON ---- */

static void put_beginning(const struct facts *f)
{
	fputs(", \"beginning\": [", stdout);
	for (size_t i = 0; i < f->nr_zoom; i++)
		printf("%s[%llu, %llu, %lld]", i ? ", " : "", (unsigned long long)f->zoom[i].off,
		       (unsigned long long)f->zoom[i].len, report_shown(f->zoom[i].writer));
	putchar(']');
}

static void put_advice(void *arg, const char *about, const char *what, const char *why)
{
	bool *some = arg;

	(void)about;
	fputs(*some ? ", [" : "[", stdout);
	tool_print_json(what);
	fputs(", ", stdout);
	tool_print_json(why);
	putchar(']');
	*some = true;
}

static void put_hints(const struct facts *f)
{
	bool some = false;

	fputs(", \"advice\": [", stdout);
	advice_of_file(f->t, &f->info, f->overwritten, put_advice, &some);
	putchar(']');
}

static void put_all(struct facts *f, const char *name)
{
	const struct plfs_info *info = &f->info;

	fputs("{\"type\": \"file\", \"version\": 1, \"source\": \"index\"", stdout);
	report_put_text("file", name);
	report_put_text("path", f->t->path);
	report_put_text("storage", !f->t->file ? "plain" : *info->container ? "log" : "stub");
	report_put_number("size", f->t->size);
	report_put_number("disk_bytes", f->t->file ? info->disk_bytes : (uint64_t)f->t->st.st_blocks * 512);
	if (f->bins) {
		report_put_number("logs", f->logs.nr_logs);
		report_put_number("open_logs", f->logs.nr_open);
		report_put_number("index_records", info->nr_records);
		report_put_number("log_bytes", info->log_bytes);
		report_put_number("index_bytes", info->index_bytes);
		report_put_number("overwritten_bytes", f->overwritten);
		printf(", \"overwritten_is_estimate\": %s", f->is_estimate ? "true" : "false");
		report_put_number("stub_bytes", f->in_stub);
		report_put_number("damaged_blocks", f->logs.nr_damaged);
		report_put_number("lost_blocks", f->logs.nr_unknown);
		printf(", \"complete\": %s", f->is_cut ? "false" : "true");
		put_hints(f);
		put_beginning(f);
		report_put_bins(&f->logs, f->bins);
	}
	puts("}");
	if (f->bins)
		report_put_processes(&f->logs);
}

/* ---- the file ---- */

static int collect(struct facts *f)
{
	int ret = plfs_get_info(f->t->file, &f->info);

	f->t->size = f->info.size;
	if (ret || !*f->info.container)
		return ret;
	f->logs.container = f->info.container;
	f->logs.generation_ns = f->info.generation_ns;
	ret = report_logs_list(&f->logs);
	if (!ret)
		ret = walk_all(f, report_logs_survey, &f->logs);
	if (!ret)
		ret = report_logs_end_survey(&f->logs);
	if (ret)
		return ret;
	f->bins = report_bins_make(&f->logs, f->t->size);
	if (!f->bins)
		return -ENOMEM;
	ret = walk_all(f, report_bins_add, f->bins);
	if (!ret && !f->logs.nr_open && f->logs.pieces <= RECLAIMABLE_PIECES)
		ret = walk_open(f, NULL, NULL); /* for the bytes in the stub */
	if (!ret && f->logs.nr_records <= MAP_RECORDS)
		ret = plfs_get_map(f->t->file, add_zoom, f);
	if (ret < 0)
		return ret;
	f->is_estimate = f->logs.pieces > RECLAIMABLE_PIECES ||
			 plfs_get_reclaimable(f->t->file, &f->info, &f->overwritten);
	if (f->is_estimate)
		f->overwritten = estimate_overwritten(f);
	return 0;
}

int report_facts(const char *name)
{
	struct facts *f = mem_zalloc(sizeof(*f));
	struct target t;
	int ret;

	if (!f || !target_open_unsized(&t, name)) {
		mem_free(f);
		return TOOL_FAILED;
	}
	f->t = &t;
	ret = t.file ? collect(f) : 0;
	if (ret)
		tool_error("%s: %s", name, strerror(-ret));
	else
		put_all(f, name);
	report_logs_release(&f->logs);
	mem_free(f->bins);
	mem_free(f);
	target_close(&t);
	return ret ? TOOL_FAILED : TOOL_OK;
}
