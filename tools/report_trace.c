/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The traces of a job, as facts of the files that it wrote. A process's writes to a file are one log here,
 * with the moments of each call, so that all is binned as the records of an index are.
 */
#include "report_trace.h"

#include "options.h"
#include "report_print.h"
#include "report_words.h"

#include "core/base/vec.h"

#include <dirent.h>
#include <stdlib.h>

#define FILES_DRAWN 6
#define FAR (1ULL << 62) /* no file reaches so far: such a call is damaged */

struct traced {
	UT_hash_handle hh;
	struct report_logs logs;
	struct report_bins *bins; /* NULL: it is not drawn */
	uint64_t opens, closes, syncs, truncates, errors, read_bytes, end;
	bool in_logs;
	char path[];
};

/* One process while its trace is read. */
struct process {
	struct job *job;
	const struct trace_head *head;
	char log[NAME_MAX + 8]; /* "t/data.HOST.PID.SEQ" */
	struct traced **files;
	size_t nr_files, cap_files;
};

struct job {
	const char *dir;
	struct traced *by_path;
	bool binning; /* else all is surveyed */
	uint64_t nr, nr_running, left_out, left_out_bytes, nr_bad;
	char name[TRACE_TEXT + 1];
};

/* ---- calls ---- */

static struct report_log *log_of(struct process *p, struct traced *t)
{
	struct report_log *log = report_logs_find(&t->logs, p->log);
	struct report_writer *w;

	if (log)
		return log;
	log = report_logs_add(&t->logs, p->log, p->log + 2);
	if (!log)
		return NULL;
	w = log->writer;
	w->rank = p->head->rank == UINT32_MAX ? -1 : (int64_t)p->head->rank;
	snprintf(w->program, sizeof(w->program), "%.*s", (int)sizeof(w->program) - 1,
		 *p->head->program ? p->head->program : "?");
	w->open = !p->head->ended;
	return log;
}

/* Pieces of one process, which were written from @begin_ns on in @span_ns. */
static void add_written(struct job *job, struct traced *t, struct report_log *log, struct index_record *rec,
			uint64_t begin_ns, uint64_t span_ns)
{
	uint64_t bytes = rec->count * rec->length, end_ns = begin_ns + span_ns;

	rec->log_off = log->log_end;
	rec->stamp_ns = begin_ns;
	if (!job->binning) {
		report_logs_survey(&t->logs, log, rec, 0, rec->count);
		log->end_ns = max_u64(log->end_ns, end_ns);
	} else if (t->bins && log->knots) {
		log->knots[0] = (struct report_knot){ rec->log_off, begin_ns };
		log->knots[1] = (struct report_knot){ rec->log_off + bytes, end_ns };
		log->nr_knots = 2;
		log->at = 0;
		report_bins_add(t->bins, log, rec, 0, rec->count);
	}
	log->log_end += bytes;
}

/* A record has strides that go up, past its pieces. Other runs are added piece by piece. */
static void add_run(struct job *job, struct traced *t, struct report_log *log, const struct trace_call *c)
{
	bool up = c->count == 1 || c->stride >= (int64_t)c->len;
	uint64_t parts = up ? 1 : c->count;

	for (uint64_t i = 0; i < parts; i++) {
		struct index_record rec = {
			.type = INDEX_WRITE, .length = c->len, .count = up ? c->count : 1,
			.logical_off = c->off + i * (uint64_t)c->stride,
			.stride = up && c->count > 1 ? (uint64_t)c->stride : 0,
		};

		if (rec.logical_off > FAR || rec.stride > FAR / rec.count || c->len > FAR / rec.count)
			return;
		add_written(job, t, log, &rec, c->begin_ns + c->span_ns * i / parts, c->span_ns / parts);
	}
}

static void count_call(struct traced *t, struct report_log *log, const struct trace_call *c)
{
	struct report_writer *w = log->writer;

	t->in_logs |= c->in_logs;
	if (c->failed) {
		t->errors += c->count;
		w->errors += c->count;
		return;
	}
	t->opens += c->kind == TRACE_OPEN ? c->count : 0;
	t->closes += c->kind == TRACE_CLOSE ? c->count : 0;
	t->syncs += c->kind == TRACE_SYNC ? c->count : 0;
	t->truncates += c->kind == TRACE_TRUNCATE ? c->count : 0;
	if (c->kind == TRACE_READ) {
		w->read_calls += c->count;
		w->read_bytes += c->count * c->len;
		w->read_ns += c->call_ns;
		t->read_bytes += c->count * c->len;
	} else if (c->kind == TRACE_WRITE || c->kind == TRACE_APPEND) {
		w->call_ns += c->call_ns;
		w->slowest_ns = max_u64(w->slowest_ns, c->slowest_ns);
	}
}

static void truncate_file(struct traced *t, const struct trace_call *c)
{
	struct index_record rec = { .type = INDEX_TRUNCATE, .logical_off = c->len, .stamp_ns = c->begin_ns };

	if (t->bins)
		report_bins_add(t->bins, NULL, &rec, 0, 0);
}

/* With --verbose: a line for each call or run. */
static void put_call(const struct process *p, const struct traced *t, const struct trace_call *c)
{
	static const char *const kinds[] = { "", "open", "close", "read", "write", "append", "sync", "truncate",
					     "other" };

	printf("{\"type\": \"call\", \"kind\": \"%s\", \"failed\": %s", kinds[c->kind],
	       c->failed ? "true" : "false");
	report_put_text("file", t->path);
	report_put_text("node", p->head->host);
	report_put_number("pid", p->head->pid);
	report_put_number("offset", c->off);
	report_put_number("bytes", c->len);
	report_put_number("count", c->count);
	printf(", \"stride\": %lld", (long long)c->stride);
	report_put_number("begin_ns", c->begin_ns);
	report_put_number("span_ns", c->span_ns);
	puts("}");
}

static void take_call(void *arg, const struct trace_call *c)
{
	struct process *p = arg;
	struct traced *t = c->file < p->nr_files ? p->files[c->file] : NULL;
	struct report_log *log = t ? log_of(p, t) : NULL;

	if (!log || c->count > FAR / (c->len + 1))
		return;
	if (!p->job->binning)
		count_call(t, log, c);
	else if (opt.verbose)
		put_call(p, t, c);
	if (c->failed)
		return;
	if (c->kind == TRACE_TRUNCATE && p->job->binning)
		truncate_file(t, c);
	if ((c->kind == TRACE_WRITE || c->kind == TRACE_APPEND) && c->len)
		add_run(p->job, t, log, c);
}

static void take_name(void *arg, unsigned file, const char *path)
{
	struct process *p = arg;
	struct traced *t, **files = vec_room(p->files, &p->cap_files, file + 1, sizeof(*files));
	size_t len = strlen(path);

	if (!files)
		return;
	p->files = files;
	while (p->nr_files <= file)
		files[p->nr_files++] = NULL;
	HASH_FIND_STR(p->job->by_path, path, t);
	if (!t) {
		t = mem_zalloc(sizeof(*t) + len + 1);
		if (!t)
			return;
		memcpy(t->path, path, len);
		HASH_ADD_STR(p->job->by_path, path, t);
	}
	p->files[file] = t;
}

/* ---- traces ---- */

static bool is_trace(const char *name)
{
	return !strncmp(name, "trace.", 6) && strchr(name + 6, '.');
}

bool report_is_traces(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e = NULL;

	while (d && (e = readdir(d)) && !is_trace(e->d_name))
		;
	if (d)
		closedir(d);
	return e;
}

static void complain(struct job *job, const char *name, const char *what)
{
	if (!job->binning)
		tool_error("%s/%s: %s", job->dir, name, what);
}

static void count_trace(struct job *job, const struct trace_head *head)
{
	if (job->binning)
		return;
	job->nr++;
	job->nr_running += !head->ended;
	job->left_out += head->left_out;
	job->left_out_bytes += head->left_out_bytes;
	if (*head->job)
		strcpy(job->name, head->job);
}

/* 0; -errno that ends all. What is wrong with one trace is said, and the others count. */
static int take_trace(struct job *job, const char *name, const uint8_t *buf, size_t len)
{
	struct process *p = mem_zalloc(sizeof(*p));
	const struct trace_sink sink = { take_name, take_call, p };
	struct trace_head head;
	int bad = trace_head_decode(&head, buf, len);
	ssize_t ret = 0;

	if (!p)
		return -ENOMEM;
	*p = (struct process){ .job = job, .head = &head };
	snprintf(p->log, sizeof(p->log), "t/data%s", name + 5);
	if (bad) {
		job->nr_bad += !job->binning;
		complain(job, name, bad == -EPROTONOSUPPORT ?
			 "a trace of a newer version of libplfs: use its plfs report" :
			 "not a trace, or cut in its header: left out");
	} else {
		count_trace(job, &head);
		ret = trace_each(&head, buf, len, &sink);
	}
	if (ret > 0)
		complain(job, name, "damaged: what stands behind the damage is left out");
	mem_free(p->files);
	mem_free(p);
	return ret < 0 ? (int)ret : 0;
}

/* The owner may be writing it: it only grows. */
static int read_trace(struct job *job, int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), ret;
	struct stat st;
	ssize_t n = -1;
	uint8_t *buf;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		complain(job, name, fd < 0 ? strerror(errno) : "not a trace");
		if (fd >= 0)
			close(fd);
		return 0;
	}
	buf = mem_alloc((size_t)st.st_size);
	if (buf)
		n = io_pread_all(fd, buf, (size_t)st.st_size, 0);
	close(fd);
	ret = !buf ? -ENOMEM : n < 0 ? (int)n : take_trace(job, name, buf, (size_t)n);
	mem_free(buf);
	return ret;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int choose(const struct dirent *e)
{
	return is_trace(e->d_name);
}

static int each_trace(struct job *job)
{
	int dir = open(job->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = 0;
	struct dirent **names;
	int nr = dir < 0 ? -1 : scandirat(dir, ".", &names, choose, by_name);

	if (nr < 0)
		ret = -errno;
	for (int i = 0; i < nr; i++) {
		if (!ret)
			ret = read_trace(job, dir, names[i]->d_name);
		free(names[i]);
	}
	if (nr >= 0)
		free(names);
	if (dir >= 0)
		close(dir);
	return ret;
}

/* ---- all of them ---- */

static int by_bytes(const struct traced *a, const struct traced *b)
{
	uint64_t x = a->logs.bytes + a->read_bytes, y = b->logs.bytes + b->read_bytes;

	return x != y ? (x > y ? -1 : 1) : strcmp(a->path, b->path);
}

/* After the survey: the largest files get bins. */
static int begin_binning(struct job *job)
{
	unsigned nr = 0;
	int ret = 0;

	HASH_SORT(job->by_path, by_bytes);
	for (struct traced *t = job->by_path; t && !ret; t = t->hh.next) {
		t->end = t->logs.end_off;
		ret = report_logs_end_survey(&t->logs);
		if (ret || nr++ >= FILES_DRAWN || !t->end)
			continue;
		t->bins = report_bins_make(&t->logs, t->end);
		ret = t->bins ? 0 : -ENOMEM;
		for (struct report_log *log = t->logs.by_path; log; log = log->hh.next)
			log->log_end = 0;
	}
	job->binning = true;
	return ret;
}

static void put_file(const struct traced *t)
{
	fputs("{\"type\": \"file\", \"version\": 1, \"source\": \"trace\"", stdout);
	report_put_text("file", t->path);
	report_put_text("path", t->path);
	report_put_text("storage", t->in_logs ? "log" : "plain");
	report_put_number("size", t->end);
	report_put_number("opens", t->opens);
	report_put_number("closes", t->closes);
	report_put_number("syncs", t->syncs);
	report_put_number("truncates", t->truncates);
	report_put_number("errors", t->errors);
	report_put_number("read_bytes", t->read_bytes);
	if (t->bins)
		report_put_bins(&t->logs, t->bins);
	puts("}");
	if (t->bins || t->read_bytes)
		report_put_processes(&t->logs);
}

static void put_job(const struct job *job)
{
	fputs("{\"type\": \"trace\", \"version\": 1", stdout);
	report_put_text("directory", job->dir);
	report_put_text("job", job->name);
	report_put_number("processes", job->nr);
	report_put_number("not_ended", job->nr_running);
	report_put_number("unreadable", job->nr_bad);
	report_put_number("left_out", job->left_out);
	report_put_number("left_out_bytes", job->left_out_bytes);
	puts("}");
	for (struct traced *t = job->by_path; t; t = t->hh.next)
		put_file(t);
}

static void release(struct job *job)
{
	struct traced *t, *next;

	HASH_ITER(hh, job->by_path, t, next) {
		HASH_DEL(job->by_path, t);
		report_logs_release(&t->logs);
		mem_free(t->bins);
		mem_free(t);
	}
}

int report_trace(const char *dir)
{
	struct job job = { .dir = dir };
	int ret = each_trace(&job);

	if (!ret && !job.nr) {
		release(&job); /* what is wrong has been said */
		return TOOL_FAILED;
	}
	if (!ret)
		ret = begin_binning(&job);
	if (!ret)
		ret = each_trace(&job);
	if (ret)
		tool_error("%s: %s", dir, strerror(-ret));
	else
		put_job(&job);
	release(&job);
	return ret ? TOOL_FAILED : TOOL_OK;
}
