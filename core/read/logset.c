/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows of logs, and the choice between a window and a read of its own.
 */
#include "core/read/logset.h"

#include "core/backend/names.h"
#include "core/backend/twin.h"
#include "core/backend/spare.h"
#include "core/dropping/datalog.h"
#include "core/dropping/synced.h"
#include "core/base/msg.h"
#include "core/dropping/live.h"
#include "core/base/vec.h"

#include <stdio.h>

/*
 * Windows of a few logs stay in the processor's cache between their two copies: larger ones are slower (by a
 * quarter at 1 MiB), smaller ones cost calls.
 */
#define WINDOW_FIRST 65536
#define WINDOW_MAX (128 * 1024)

/*
 * What is still to be compared is read in whole chunks. Less than one comes through a window: the rest of its
 * chunk is wanted next, mostly, and would be read twice.
 */
#define CHUNK INDEX_CHUNK_LEN
#define SUMS_BUDGET ((size_t)8 << 20) /* for the checksums of all logs */
/*
 * From here on the second copy costs more than a call. At 4 KiB they are equal for a reader of one log; one
 * that takes turns between logs is a sixth faster with windows: the kernel's walk to each page is in no
 * cache.
 */
#define DIRECT_LEN 8192

/* Across a network a read may be a message (open_logs.c). */
#define FAR_WINDOW_MAX (512 * 1024)
#define FAR_DIRECT_LEN (128 * 1024)

/* Out of order a window would be read for nothing; but such a call must move some bytes. */
#define DIRECT_LEN_ALONE 2048
/* Shorter pieces are taken apart faster by us than by the kernel. */
#define DIRECT_PIECE_LEN 1024
/* So much may be left out by a reader that is still in order. */
#define SKIP_LEN 4096

void logset_init(struct logset *set, const struct container *c)
{
	memset(set, 0, sizeof(*set));
	set->c = c;
	set->compared.how = sums_verify;
}

static size_t window_max(const struct logset *set) { return set->far ? FAR_WINDOW_MAX : WINDOW_MAX; }

/* @done: nothing is to be compared. */
static size_t direct_len(const struct logset *set, bool done)
{
	if (set->far)
		return FAR_DIRECT_LEN;
	return done ? DIRECT_LEN : CHUNK;
}

void logset_set_verify(struct logset *set, enum sums_verify how)
{
	for (uint32_t i = 0; i < set->nr; i++) /* of whole chunks, and checked, or not */
		logset_drop_window(set, &set->logs[i]);
	set->compared.how = set->rebuilt ? SUMS_ALWAYS : how;
}

void logset_clear(struct logset *set)
{
	for (uint32_t i = 0; i < set->nr; i++) {
		logset_drop_window(set, &set->logs[i]);
		logset_close(set, &set->logs[i]);
		sums_release(&set->logs[i].compared.sums);
		mem_free(set->logs[i].path);
	}
	compared_release(&set->compared);
	set->nr = set->hand = 0;
	set->sums_bytes = 0;
	set->age++;
}

void logset_release(struct logset *set)
{
	logset_clear(set);
	mem_free(set->logs);
	set->logs = NULL;
	set->cap = 0;
}

int logset_add(struct logset *set, char *path)
{
	struct logset_log *logs = vec_room(set->logs, &set->cap, (size_t)set->nr + 1, sizeof(*logs));

	if (!logs)
		return -ENOMEM;
	set->logs = logs;
	logs[set->nr] = (struct logset_log){ .path = path, .ahead = WINDOW_FIRST / 2 };
	return (int)set->nr++;
}

char **logset_take_paths(struct logset *set, uint32_t *nr)
{
	char **paths = mem_zalloc((set->nr + (size_t)1) * sizeof(*paths));

	*nr = paths ? set->nr : 0;
	for (uint32_t i = 0; i < *nr; i++) {
		paths[i] = set->logs[i].path;
		set->logs[i].path = NULL;
	}
	return paths;
}

/* ---- checksums ---- */

static void drop_sums(struct logset *set, struct logset_log *log)
{
	set->sums_bytes -= sums_held(&log->compared.sums);
	sums_release(&log->compared.sums);
}

static struct compared_source source(const struct logset *set, const struct logset_log *log)
{
	return (struct compared_source){ .c = set->c,
					 .path = log->path,
					 .no = (uint32_t)(log - set->logs),
					 .h = log->handle->h,
					 .growing = log->growing };
}

/* Another file is to be read in its place. */
static void forget_open(struct logset *set, struct logset_log *log)
{
	logset_drop_window(set, log);
	drop_sums(set, log);
	log->compared = (struct compared_log){ .part_end = 0 };
	compared_release(&set->compared); /* what was compared was another file's */
	logset_close(set, log);
}

/*
 * What is open of the log is no good: turn to a copy of it, or from a copy to the next, or to the log again.
 * True: the read begins anew.
 */
static __attribute__((noinline, cold)) bool turn(struct logset *set, struct logset_log *log, const char *why)
{
	struct log_handle *handle;
	int h;

	if (log->growing || set->turns >= TURNS_MAX)
		return false;
	handle = mem_alloc(sizeof(*handle));
	h = handle ? turned_next(&log->turned, set->c, log->path, why, &set->told_copy) : -ENOMEM;
	if (h < 0) {
		mem_free(handle);
		return false;
	}
	set->turns++;
	logset_use_rebuilt(set, h);
	forget_open(set, log);
	logset_take_handle(set, log, handle, h);
	return true;
}

void logset_goes_on(struct logset *set, uint32_t no)
{
	struct logset_log *log = &set->logs[no];

	log->growing = true;
	if (likely(!log->turned.no))
		return;
	log->turned.no = 0;
	forget_open(set, log);
}

/* The log is open. Whether these bytes have nothing to compare. */
static bool is_done(struct logset *set, struct logset_log *log, uint64_t log_off, uint64_t len)
{
	struct compared_source src = source(set, log);
	size_t held = sums_held(&log->compared.sums);
	bool done = compared_is_done(&set->compared, &log->compared, &src, log_off, len);

	set->sums_bytes += sums_held(&log->compared.sums) - held;
	return done;
}

int logset_sums(struct logset *set, uint32_t no, uint64_t log_off, size_t len, struct sums_chunk **chunks)
{
	struct logset_log *log = &set->logs[no];
	struct compared_source src = source(set, log);
	size_t held = sums_held(&log->compared.sums);
	int ret;

	/* Too many at once: all are read again when they are wanted. */
	for (uint32_t i = 0; i < set->nr && set->sums_bytes > SUMS_BUDGET; i++)
		if (i != no)
			drop_sums(set, &set->logs[i]);
	ret = compared_sums(&set->compared, &log->compared, &src, log_off, len, chunks);
	set->sums_bytes += sums_held(&log->compared.sums) - held;
	return ret;
}

void logset_compared(struct logset *set, uint32_t no, uint64_t log_off, size_t len,
		     const struct sums_chunk *chunks)
{
	compared_add(&set->compared, &set->logs[no].compared, no, log_off, len, chunks);
}

static int is_wrong(struct logset *set, const struct logset_log *log, uint64_t chunk)
{
	msg_error(
		"%s/%s: bytes %llu to %llu are not those that were written: damaged, or changed by another thread in the call that wrote "
		"them; plfs check lists all damage%s",
		set->c->dir, log->path, (unsigned long long)(chunk * CHUNK),
		(unsigned long long)((chunk + 1) * CHUNK - 1),
		sums_verify ? ", PLFS_VERIFY=off reads them as they are" : "");
	return -EIO;
}

/*
 * Whether these bytes are right in the other of two copies that the log has: they are at @buf then. Else @buf
 * is as it was.
 */
static __attribute__((noinline, cold)) bool other_is_right(struct logset *set, const struct logset_log *log,
							    const struct iovec *iov, uint64_t log_off,
							    const struct sums_chunk *chunks)
{
	struct store *s = set->c->store;
	int h = log->handle->h;

	for (int i = 0; i < 2; i++) {
		if (!twin_turn(s, h) ||
		    datalog_pread(s, h, iov->iov_base, iov->iov_len, log_off) != (ssize_t)iov->iov_len)
			continue;
		if (!i && sums_check(s, h, iov, 1, log_off, chunks, NULL))
			return true;
	}
	return false;
}

/* A log without its checksums is read as it is; a copy without them proves nothing. */
static __attribute__((noinline, cold)) int without_sums(struct logset *set, struct logset_log *log)
{
	if (turn(set, log, "the data log has lost its checksums"))
		return -ERESTART;
	if (!log->turned.no)
		return 0;
	msg_error("%s/%s: the data log cannot be read, and its copy has lost its checksums", set->c->dir,
		  log->path);
	return -EIO;
}

/* Chunk @no, wrong in what is open of the log, from another file: it is compared again the next time. */
static __attribute__((noinline, cold)) bool patch(struct logset *set, const struct logset_log *log,
						   const struct iovec *iov, uint64_t log_off, uint64_t no,
						   struct sums_chunk *chunk)
{
	uint64_t from = max_u64(log_off, no * CHUNK), to = min_u64(log_off + iov->iov_len, (no + 1) * CHUNK);
	const struct iovec part = { (char *)iov->iov_base + (from - log_off), (size_t)(to - from) };

	if (log->growing || !turned_patch(&log->turned, set->c, log->path, &part, from, chunk))
		return false;
	chunk->len = 0;
	return true;
}

/* What has been read, of the log's file. */
static int check(struct logset *set, struct logset_log *log, void *buf, size_t len, uint64_t log_off)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = len };
	uint32_t no = (uint32_t)(log - set->logs);
	struct sums_chunk *chunks;
	uint64_t bad;
	int ret = len ? logset_sums(set, no, log_off, len, &chunks) : 0;

	/* the next way to make a log anew may have what this one lacks */
	if (unlikely(ret) && log->turned.no && turned_may_help(ret) && turn(set, log, strerror(-ret)))
		return -ERESTART;
	if (ret || !len)
		return ret;
	if (unlikely(log->compared.sums.warned)) {
		ret = without_sums(set, log);
		if (ret) {
			mem_free(chunks);
			return ret;
		}
	}
	if (!chunks)
		return 0;
	while (!ret && !sums_check(set->c->store, log->handle->h, &iov, 1, log_off, chunks, &bad)) {
		struct sums_chunk *wrong = &chunks[bad - log_off / CHUNK];

		if (other_is_right(set, log, &iov, log_off, chunks))
			break;
		if (set->turns && patch(set, log, &iov, log_off, bad, wrong))
			continue;
		if (turn(set, log, "bytes of the data log are not those that were written"))
			ret = -ERESTART;
		else if (synced_in_part(set->c, log->path, log->handle->h, bad, wrong->len,
					log->compared.sums.live, NULL))
			compared_excuse(&set->compared, no, bad, wrong);
		else
			ret = is_wrong(set, log, bad);
	}
	if (!ret)
		logset_compared(set, no, log_off, len, chunks);
	mem_free(chunks);
	return ret;
}

static int verify(struct logset *set, uint32_t no, uint64_t log_off, uint64_t len)
{
	struct logset_log *log = &set->logs[no];
	uint64_t end = log_off + len;
	int ret = logset_open_log(set, log);
	char *buf = NULL;

	for (uint64_t off = log_off, to; off < end && !ret; off = to) {
		ssize_t n;

		to = min_u64(end, off / CHUNK * CHUNK + WINDOW_MAX);
		if (is_done(set, log, off, to - off))
			continue;
		buf = buf ? buf : mem_alloc(WINDOW_MAX);
		if (!buf)
			return -ENOMEM;
		n = datalog_pread(set->c->store, log->handle->h, buf, (size_t)(to - off), off);
		ret = n < 0 ? (int)n : check(set, log, buf, (size_t)n, off);
	}
	mem_free(buf);
	return ret;
}

int logset_verify(struct logset *set, uint32_t no, uint64_t log_off, uint64_t len)
{
	int ret;

	set->turns = 0;
	do {
		ret = verify(set, no, log_off, len);
	} while (ret == -ERESTART);
	return ret;
}

/* ---- bytes ---- */

/*
 * Read up to @len bytes; fewer where the log, as it is now, ends. What another process still has staged is
 * read from there, unless the log's file has the first @need. *@in_file: how many are of that.
 */
static ssize_t read_log(struct logset *set, struct logset_log *log, void *buf, size_t len, size_t need,
			uint64_t log_off, size_t *in_file)
{
	struct store *s = set->c->store;
	char live[CONTAINER_PATH_LEN];
	size_t done = 0;

	*in_file = 0;
	if (!datalog_may_have(log_off, len))
		return 0;
	for (int tries = 0; tries < 3; tries++) {
		ssize_t n = datalog_pread(s, log->handle->h, (char *)buf + done, len - done, log_off + done);

		if (n < 0)
			return n;
		if (*in_file == done)
			*in_file += (size_t)n;
		done += (size_t)n;
		if (done >= need || !log->growing)
			break;
		name_live_of_log(log->path, live);
		n = live_load_bytes(set->c, live, log_off + done, (char *)buf + done, len - done);
		if (n == -EMFILE || n == -ENFILE) {
			logset_close_others(set, log);
			n = live_load_bytes(set->c, live, log_off + done, (char *)buf + done, len - done);
		}
		if (n < 0 && n != -ENOENT)
			return n;
		done += n > 0 ? (size_t)n : 0;
		if (done >= need)
			break; /* else it has been flushed in between: it is in the log now */
	}
	return (ssize_t)done;
}

/* @unsummed: none of these bytes has a checksum. */
static ssize_t read_checked(struct logset *set, struct logset_log *log, void *buf, size_t len, size_t need,
			    uint64_t log_off, bool unsummed)
{
	size_t in_file;
	ssize_t n = read_log(set, log, buf, len, need, log_off, &in_file);
	int ret = n > 0 && set->compared.how && !unsummed ? check(set, log, buf, in_file, log_off) : 0;

	if (unlikely(n < 0) && turned_may_help((int)n) && turn(set, log, strerror((int)-n)))
		return -ERESTART;
	return ret ? ret : n;
}

/*
 * -ESTALE: it may be longer by now. Where there are places, it may be the part of a log that a sync had
 * copied; since then the log was moved there, as another file.
 */
static int too_short(struct logset *set, struct logset_log *log, uint64_t log_off)
{
	int ret = logset_find_elsewhere(set, log);

	if (unlikely(placed_is_enabled(set->c->store))) {
		logset_drop_window(set, log);
		drop_sums(set, log);
		logset_close(set, log);
	}
	if (!ret && !set->reopened && !log->handle)
		ret = -ESTALE;
	if (ret)
		return ret;
	if (turn(set, log, "the data log is shorter than its index says"))
		return -ERESTART;
	msg_error("%s/%s: the data log is shorter than its index says (byte %llu is missing)", set->c->dir,
		  log->path, (unsigned long long)log_off);
	return -EIO;
}

static int read_direct(struct logset *set, struct logset_log *log, void *buf, size_t len, uint64_t log_off)
{
	ssize_t n = read_checked(set, log, buf, len, len, log_off, false);

	if (n < 0)
		return (int)n;
	log->next_off = log_off + len;
	return (size_t)n < len ? too_short(set, log, log_off + (size_t)n) : 0;
}

static bool is_in_order(const struct logset_log *log, uint64_t log_off)
{
	return log_off >= log->next_off && log_off - log->next_off <= SKIP_LEN;
}

/*
 * Fill the window from @log_off on, larger the longer the reading has been in order. Returns 0 with at least
 * @len bytes in it.
 */
static int fill_window(struct logset *set, struct logset_log *log, size_t len, uint64_t log_off)
{
	uint64_t from, unsummed, needed;
	uint32_t want;
	ssize_t n;

	log->compared.sums.end = 0; /* unless is_done() looks at it now */
	from = is_done(set, log, log_off, 1) ? log_off : log_off / CHUNK * CHUNK;
	if (is_in_order(log, log_off))
		log->ahead = (uint32_t)min_size(2 * (size_t)log->ahead, window_max(set));
	else
		log->ahead = (uint32_t)max_u64(log->ahead / 2, logset_window_min(set));
	len += (size_t)(log_off - from);
	want = log->ahead > len ? log->ahead : (uint32_t)round_up_u64(len, WINDOW_UNIT);
	unsummed = log->growing ? sums_unsummed(&log->compared.sums, from) : 0;
	if (unsummed >= len) /* no call to find that there is no more */
		want = (uint32_t)min_u64(want, unsummed);
	else if (!is_done(set, log, from + want - 1, 1))
		want = (uint32_t)(round_up_u64(from + want, CHUNK) - from);
	log->win_len = 0;
	if (want > log->win_cap) {
		logset_drop_window(set, log);
		logset_make_room(set, log, want);
		log->window = mem_alloc(want);
		if (!log->window)
			return -ENOMEM;
		log->win_cap = want;
		set->window_bytes += want;
	}
	n = read_checked(set, log, log->window, want, len, from, unsummed >= len);
	needed = round_up_u64(from + len, CHUNK) - from;
	if (unlikely(n == -EIO) && needed < want) { /* perhaps for what is ahead alone */
		want = (uint32_t)needed;
		n = read_checked(set, log, log->window, want, len, from, unsummed >= len);
	}
	if (n < 0)
		return (int)n;
	log->win_off = from;
	log->win_len = (uint32_t)n;
	return (size_t)n < len ? too_short(set, log, from + (size_t)n) : 0;
}

static bool is_in_window(const struct logset_log *log, uint64_t log_off, size_t len)
{
	return log_off >= log->win_off && log_off + len <= log->win_off + log->win_len;
}

static int read_once(struct logset *set, uint32_t no, void *buf, size_t len, uint64_t log_off)
{
	struct logset_log *log = &set->logs[no];
	uint8_t *to = buf;
	size_t n;
	int ret;

	/* The rest of a window, and what is behind it: nothing is read twice. */
	if (log_off > log->win_off && log_off < log->win_off + log->win_len &&
	    !is_in_window(log, log_off, len)) {
		n = (size_t)(log->win_off + log->win_len - log_off);
		memcpy(to, log->window + (log_off - log->win_off), n);
		log->next_off = log_off += n;
		to += n;
		len -= n;
	}
	if (!is_in_window(log, log_off, len)) {
		ret = logset_open_log(set, log);
		if (ret)
			return ret;
		if (len >= DIRECT_LEN && len >= direct_len(set, is_done(set, log, log_off, len)))
			return read_direct(set, log, to, len, log_off);
		ret = fill_window(set, log, len, log_off);
		if (ret)
			return ret;
	}
	memcpy(to, log->window + (log_off - log->win_off), len);
	log->next_off = log_off + len;
	return 0;
}

int logset_read(struct logset *set, uint32_t no, void *buf, size_t len, uint64_t log_off)
{
	int ret;

	set->turns = 0;
	do {
		ret = read_once(set, no, buf, len, log_off);
		if (unlikely(ret == -ESTALE)) {
			set->reopened = true;
			ret = read_once(set, no, buf, len, log_off);
			set->reopened = false;
		}
	} while (unlikely(ret == -ERESTART));
	return ret;
}

static bool is_direct(struct logset *set, struct logset_log *log, uint64_t log_off, size_t len,
		      unsigned nr_pieces)
{
	bool done;

	if (len < DIRECT_LEN_ALONE || len < (size_t)nr_pieces * DIRECT_PIECE_LEN)
		return false;
	if (set->crowded)
		return true;
	done = is_done(set, log, log_off, len);
	return len >= direct_len(set, done) || (done && !is_in_order(log, log_off));
}

/*
 * Whether what is open of the log may be read only by logset_read(), which turns to another. The first read
 * of a log with copies finds whether it has its checksums.
 */
static bool needs_check(const struct logset *set, const struct logset_log *log)
{
	return log->turned.no || (unlikely(spare_may_be(set->c)) && set->compared.how && !log->growing &&
				  (!log->compared.sums.loaded || log->compared.sums.warned));
}

int logset_take(struct logset *set, uint32_t no, uint64_t log_off, size_t len, unsigned nr_pieces,
		struct log_handle **out)
{
	struct logset_log *log = &set->logs[no];
	int ret;

	if (is_in_window(log, log_off, len))
		return 0;
	ret = logset_open_log(set, log);
	if (ret || needs_check(set, log) || !is_direct(set, log, log_off, len, nr_pieces))
		return ret;
	log->next_off = log_off + len;
	__atomic_add_fetch(&log->handle->refs, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&set->nr_taken, 1, __ATOMIC_RELAXED);
	*out = log->handle;
	return 1;
}
