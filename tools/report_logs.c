/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the node indexes of a container, as plfs-format(5) has them. A record has the moment at which it
 * began, and its bytes follow each other in the log: so the log is a clock, and its knots are kept.
 */
#include "report_logs.h"

#include "core/base/vec.h"
#include "index/record/block.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define KNOTS_ALL (1u << 22) /* of all logs together */
#define KNOTS_MAX 4096       /* of one log */
#define KNOTS_MIN 16
#define GRAIN_NS 4000000     /* the time of a file's last change may be so much too early */
#define BOOT_LEN 9 /* HOST ends with "-" and 8 digits that tell one boot from another */
#define NAME_LEN 128

uint64_t report_pieces(const struct index_record *rec)
{
	return rec->count * (rec->outer_count ? rec->outer_count : 1);
}

uint64_t report_piece_off(const struct index_record *rec, uint64_t i)
{
	return rec->logical_off + i % rec->count * rec->stride + i / rec->count * rec->outer_stride;
}

static uint64_t ns_of(const struct statx_timestamp *t)
{
	return t->tv_sec < 0 ? 0 : (uint64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

/* ---- which logs there are ---- */

/* The number of the host called @name; -errno. */
static int host_of(struct report_logs *l, const char *name, size_t len)
{
	char(*hosts)[REPORT_HOST_LEN];
	char host[REPORT_HOST_LEN] = "";

	if (len > BOOT_LEN && name[len - BOOT_LEN] == '-')
		len -= BOOT_LEN;
	memcpy(host, name, len < sizeof(host) ? len : sizeof(host) - 1);
	for (size_t i = l->nr_hosts; i-- > 0;)
		if (!strcmp(l->hosts[i], host))
			return (int)i;
	hosts = vec_room(l->hosts, &l->cap_hosts, l->nr_hosts + 1, sizeof(*hosts));
	if (!hosts)
		return -ENOMEM;
	l->hosts = hosts;
	memcpy(hosts[l->nr_hosts], host, sizeof(host));
	return (int)l->nr_hosts++;
}

/* @name: "data.HOST.PID.SEQ". NULL: no memory, or no such name. */
static struct report_writer *writer_of(struct report_logs *l, const char *name)
{
	const char *host = strchr(name, '.') + 1, *seq = strrchr(name, '.'), *pid;
	size_t len = seq > host ? (size_t)(seq - host) : 0;
	struct report_writer *w;
	int no;

	pid = len ? memrchr(host, '.', len) : NULL;
	if (!pid)
		return NULL;
	HASH_FIND(hh, l->by_key, host, len, w);
	if (w)
		return w;
	no = host_of(l, host, (size_t)(pid - host));
	w = no < 0 ? NULL : mem_zalloc(sizeof(*w) + len + 1);
	if (!w)
		return NULL;
	memcpy(w->key, host, len);
	w->host = (uint32_t)no;
	w->pid = strtoull(pid + 1, NULL, 10);
	w->first_off = w->first_ns = UINT64_MAX;
	w->rank = -1;
	HASH_ADD(hh, l->by_key, key, len, w);
	l->nr_writers++;
	return w;
}

struct report_log *report_logs_find(const struct report_logs *l, const char *path)
{
	struct report_log *log;

	HASH_FIND_STR(l->by_path, path, log);
	return log;
}

struct report_log *report_logs_add(struct report_logs *l, const char *path, const char *name)
{
	size_t len = strlen(path);
	struct report_log *log = mem_zalloc(sizeof(*log) + len + 1);

	if (!log)
		return NULL;
	memcpy(log->path, path, len);
	log->writer = writer_of(l, name);
	if (!log->writer) {
		mem_free(log);
		return NULL;
	}
	log->no = (uint32_t)l->nr_logs++;
	log->every = 1;
	log->writer->logs++;
	HASH_ADD_STR(l->by_path, path, log);
	return log;
}

typedef int dropping_fn(struct report_logs *l, int dir, const char *path, const char *name);

static int list_log(struct report_logs *l, int dir, const char *path, const char *name)
{
	struct report_log *log;
	struct statx stx;

	if (strncmp(name, "data.", 5) ||
	    statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME | STATX_MTIME, &stx))
		return 0;
	log = report_logs_add(l, path, name);
	if (!log)
		return strchr(name + 5, '.') ? -ENOMEM : 0;
	log->end_ns = ns_of(&stx.stx_mtime);
	log->born_ns = stx.stx_mask & STATX_BTIME ? ns_of(&stx.stx_btime) : log->end_ns;
	return 0;
}

/* A live file is that of a log that is not closed; the kernel notes late that memory was written. */
static int list_live(struct report_logs *l, int dir, const char *path, const char *name)
{
	char of[NAME_LEN * 2];
	struct report_log *log;
	struct statx stx;

	if (strncmp(name, "live.", 5) || statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_MTIME, &stx))
		return 0;
	snprintf(of, sizeof(of), "%.*sdata%s", (int)(name - path), path, name + 4);
	log = report_logs_find(l, of);
	if (log) {
		log->open = log->writer->open = true;
		log->end_ns = ns_of(&stx.stx_mtime) > log->end_ns ? ns_of(&stx.stx_mtime) : log->end_ns;
		l->nr_open++;
	}
	return 0;
}

static int each_dropping_in(struct report_logs *l, int dir, const char *hostdir, dropping_fn *fn)
{
	int fd = openat(dir, hostdir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), ret = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	char path[2 * NAME_LEN + 64];
	struct dirent *e;

	while (d && !ret && (e = readdir(d)))
		if (snprintf(path, sizeof(path), "%.60s/%s", hostdir, e->d_name) < (int)sizeof(path) &&
		    !strstr(e->d_name, ".tmp."))
			ret = fn(l, fd, path, strchr(path, '/') + 1);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	return ret;
}

static int each_dropping(struct report_logs *l, dropping_fn *fn)
{
	DIR *d = opendir(l->container);
	struct dirent *e;
	int ret = d ? 0 : -errno;

	while (d && !ret && (e = readdir(d)))
		if (!strncmp(e->d_name, "hostdir.", 8))
			ret = each_dropping_in(l, dirfd(d), e->d_name, fn);
	if (d)
		closedir(d);
	return ret;
}

int report_logs_list(struct report_logs *l)
{
	int ret = each_dropping(l, list_log);

	return ret ? ret : each_dropping(l, list_live);
}

void report_logs_release(struct report_logs *l)
{
	struct report_writer *w, *next_writer;
	struct report_log *log, *next;

	HASH_ITER(hh, l->by_path, log, next) {
		HASH_DEL(l->by_path, log);
		mem_free(log->knots);
		mem_free(log);
	}
	HASH_ITER(hh, l->by_key, w, next_writer) {
		HASH_DEL(l->by_key, w);
		mem_free(w);
	}
	mem_free(l->writers);
	mem_free(l->hosts);
}

/* ---- their records ---- */

/*
 * Some records come twice, or again when they have grown: a process that syncs puts into the index what
 * others have in their live files, and these do it again.
 */
static void give_record(struct report_logs *l, struct report_log *log, struct index_record *rec)
{
	uint64_t pieces, end, seen = 0;

	if (rec->stamp_ns <= l->generation_ns)
		return;
	if (rec->type == INDEX_TRUNCATE) {
		l->fn(l->arg, NULL, rec, 0, 0);
		return;
	}
	end = index_record_log_end(rec);
	if (rec->type != INDEX_WRITE || end <= log->log_end)
		return;
	pieces = report_pieces(rec);
	if (rec->log_off < log->log_end) {
		seen = (log->log_end - rec->log_off) / rec->length;
		if (pieces == 1) {
			uint64_t known = log->log_end - rec->log_off;

			rec->logical_off += known;
			rec->log_off += known;
			rec->length -= known;
		}
	}
	l->fn(l->arg, log, rec, seen, pieces - seen);
	log->log_end = end;
}

static void give_block(struct report_logs *l, const char *index, const struct index_block *block)
{
	struct index_cursor cur = { 0 };
	char path[3 * NAME_LEN];
	struct index_record rec;
	struct report_log *log;
	const char *name = strchr(index, '/') + 1;

	snprintf(path, sizeof(path), "%.*sdata%s.%u.%u", (int)(name - index), index, name + 5, block->pid,
		 block->seq);
	log = report_logs_find(l, path);
	if (!log) {
		l->nr_unknown += block->nr_records > 0;
		return;
	}
	while (index_block_record(block, &cur, &rec) > 0)
		give_record(l, log, &rec);
}

/* As core/dropping/node_index.c: a torn or damaged block is passed over. */
static void give_blocks(struct report_logs *l, const char *index, const uint8_t *buf, size_t len)
{
	struct index_block block;
	ssize_t n;

	for (size_t pos = 0; pos < len; pos += (size_t)n) {
		n = index_block_parse(&block, buf + pos, len - pos);
		if (n > 0) {
			give_block(l, index, &block);
		} else {
			l->nr_damaged += n != -ENODATA;
			n = (ssize_t)index_block_skip(buf + pos, len - pos);
		}
	}
}

static int read_index(struct report_logs *l, int dir, const char *path, const char *name)
{
	int fd, ret = 0;
	struct stat st;
	uint8_t *buf;
	ssize_t n;

	if (strncmp(name, "index.", 6))
		return 0;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		ret = -errno;
		if (fd >= 0)
			close(fd);
		return ret;
	}
	buf = mem_alloc((size_t)st.st_size);
	n = buf ? io_pread_all(fd, buf, (size_t)st.st_size, 0) : -ENOMEM;
	if (n > 0)
		give_blocks(l, path, buf, (size_t)n);
	mem_free(buf);
	close(fd);
	return n < 0 ? (int)n : 0;
}

int report_logs_each(struct report_logs *l, report_record_fn *fn, void *arg)
{
	l->fn = fn;
	l->arg = arg;
	l->nr_damaged = l->nr_unknown = 0;
	for (struct report_log *log = l->by_path; log; log = log->hh.next)
		log->log_end = 0;
	return each_dropping(l, read_index);
}

/* ---- who wrote what, and when ---- */

static uint32_t knots_cap(const struct report_logs *l)
{
	size_t each = KNOTS_ALL / (l->nr_logs ? l->nr_logs : 1);

	return each > KNOTS_MAX ? KNOTS_MAX : each < KNOTS_MIN ? KNOTS_MIN : (uint32_t)each;
}

/* Every second knot goes, and from then on every second moment is skipped. */
static void thin_out(struct report_log *log)
{
	uint32_t to = 0;

	for (uint32_t i = 0; i < log->nr_knots; i += 2)
		log->knots[to++] = log->knots[i];
	log->nr_knots = to;
	log->every *= 2;
}

static void add_knot(const struct report_logs *l, struct report_log *log, uint64_t log_off, uint64_t ns)
{
	uint32_t cap = knots_cap(l);

	if (log->nr_knots && ns <= log->knots[log->nr_knots - 1].ns)
		return;
	if (++log->skipped < log->every && log->nr_knots)
		return;
	log->skipped = 0;
	if (log->nr_knots == cap)
		thin_out(log);
	if (!log->nr_knots || !(log->nr_knots & (log->nr_knots - 1))) {
		uint32_t room = log->nr_knots ? log->nr_knots * 2 : 2;
		struct report_knot *knots = mem_realloc(log->knots, room * sizeof(*knots));

		if (!knots)
			return;
		log->knots = knots;
	}
	log->knots[log->nr_knots++] = (struct report_knot){ log_off, ns };
}

static void count_kinds(struct report_log *log, const struct index_record *rec, uint64_t first,
			uint64_t pieces)
{
	uint64_t off = report_piece_off(rec, first), distance = off - log->last_off;
	struct report_writer *w = log->writer;

	if (off == log->logical_end || !log->bytes_end)
		w->sequential++;
	else if (distance == log->distance)
		w->strided++;
	else
		w->random++;
	if (pieces > 1) /* the second may be at any distance; then all are as far as it */
		*(rec->stride == rec->length ? &w->sequential :
		  rec->stride == distance || first ? &w->strided : &w->random) += 1;
	*(rec->stride == rec->length ? &w->sequential : &w->strided) += pieces > 2 ? pieces - 2 : 0;
	log->last_off = report_piece_off(rec, first + pieces - 1);
	log->logical_end = log->last_off + rec->length;
	log->distance = pieces > 1 ? rec->stride : distance;
}

void report_logs_survey(void *arg, struct report_log *log, const struct index_record *rec, uint64_t first,
			uint64_t pieces)
{
	struct report_logs *l = arg;
	struct report_writer *w;
	uint64_t begin, end;

	if (!log)
		return;
	w = log->writer;
	begin = report_piece_off(rec, first);
	end = index_record_end(rec);
	l->nr_records++;
	l->nr_runs += pieces > 1;
	l->pieces += pieces;
	l->bytes += pieces * rec->length;
	l->end_off = end > l->end_off ? end : l->end_off;
	w->records++;
	w->pieces += pieces;
	w->bytes += pieces * rec->length;
	w->first_off = begin < w->first_off ? begin : w->first_off;
	w->end_off = end > w->end_off ? end : w->end_off;
	count_kinds(log, rec, first, pieces);
	log->bytes_end = max_u64(log->bytes_end, index_record_log_end(rec));
	if (rec->stamp_ns) {
		add_knot(l, log, rec->log_off + first * rec->length, rec->stamp_ns);
		w->first_ns = rec->stamp_ns < w->first_ns ? rec->stamp_ns : w->first_ns;
	}
}

static int by_first_byte(const void *a, const void *b)
{
	const struct report_writer *x = *(struct report_writer *const *)a;
	const struct report_writer *y = *(struct report_writer *const *)b;

	if (x->rank != y->rank && x->pieces && y->pieces)
		return x->rank < y->rank ? -1 : 1;
	if (x->first_off != y->first_off)
		return x->first_off < y->first_off ? -1 : 1;
	return x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) : strcmp(x->key, y->key);
}

/*
 * The last change of a log is that of its end. The clock of the file system may be another one than that of
 * the host.
 */
static void end_log(struct report_logs *l, struct report_log *log)
{
	struct report_writer *w = log->writer;
	uint64_t last = log->nr_knots ? log->knots[log->nr_knots - 1].ns : 0;

	if (!log->bytes_end)
		return;
	if (!log->nr_knots)
		w->first_ns = log->born_ns < w->first_ns ? log->born_ns : w->first_ns;
	log->end_ns = log->end_ns > last ? log->end_ns : last + GRAIN_NS;
	w->last_ns = log->end_ns > w->last_ns ? log->end_ns : w->last_ns;
	l->from_ns = w->first_ns < l->from_ns ? w->first_ns : l->from_ns;
	l->to_ns = w->last_ns > l->to_ns ? w->last_ns : l->to_ns;
}

int report_logs_end_survey(struct report_logs *l)
{
	struct report_writer *w, *next;
	size_t nr = 0;

	l->writers = mem_alloc((l->nr_writers + 1) * sizeof(*l->writers));
	if (!l->writers)
		return -ENOMEM;
	l->from_ns = UINT64_MAX;
	for (struct report_log *log = l->by_path; log; log = log->hh.next)
		end_log(l, log);
	if (!l->to_ns)
		l->from_ns = 0;
	HASH_ITER(hh, l->by_key, w, next)
		l->writers[nr++] = w;
	qsort(l->writers, nr, sizeof(*l->writers), by_first_byte);
	while (nr && !l->writers[nr - 1]->pieces) /* they have made a log, and written nothing */
		nr--;
	l->nr_writers = nr;
	for (size_t i = 0; i < nr; i++)
		l->writers[i]->no = (uint32_t)i;
	return 0;
}

uint64_t report_logs_when(struct report_log *log, uint64_t log_off)
{
	struct report_knot from = { 0, log->born_ns }, to = { log->bytes_end, log->end_ns };

	if (log->at >= log->nr_knots || log->knots[log->at].log_off > log_off)
		log->at = 0;
	while (log->at + 1 < log->nr_knots && log->knots[log->at + 1].log_off <= log_off)
		log->at++;
	if (log->nr_knots) {
		from = log->knots[log->at];
		if (log->at + 1 < log->nr_knots)
			to = log->knots[log->at + 1];
	}
	if (to.log_off <= from.log_off || to.ns <= from.ns || log_off <= from.log_off)
		return from.ns;
	if (log_off >= to.log_off)
		return to.ns;
	return from.ns + (uint64_t)((double)(to.ns - from.ns) * (double)(log_off - from.log_off) /
				    (double)(to.log_off - from.log_off));
}
