/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every bit of every file of small containers is flipped, one after the other, and the logical file read
 * through the library (PLFS_VERIFY=read): its bytes are right, or there is an error. Never wrong bytes, never
 * a crash. What no checksum can cover by design is named where it is left out:
 *   - the body of a stub holds bytes as a plain file does: those of a bare file, of one in its body, and of
 *     holes;
 *   - bytes that a killed writer had staged: they get their checksum when they are appended to the log;
 *   - the records and counters of a live file are covered, see live.h.
 * Where nothing looks at a byte all its bits are flipped at once, and all such bytes together.
 */
#include "test/lib/scratch.h"

#include "core/dropping/datalog.h"
#include "core/dropping/live_layout.h"
#include "core/dropping/sums.h"

#include <criterion/criterion.h>

/* Who finds a live file half changed looks again, by and by. */
static int no_sleep(const struct timespec *len, struct timespec *left)
{
	(void)len;
	(void)left;
	return 0;
}

static void setup(void)
{
	scratch_in_memory = true;
	scratch_setup();
	sums_verify = SUMS_ONCE;
	sys.nanosleep = no_sleep;
}

static void setup_small(void)
{
	scratch_in_memory = true;
	scratch_setup_small();
	sums_verify = SUMS_ONCE;
}

TestSuite(flips, .init = setup, .fini = scratch_remove, .timeout = 300);
TestSuite(flips_small, .init = setup_small, .fini = scratch_remove, .timeout = 300);

#define LEN_MAX 200000

static uint8_t want[LEN_MAX], got[LEN_MAX + 1];
static size_t want_len;

/* What is there, or the error. 0: it is what is wanted; 1: it is not. */
static int look(void)
{
	struct lfile l;
	ssize_t n;
	int ret = ltry(&l, "file", O_RDONLY);

	if (ret)
		return ret;
	if (!l.f) { /* no logical file any more: a plain one, of other bytes */
		lclose(&l);
		return 1;
	}
	n = plfs_pread(l.f, got, sizeof(got), 0);
	lclose(&l);
	if (n < 0)
		return (int)n;
	return (size_t)n != want_len || memcmp(got, want, want_len);
}

/* Errors are said in a line each, thousands here. */
static int errors_to = -1;

static void mute(void)
{
	int null = open("/dev/null", O_WRONLY);

	errors_to = dup(STDERR_FILENO);
	dup2(null, STDERR_FILENO);
	close(null);
}

static void unmute(void)
{
	dup2(errors_to, STDERR_FILENO);
	close(errors_to);
}

struct found {
	unsigned right, errors, wrong;
	size_t first_wrong;
};

/* A file of the container, and what it was. */
struct victim {
	char path[PATH_MAX], spare[PATH_MAX];
	int fd;
	uint8_t *bytes;
	size_t len;
};

static void take(struct victim *v, const char *path)
{
	struct stat st;

	memset(v, 0, sizeof(*v));
	snprintf(v->path, sizeof(v->path), "%s", path);
	v->fd = open(path, O_RDWR);
	cr_assert(v->fd >= 0 && !fstat(v->fd, &st), "%s", path);
	v->len = (size_t)st.st_size;
	v->bytes = malloc(v->len + 1);
	cr_assert_eq(pread(v->fd, v->bytes, v->len, 0), (ssize_t)v->len);
	snprintf(v->spare, sizeof(v->spare), "%s/spare", scratch);
	unlink(v->spare);
	cr_assert_eq(link(path, v->spare), 0);
}

/* The library may have replaced it, or removed it, or changed it. */
static void put_back(struct victim *v, bool all)
{
	struct stat now, was;

	cr_assert_eq(fstat(v->fd, &was), 0);
	if (stat(v->path, &now) || now.st_ino != was.st_ino) {
		unlink(v->path);
		cr_assert_eq(link(v->spare, v->path), 0);
		all = true;
	}
	if (!all && (size_t)was.st_size == v->len)
		return;
	cr_assert_eq(ftruncate(v->fd, (off_t)v->len), 0);
	cr_assert_eq(pwrite(v->fd, v->bytes, v->len, 0), (ssize_t)v->len);
}

static void let_go_of(struct victim *v)
{
	put_back(v, true);
	unlink(v->spare);
	close(v->fd);
	free(v->bytes);
}

static void note(struct found *f, int ret, size_t at)
{
	f->right += ret == 0;
	f->errors += ret < 0;
	if (ret > 0 && !f->wrong++)
		f->first_wrong = at;
}

/* Flip each bit of [from, to), or every nth: PLFS_TEST_FLIPS. */
static void flip(struct victim *v, size_t from, size_t to, struct found *f)
{
	const char *every = getenv("PLFS_TEST_FLIPS");
	size_t step = every ? strtoul(every, NULL, 10) : 1;

	for (size_t bit = 8 * from; bit < 8 * min_size(to, v->len); bit += step) {
		uint8_t byte = (uint8_t)(v->bytes[bit / 8] ^ 1 << bit % 8);

		cr_assert_eq(pwrite(v->fd, &byte, 1, (off_t)(bit / 8)), 1);
		note(f, look(), bit);
		cr_assert_eq(pwrite(v->fd, &v->bytes[bit / 8], 1, (off_t)(bit / 8)), 1);
		put_back(v, v->len < 8192);
	}
}

/* All bits of [from, to) at once: nothing looks at them. */
static void flip_all(struct victim *v, size_t from, size_t to, struct found *f)
{
	size_t len = min_size(to, v->len) > from ? min_size(to, v->len) - from : 0;
	uint8_t *buf = malloc(len + 1);
	int ret;

	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)~v->bytes[from + i];
	cr_assert_eq(pwrite(v->fd, buf, len, (off_t)from), (ssize_t)len);
	ret = look();
	cr_expect_eq(ret, 0, "%s: somebody looks at [%zu, %zu)", v->path, from, to);
	note(f, ret, 8 * from);
	cr_assert_eq(pwrite(v->fd, v->bytes + from, len, (off_t)from), (ssize_t)len);
	free(buf);
}

static void judge(const struct victim *v, const struct found *f)
{
	unmute();
	fprintf(stderr, "%s: %u bits harmless, %u errors\n", strrchr(v->path, '/') + 1, f->right, f->errors);
	cr_expect_eq(f->wrong, 0, "%s: %u wrong, the first is bit %zu of byte %zu", v->path, f->wrong,
		     f->first_wrong % 8, f->first_wrong / 8);
	mute();
}

static void flip_file(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	struct found f = { 0 };
	struct victim v;

	take(&v, path);
	mute();
	if (!strncmp(name, "data.", 5)) {
		flip(&v, 0, 256, &f);
		flip_all(&v, 256, DATALOG_DATA_OFF, &f);
		flip(&v, DATALOG_DATA_OFF, v.len, &f);
	} else if (!strncmp(name, "live.", 5)) {
		size_t records = LIVE_HEADER_LEN +
				 (get_le64(v.bytes + LIVE_OFF_NR_RECORDS) & 0xffff) * INDEX_RECORD_LEN;

		flip(&v, 0, records, &f);
		flip_all(&v, records + INDEX_RECORD_LEN, LIVE_CHUNKS_OFF, &f);
		flip(&v, LIVE_CHUNKS_OFF, LIVE_CHUNKS_OFF + 16, &f);
		flip_all(&v, LIVE_CHUNKS_OFF + 16, LIVE_STAGE_OFF, &f); /* and no byte that is staged */
	/* for stat, which asks it whether the stub's length is all there is to know */
	} else if (!strncmp(name, "writers.", 8)) {
		flip_all(&v, 0, v.len, &f);
	} else if (!strcmp(name, "file")) {
		flip(&v, 0, PLFS_BODY_OFF, &f);
	} else {
		flip(&v, 0, v.len, &f);
	}
	let_go_of(&v);
	judge(&v, &f);
	unmute();
}

/* All files below the scratch directory but @but; sorted, as they are before any is touched. */
static void flip_files(const char *but)
{
	char *paths[] = { scratch, NULL }, *list[100];
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	int nr = 0;

	cr_assert_eq(look(), 0, "it is right before");
	for (FTSENT *e = fts_read(fts); e; e = fts_read(fts))
		if (e->fts_info == FTS_F && strcmp(e->fts_name, but) && nr < 100)
			list[nr++] = strdup(e->fts_path);
	fts_close(fts);
	for (int i = 0; i < nr; i++) {
		flip_file(list[i]);
		free(list[i]);
	}
	cr_assert_eq(look(), 0, "and after");
}

/* ---- making them ---- */

struct job {
	int no, nr;
	size_t len;
	bool die, flush;
};

static void remember(size_t off, size_t len, unsigned round)
{
	pattern_fill(want + off, len, off, round);
	if (off + len > want_len)
		want_len = off + len;
}

/* One of @nr writers of interleaved blocks of @len bytes, some of which overwrite others. */
static int write_blocks(void *arg)
{
	const struct job *j = arg;
	struct lfile l = made("file");

	for (int k = 0; k < 6; k++) {
		if (lfill(&l, (off_t)((size_t)(k * j->nr + j->no) * j->len), j->len, 1) < 0)
			return 1;
		if (j->flush && k == 3)
			plfs_commit(l.f);
	}
	lfill(&l, (off_t)((size_t)j->no * 37), 20, 2);
	if (j->die)
		kill(getpid(), SIGKILL);
	return lclose(&l);
}

static void make(int nr, size_t len, bool die, bool flush)
{
	for (int i = 0; i < nr; i++) {
		struct job j = { i, nr, len, die, flush };

		cr_assert_eq(in_child(write_blocks, &j), die ? 256 + SIGKILL : 0);
		for (int k = 0; k < 6; k++)
			remember((size_t)(k * nr + i) * len, len, 1);
		remember((size_t)i * 37, 20, 2);
	}
}

Test(flips, in_a_closed_container_are_found_or_harmless)
{
	make(2, 40, false, false);
	flip_files("format");
}

Test(flips, in_what_killed_writers_leave_are_found_or_harmless)
{
	make(2, 40, true, true);
	flip_files("format");
}

Test(flips, in_a_kept_map_are_found_or_harmless)
{
	char path[PATH_MAX];

	make(8, 16, false, false);
	cr_assert_eq(look(), 0);
	cr_assert(find_file("index.global", path));
	flip_file(path);
	flip_file(path); /* what is made anew is as good */
}

/* ---- other things that happen to files ---- */

static char *listed(const char *prefix, int no, char *path)
{
	char *paths[] = { scratch, NULL };
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);

	*path = '\0';
	for (FTSENT *e = fts_read(fts); e; e = fts_read(fts))
		if (e->fts_info == FTS_F && !strncmp(e->fts_name, prefix, strlen(prefix)) && !no--)
			snprintf(path, PATH_MAX, "%s", e->fts_path);
	fts_close(fts);
	cr_assert(*path, "%s", prefix);
	return path;
}

/* Cut to each length; where there is nothing but zeros, to some. */
static void cut(const char *path, size_t least)
{
	struct found f = { 0 };
	struct victim v;

	take(&v, path);
	mute();
	for (size_t len = v.len; len-- > least;) {
		if (len > 300 && len < v.len - 1 && !v.bytes[len] && !v.bytes[len + 1] && len % 1009)
			continue;
		cr_assert_eq(ftruncate(v.fd, (off_t)len), 0);
		note(&f, look(), 8 * len);
		put_back(&v, true);
	}
	judge(&v, &f);
	unmute();
	let_go_of(&v);
}

/*
 * A stub of no bytes is a file that has just been made; a live file of none belongs to a process that has
 * just begun. A stub's length is the size of the file if nothing else says more.
 */
Test(flips, files_that_are_cut_are_errors_or_harmless)
{
	char path[PATH_MAX];

	make(2, 40, false, false);
	cut(listed("data.", 0, path), 0);
	cut(listed("index.", 0, path), 0);
	cut(listed("file", 0, path), 1);
}

Test(flips, live_files_and_logs_of_killed_writers_that_are_cut_are_errors_or_harmless)
{
	char path[PATH_MAX];

	make(2, 40, true, true);
	cut(listed("data.", 0, path), 0);
	cut(listed("live.", 0, path), 1);
}

Test(flips, logs_that_have_changed_places_are_errors)
{
	char a[PATH_MAX], b[PATH_MAX], c[PATH_MAX];

	make(2, 40, false, false);
	listed("data.", 0, a);
	listed("data.", 1, b);
	snprintf(c, sizeof(c), "%s/other", scratch);
	cr_assert(!rename(a, c) && !rename(b, a) && !rename(c, b));
	cr_assert_eq(look(), -EIO);
	cr_assert(!rename(a, c) && !rename(b, a) && !rename(c, b));
	cr_assert_eq(look(), 0);
}

/* Of an index that is missing the logs tell. */
Test(flips, a_log_that_is_missing_is_an_error_and_an_index_is_harmless)
{
	static const char *const NAMES[] = { "data.", "index." };
	char path[PATH_MAX], away[PATH_MAX];

	make(2, 40, false, false);
	snprintf(away, sizeof(away), "%s/away", scratch);
	for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++) {
		listed(NAMES[i], 0, path);
		cr_assert_eq(rename(path, away), 0);
		cr_assert_eq(look(), i ? 0 : -EIO, "%s", NAMES[i]);
		cr_assert_eq(rename(away, path), 0);
		cr_assert_eq(look(), 0);
	}
}

/*
 * As a backup does it: and where the inode number is given again, as many file systems do, it is still
 * another file.
 */
Test(flips, an_old_map_that_is_put_back_is_not_believed)
{
	char path[PATH_MAX];
	struct stat was, now;
	uint8_t bytes[65536];
	ssize_t len;
	int fd;

	make(8, 16, false, false);
	cr_assert_eq(look(), 0);
	listed("index.global", 0, path);
	fd = open(path, O_RDONLY);
	cr_assert(!fstat(fd, &was));
	len = read(fd, bytes, sizeof(bytes));
	close(fd);
	cr_assert_neq(get_le64(bytes + 128), 0, "it was confirmed");
	make(2, 50, false, false);
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT, 0644);
	cr_assert(!fstat(fd, &now));
	put_le64(bytes + 128, get_le64(bytes + 128) ^ was.st_ino ^ now.st_ino);
	cr_assert_eq(write(fd, bytes, (size_t)len), len);
	close(fd);
	cr_assert_eq(look(), 0);
}

/* Without the library: it has the container's bytes as long as that is there. */
Test(flips, a_copy_of_a_stub_reads_the_same)
{
	char cmd[3 * PATH_MAX], path[PATH_MAX];
	struct lfile l;

	make(2, 40, false, false);
	lpath("file", path);
	snprintf(cmd, sizeof(cmd), "cp -p '%s' '%s.copy'", path, path);
	cr_assert_eq(system(cmd), 0);
	l = lopen("file.copy", O_RDONLY);
	cr_assert_eq(plfs_pread(l.f, got, sizeof(got), 0), (ssize_t)want_len);
	cr_assert_arr_eq(got, want, want_len);
	lclose(&l);
	cr_assert_eq(look(), 0);
}

/* Its body is as a plain file's bytes are: what of its header can be flipped shows. */
Test(flips_small, in_the_header_of_a_file_in_its_stub_are_found_or_harmless)
{
	char path[PATH_MAX];
	struct lfile l = made("file");

	cr_assert_eq(lfill(&l, 0, 300, 1), 300);
	lclose(&l);
	remember(0, 300, 1);
	flip_file(listed("file", 0, path));
	l = lopen("file", O_RDWR);
	cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_WRITE), 1);
	lclose(&l);
	flip_file(listed("file", 0, path));
}

/* ---- a process looks at this once ---- */

static int look_in_child(void *arg)
{
	int ret = look();

	(void)arg;
	return ret < 0 ? 2 : ret;
}

Test(flips, in_the_format_file_are_found_or_harmless)
{
	char path[PATH_MAX];
	struct found f = { 0 };
	struct victim v;

	make(2, 40, false, false);
	take(&v, listed("format", 0, path));
	mute();
	for (size_t bit = 0; bit < 8 * v.len; bit++) {
		uint8_t byte = (uint8_t)(v.bytes[bit / 8] ^ 1 << bit % 8);
		int ret;

		cr_assert_eq(pwrite(v.fd, &byte, 1, (off_t)(bit / 8)), 1);
		ret = in_child(look_in_child, NULL);
		note(&f, ret == 2 ? -EIO : ret, bit);
		cr_assert_eq(pwrite(v.fd, &v.bytes[bit / 8], 1, (off_t)(bit / 8)), 1);
	}
	judge(&v, &f);
	unmute();
	let_go_of(&v);
}
