/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What writers that are killed share with whoever checks them: the records that they write into one file, the
 * progress file in which each notes what it has been told is written, and the check of a file against it. The
 * progress file is mapped shared and lies on a plain file system, so a note outlives its process, and is made
 * after the call returned.
 *
 * A file is written in several lives, one after the other; all writers but perhaps some of the first are
 * killed in each but the last. In a life a writer writes the records first, first + 1, ... So at any moment
 * those before `acked` must be there and `acked` itself may be, in part or whole. A life begins a whole pass
 * behind where the last one ended: no bytes are written twice, and what a dead life left must not come up
 * again.
 */
#ifndef TEST_RECORDS_H
#define TEST_RECORDS_H

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../../lib/job.h"

enum {
	MAX_WRITERS = 4, SMALL_LEN = 512, LARGE_LEN = 100 * 1024,
	/* strided: record k has its place in row k % NR_ROWS, over that of record k - NR_ROWS */
	NR_ROWS = 256,
	LIFE_RECORDS = 2000, /* nobody writes more of them in a life */
	MAX_LIVES = 16,
};

struct life {
	long first;
	atomic_long acked;
};

struct progress {
	atomic_int stop;
	atomic_int ready;
	atomic_int nr_lives;
	struct life lives[MAX_WRITERS][MAX_LIVES];
};

static const char *shared_path;
static uint64_t seed;
static struct progress *progress;
static int progress_fd;
static int nr_writers;
static size_t nr_compared; /* bytes that a check has read */

static inline void progress_open(const char *name)
{
	progress_fd = open(name, O_RDWR | O_CREAT, 0644);
	if (progress_fd < 0 || ftruncate(progress_fd, sizeof(*progress)))
		die("%s", name);
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED, progress_fd, 0);
	if (progress == MAP_FAILED)
		die("%s: mmap", name);
}

/* All writers are gone: whoever waits for the next ones must not take them for those. */
static inline void progress_end_life(void)
{
	atomic_store(&progress->ready, 0);
}

/* With no writer alive: the next life. All of @in_step writers begin with the same record. */
static inline void progress_begin_life(bool in_step)
{
	int nr = atomic_load(&progress->nr_lives);
	long most = 0;

	errno = 0;
	if (nr == MAX_LIVES)
		die("too many lives");
	for (int w = 0; w < MAX_WRITERS; w++) {
		struct life *life = &progress->lives[w][nr];

		life->first = nr ? atomic_load(&life[-1].acked) + NR_ROWS : 0;
		most = life->first > most ? life->first : most;
	}
	for (int w = 0; w < MAX_WRITERS; w++) {
		struct life *life = &progress->lives[w][nr];

		life->first = in_step ? most : life->first;
		atomic_store(&life->acked, life->first);
	}
	progress_end_life();
	atomic_store(&progress->stop, 0);
	atomic_store(&progress->nr_lives, nr + 1);
}

static inline struct life *this_life(int writer)
{
	return &progress->lives[writer][atomic_load(&progress->nr_lives) - 1];
}

static inline void sleep_us(uint64_t us)
{
	struct timespec ts = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };

	nanosleep(&ts, NULL);
}

/*
 * ---- strided: record k of all writers are neighbours, of one length, at places that only the seed decides
 * ----
 */

static inline size_t record_len(long k)
{
	return mix64(seed ^ (uint64_t)(k % NR_ROWS) << 20) % 8 ? SMALL_LEN : LARGE_LEN;
}

static off_t row_start[NR_ROWS + 1];

static inline void rows_init(void)
{
	for (long k = 0; k < NR_ROWS; k++)
		row_start[k + 1] = row_start[k] + (off_t)record_len(k) * nr_writers;
}

static inline off_t record_off(int writer, long k)
{
	return row_start[k % NR_ROWS] + writer * (off_t)record_len(k);
}

/* The pattern's round; its bytes are not those of any other pass. */
static inline unsigned record_round(long k) { return (unsigned)(seed + (uint64_t)(k / NR_ROWS) * 977u); }

static inline void strided_fill(char *buf, int writer, long k)
{
	pattern_fill(buf, record_len(k), (uint64_t)record_off(writer, k), record_round(k));
}

/* ---- append: a record says what it is; its bytes but for the mark have a clear high bit ---- */

struct record {
	unsigned char mark[8]; /* 0xff */
	char text[56];         /* "writer k length\n" */
};

static inline unsigned char append_byte(int writer, long k, size_t i)
{
	return (unsigned char)(mix64(seed + (uint64_t)writer * 1000003u + (uint64_t)k) >> (i * 7 % 57) &
			       0x7f);
}

static inline void append_fill(char *buf, int writer, long k)
{
	size_t len = record_len(k);
	struct record head = { { 0 }, "" };

	memset(head.mark, 0xff, sizeof(head.mark));
	snprintf(head.text, sizeof(head.text), "%d %ld %zu\n", writer, k, len);
	memcpy(buf, &head, sizeof(head));
	for (size_t i = sizeof(head); i < len; i++)
		buf[i] = (char)append_byte(writer, k, i);
}

/* ---- checking ---- */

/*
 * Of the records of @writer in @row: the last that is acknowledged (-1: none), and those that were begun
 * since.
 */
static inline long find_versions(int writer, long row, long *begun, int *nr_begun)
{
	long acked = -1;

	*nr_begun = 0;
	for (int i = 0; i < atomic_load(&progress->nr_lives); i++) {
		const struct life *life = &progress->lives[writer][i];
		long end = atomic_load(&life->acked), last = end - 1 - (end - 1 - row + NR_ROWS) % NR_ROWS;

		if (last >= life->first) {
			acked = last;
			*nr_begun = 0;
		}
		if (end % NR_ROWS == row)
			begun[(*nr_begun)++] = end;
	}
	return acked;
}

/* How many bytes of @buf are right: those of the acknowledged record, or of one that was begun since. */
static inline size_t count_right(const char *buf, size_t len, off_t off, long acked, const long *begun,
				 int nr_begun)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)buf[i];
		bool ok = acked < 0 ? !c : c == pattern_byte((uint64_t)off + i, record_round(acked));

		for (int j = 0; j < nr_begun && !ok; j++)
			ok = c == pattern_byte((uint64_t)off + i, record_round(begun[j]));
		if (!ok)
			return i;
	}
	return len;
}

static inline int check_strided(int fd)
{
	char *buf = malloc(LARGE_LEN);
	int nr_bad = 0;

	for (long row = 0; row < NR_ROWS; row++)
		for (int w = 0; w < nr_writers; w++) {
			long begun[MAX_LIVES];
			int nr_begun;
			long acked = find_versions(w, row, begun, &nr_begun);
			off_t off = record_off(w, row);
			size_t len = record_len(row), n = read_all(fd, buf, len, off, shared_path), good;

			nr_compared += n;
			good = count_right(buf, n, off, acked, begun, nr_begun);
			if (good == n && (n == len || acked < 0))
				continue;
			if (nr_bad++ < 5)
				printf("%s: row %ld of writer %d (%zu bytes at %lld, record %ld acknowledged, %d begun since): %zu read, "
				       "%zu right\n",
				       shared_path, row, w, len, (long long)off, acked, nr_begun, n, good);
		}
	free(buf);
	return nr_bad;
}

/* The length of the whole record that begins at @at, or 0; whose it is in @writer and @k. */
static inline size_t parse_record(const char *at, size_t left, char *want, int *writer, long *k)
{
	struct record head;
	size_t len;

	if (left < sizeof(head))
		return 0;
	memcpy(&head, at, sizeof(head));
	head.text[sizeof(head.text) - 1] = 0;
	if (sscanf(head.text, "%d %ld %zu\n", writer, k, &len) != 3 || *writer < 0 || *writer >= nr_writers ||
	    *k < 0 || len != record_len(*k) || len > left)
		return 0;
	append_fill(want, *writer, *k);
	return memcmp(want, at, len) ? 0 : len;
}

/* How many records of @writer there are from @from on, to @to: those that are acknowledged, in all lives. */
static inline long nr_acked_between(int writer, long from, long to)
{
	long nr = 0;

	for (int i = 0; i < atomic_load(&progress->nr_lives); i++) {
		const struct life *life = &progress->lives[writer][i];
		long end = atomic_load(&life->acked), first = life->first;

		first = first > from ? first : from;
		end = end < to ? end : to;
		nr += end > first ? end - first : 0;
	}
	return nr;
}

static inline bool was_begun(int writer, long k)
{
	for (int i = 0; i < atomic_load(&progress->nr_lives); i++) {
		const struct life *life = &progress->lives[writer][i];

		if (k >= life->first && k <= atomic_load(&life->acked))
			return true;
	}
	return false;
}

/*
 * Every writer's records are there whole, once and in order. A record that was on its way when its writer was
 * killed may be missing, or torn.
 */
static inline int check_append(int fd)
{
	long next[MAX_WRITERS] = { 0 };
	int nr_bad = 0, nr_torn = 0;
	char *all, *want = malloc(LARGE_LEN);
	struct stat st;
	size_t len;

	if (fstat(fd, &st))
		die("%s", shared_path);
	all = calloc(1, (size_t)st.st_size + 1);
	len = read_all(fd, all, (size_t)st.st_size + 1, 0, shared_path);
	nr_compared += len;
	if (len != (size_t)st.st_size && ++nr_bad)
		printf("%s: %lld bytes long, %zu read\n", shared_path, (long long)st.st_size, len);
	for (size_t pos = 0, n; pos < len; pos += n) {
		int w;
		long k;

		n = parse_record(all + pos, len - pos, want, &w, &k);
		if (n) {
			if ((k < next[w] || !was_begun(w, k) || nr_acked_between(w, next[w], k)) &&
			    nr_bad++ < 5)
				printf("%s: at %zu, record %ld of writer %d, where %ld or one after it was expected\n",
				       shared_path, pos, k, w, next[w]);
			next[w] = k + 1;
		} else {
			char *mark =
				memmem(all + pos + 1, len - pos - 1, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);

			n = mark ? (size_t)(mark - all) - pos : len - pos;
			if (nr_torn++ < 5)
				printf("%s: at %zu, %zu bytes that are no whole record\n", shared_path, pos,
				       n);
		}
	}
	for (int w = 0; w < nr_writers; w++)
		if (nr_acked_between(w, next[w], LONG_MAX)) {
			printf("%s: writer %d: %ld acknowledged records from %ld on are missing\n",
			       shared_path, w, nr_acked_between(w, next[w], LONG_MAX), next[w]);
			nr_bad++;
		}
	free(all);
	free(want);
	return nr_bad || nr_torn > nr_writers * atomic_load(&progress->nr_lives);
}

static inline long nr_acked(void)
{
	long nr = 0;

	for (int w = 0; w < nr_writers; w++)
		nr += nr_acked_between(w, 0, LONG_MAX);
	return nr;
}

/*
 * A stat() before anybody has opened the file, against the file as it is then found. Where hosts share it
 * (STAT_MAY_LAG) it may be late.
 */
static inline bool stat_was_right(const struct stat *before, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		die("%s: stat", shared_path);
	if (before->st_size == st.st_size)
		return true;
	printf("%s: stat said %lld bytes, %lld less than there are\n", shared_path,
	       (long long)before->st_size, (long long)(st.st_size - before->st_size));
	return getenv("STAT_MAY_LAG");
}

/* The file against the progress file: 0 if all is right, else 1 and lines that say what is not. */
static inline int check_records(bool append)
{
	struct stat before = { 0 };
	int fd, bad;

	stat(shared_path, &before);
	fd = open(shared_path, O_RDONLY);
	/* Killed before anybody had made the file: then nobody was told anything. */
	if (fd < 0 && errno == ENOENT && !nr_acked())
		return 0;
	if (fd < 0)
		die("%s: open", shared_path);
	bad = append ? check_append(fd) : check_strided(fd);
	bad += !stat_was_right(&before, fd);
	close(fd);
	return bad != 0;
}

#endif
