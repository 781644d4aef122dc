/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The size that two processes see of one file, which both have open: each call of theirs is compared with a
 * model, one call after the other. First what was wrong once, then all short histories, then random long
 * ones.
 */
#include "test/lib/asked.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>

TestSuite(size, .init = scratch_setup, .fini = scratch_remove, .timeout = 60);
TestSuite(size_small, .fini = scratch_remove, .timeout = 60);
TestSuite(size_histories, .fini = scratch_remove, .timeout = 600);

#define SIZE_MAX_HERE 8192

enum act {
	OPEN,
	OPEN_READ,
	KEEP_READING,
	CLOSE,
	PWRITE,
	APPEND,
	TRUNCATE,
	TRUNCATE_NAME,
	OPEN_TRUNC,
	FALLOCATE,
	COMMIT,
	REFRESH,
	SYNC,
	SIZE,
	FSTAT,
	STAT,
	READ,
	MAP_READ,
	UNLINK,
	NR_ACTS
};

static const char *const act_names[NR_ACTS] = {
	"open",		"open to read", "open to read, close what may write",
	"close",	"pwrite",	"append",
	"ftruncate",	"truncate",	"open O_TRUNC",
	"fallocate",	"commit",	"refresh",
	"fsync",	"lseek END",	"fstat",
	"stat",		"pread",	"map to read",
	"unlink"
};

/* ---- the processes: they do what they are told, and answer ---- */

enum who { A, B };

struct order {
	enum act act;
	off_t off;
	size_t len;
	unsigned char byte;
};

struct answer {
	long ret;
	unsigned char bytes[SIZE_MAX_HERE];
};

static struct lfile mine;

static long close_mine(void)
{
	long ret = mine.f ? lclose(&mine) : 0;

	mine.f = NULL;
	return ret;
}

static long open_and(int flags, off_t cut)
{
	struct lfile l;
	int ret = ltry(&l, "file", flags);

	if (ret)
		return ret;
	ret = cut < 0 ? 0 : plfs_truncate(l.f, cut);
	lclose(&l);
	return ret;
}

/* What the process has written stays in its log, and it has no description that may write any more. */
static long keep_reading(void)
{
	struct lfile l;
	long ret = ltry(&l, "file", O_RDONLY), ret2 = close_mine();

	mine = l;
	return ret ? ret : ret2;
}

static long fstat_size(void)
{
	struct plfs_name n = { mine.fd, "", AT_EMPTY_PATH, UINT64_MAX };
	struct stat st;

	if (sys.fstat(mine.fd, &st))
		return -errno;
	plfs_fix_stat(&st, &n);
	return st.st_size;
}

static long act(const struct order *o, unsigned char *bytes)
{
	off_t end;
	long ret;

	switch (o->act) {
	case OPEN:
		return ltry(&mine, "file", O_RDWR | O_CREAT);
	case OPEN_READ:
		return ltry(&mine, "file", O_RDONLY);
	case KEEP_READING:
		return keep_reading();
	case CLOSE:
		return close_mine();
	case PWRITE:
		memset(bytes, o->byte, o->len);
		return plfs_pwrite(mine.f, bytes, o->len, o->off);
	case APPEND:
		memset(bytes, o->byte, o->len);
		return lappend(&mine, bytes, o->len, &end) == (ssize_t)o->len ? end : -1;
	case TRUNCATE:
		return plfs_truncate(mine.f, o->off);
	case TRUNCATE_NAME:
		return open_and(O_RDWR, o->off);
	case OPEN_TRUNC:
		return open_and(O_RDWR | O_TRUNC, -1);
	case FALLOCATE:
		return plfs_fallocate(mine.f, 0, o->off, (off_t)o->len);
	case COMMIT:
		return plfs_commit(mine.f);
	case REFRESH:
		return plfs_refresh(mine.f);
	case SYNC:
		return plfs_sync(mine.f);
	case SIZE:
		return plfs_size(mine.f);
	case FSTAT:
		return fstat_size();
	case STAT:
		return stat_size("file");
	case READ:
		return plfs_pread(mine.f, bytes, SIZE_MAX_HERE, 0);
	case MAP_READ: /* as the preload layer does it: of the stub as it is, or of a copy */
		ret = plfs_in_body(mine.f, PLFS_MAP_READ);
		if (ret < 1)
			return ret < 0 ? ret : plfs_pread(mine.f, bytes, SIZE_MAX_HERE, 0);
		ret = plfs_size(mine.f);
		return ret < 0 ? ret : pread(mine.fd, bytes, (size_t)ret, PLFS_BODY_OFF);
	case UNLINK:
		return lunlink("file");
	default:
		return -ENOSYS;
	}
}

static void begin_alone(int who)
{
	(void)who;
	be_single_threaded();
}

static void act_and_answer(const void *order, void *answer)
{
	struct answer *a = answer;

	a->ret = act(order, a->bytes);
}

static struct asked procs = { .nr = 2, .order_len = sizeof(struct order),
			      .answer_len = sizeof(struct answer), .begin = begin_alone,
			      .act = act_and_answer };

static void start_both(void) { asked_start(&procs); }
static void end_both(void) { asked_end(&procs); }

static struct answer last;

static long tell(enum who who, enum act act, off_t off, size_t len, unsigned char byte)
{
	struct order o = { act, off, len, byte };

	asked_ask(&procs, (int)who, &o, &last);
	return last.ret;
}

/* ---- the model ---- */

static unsigned char model[SIZE_MAX_HERE];
/* who wrote the byte since it was cut: the order of two processes' writes is not ours here */
static signed char owners[SIZE_MAX_HERE];
static size_t model_size;

static void model_cut(size_t size)
{
	for (size_t i = size < model_size ? size : model_size; i < SIZE_MAX_HERE; i++) {
		model[i] = 0;
		owners[i] = -1;
	}
	model_size = size;
}

static bool may_write(enum who who, size_t off, size_t len)
{
	for (size_t i = off; i < off + len; i++)
		if (owners[i] >= 0 && owners[i] != (int)who)
			return false;
	return true;
}

static void model_write(enum who who, size_t off, size_t len, unsigned char byte)
{
	memset(model + off, byte, len);
	memset(owners + off, (int)who, len);
	model_size = off + len > model_size ? off + len : model_size;
}

struct step {
	enum who who;
	enum act act;
	off_t off;
	size_t len;
};

static struct step history[64];
static int nr_steps;
static unsigned char next_byte;

static void show(void)
{
	for (int i = 0; i < nr_steps; i++)
		fprintf(stderr, "  %c: %s %lld+%zu\n", "AB"[history[i].who], act_names[history[i].act],
			(long long)history[i].off, history[i].len);
}

/* Do it, in the model as well. False, and the history is shown: they differ. */
static bool step(struct step s)
{
	long want = 0, got;
	size_t bad = 0;

	next_byte = next_byte == 255 ? 1 : next_byte + 1;
	history[nr_steps++] = s;
	got = tell(s.who, s.act, s.off, s.len, next_byte);
	switch (s.act) {
	case PWRITE:
		model_write(s.who, (size_t)s.off, s.len, next_byte);
		want = (long)s.len;
		break;
	case APPEND:
		model_write(s.who, model_size, s.len, next_byte);
		want = (long)model_size;
		break;
	case TRUNCATE:
	case TRUNCATE_NAME:
	case OPEN_TRUNC:
		model_cut((size_t)s.off);
		break;
	case FALLOCATE:
		model_size = (size_t)s.off + s.len > model_size ? (size_t)s.off + s.len : model_size;
		break;
	case SIZE:
	case FSTAT:
	case STAT:
	case READ:
	case MAP_READ:
		want = (long)model_size;
		break;
	default:
		break;
	}
	if (s.act == READ || s.act == MAP_READ)
		while (bad < model_size && last.bytes[bad] == model[bad])
			bad++;
	if (got == want && ((s.act != READ && s.act != MAP_READ) || bad == model_size))
		return true;
	fprintf(stderr, "%ld instead of %ld, bytes right up to %zu:\n", got, want, bad);
	show();
	return false;
}

static void must(enum who who, enum act act, off_t off, size_t len)
{
	cr_assert(step((struct step){ who, act, off, len }));
}

/* Everybody sees the same, also who comes when all is over. */
static bool ends_well_after(int nr_looks)
{
	static const enum act looks[] = { STAT, FSTAT, SIZE, READ, FSTAT };
	static unsigned char bytes[SIZE_MAX_HERE];
	struct lfile l;
	bool ok = true;

	for (int i = 0; i < nr_looks && ok; i++)
		ok = step((struct step){ i % 2, looks[i / 2], 0, 0 });
	for (int i = 0; i < 2 && ok; i++)
		ok = step((struct step){ i, CLOSE, 0, 0 });
	if (!ok || stat_size("file") != (off_t)model_size) {
		fprintf(stderr, "stat in the end: %ld instead of %zu\n", (long)stat_size("file"), model_size);
		if (ok)
			show();
		return false;
	}
	l = lopen("file", O_RDONLY);
	ok = plfs_pread(l.f, bytes, sizeof(bytes), 0) == (ssize_t)model_size &&
	     !memcmp(bytes, model, model_size);
	lclose(&l);
	if (!ok) {
		fprintf(stderr, "not its bytes in the end:\n");
		show();
	}
	return ok;
}

static bool ends_well(void) { return ends_well_after(10); }

static void begin(void)
{
	nr_steps = 0;
	model_cut(0);
}

/* ---- what was wrong once ---- */

static void appends_behind_what_came_after_a_cut(enum act cut, off_t n)
{
	start_both();
	begin();
	must(A, OPEN, 0, 0);
	if (cut == TRUNCATE)
		must(B, OPEN, 0, 0);
	must(A, PWRITE, 0, 3000);
	must(A, COMMIT, 0, 0);
	must(B, cut, n, 0);
	must(A, PWRITE, n, 500);
	must(A, APPEND, 0, 100);
	if (cut != TRUNCATE)
		must(B, OPEN, 0, 0);
	cr_assert(ends_well());
	end_both();
}

Test(size, an_append_is_behind_what_was_written_since_another_process_truncated)
{
	appends_behind_what_came_after_a_cut(TRUNCATE, 0);
}

Test(size, an_append_is_behind_what_was_written_since_another_process_truncated_in_part)
{
	appends_behind_what_came_after_a_cut(TRUNCATE, 200);
}

Test(size, an_append_is_behind_what_was_written_since_another_process_truncated_by_name)
{
	appends_behind_what_came_after_a_cut(TRUNCATE_NAME, 1000);
}

Test(size, an_append_is_behind_what_was_written_since_another_process_opened_with_o_trunc)
{
	appends_behind_what_came_after_a_cut(OPEN_TRUNC, 0);
}

static void tells_the_stub_when_it_closes(bool appends)
{
	start_both();
	begin();
	must(A, OPEN, 0, 0);
	must(A, PWRITE, 0, 3000);
	must(A, COMMIT, 0, 0);
	must(B, OPEN_TRUNC, 0, 0);
	must(A, PWRITE, 0, 500);
	if (appends)
		must(A, APPEND, 0, 100);
	must(B, OPEN, 0, 0);
	cr_assert(ends_well_after(0));
	end_both();
}

Test(size, of_what_was_written_since_another_process_truncated_is_in_the_stub_after_a_close)
{
	tells_the_stub_when_it_closes(false);
}
Test(size, of_what_was_appended_since_another_process_truncated_is_in_the_stub_after_a_close)
{
	tells_the_stub_when_it_closes(true);
}

static void appends_to_what_was_moved_empty(bool had_logs)
{
	start_both();
	begin();
	must(A, OPEN, 0, 0);
	must(B, OPEN, 0, 0);
	if (had_logs) {
		must(A, PWRITE, 0, 100);
		must(A, OPEN_TRUNC, 0, 0);
	}
	must(A, MAP_READ, 0, 0);
	must(A, APPEND, 0, 70);
	cr_assert(ends_well());
	end_both();
}

Test(size, an_append_to_a_bare_file_that_was_moved_into_its_body_empty_is_behind_the_header)
{
	appends_to_what_was_moved_empty(false);
}
Test(size, an_append_to_a_file_that_was_moved_into_its_body_empty_is_behind_the_header)
{
	appends_to_what_was_moved_empty(true);
}

Test(size, a_sync_without_a_log_finds_that_another_process_moved_the_file_into_its_body)
{
	start_both();
	begin();
	must(A, OPEN, 0, 0);
	must(A, PWRITE, 0, 200);
	must(B, OPEN, 0, 0);
	must(A, MAP_READ, 0, 0);
	must(B, SYNC, 0, 0);
	cr_assert(ends_well());
	end_both();
}

/* @first: how A has it open, @before: what B has written to its stub, @has_read: A has looked at it. */
static void is_told_what_another_logs(enum act first, size_t before, bool has_read)
{
	static const enum act looks[] = { FSTAT, STAT, SIZE, READ, REFRESH, FSTAT };

	for (int i = 0; i < 6; i++) {
		begin();
		must(B, OPEN, 0, 0);
		if (before)
			must(B, PWRITE, 0, before);
		must(A, first, 0, 0);
		if (has_read)
			must(A, READ, 0, 0);
		must(B, PWRITE, (off_t)before, 350);
		must(A, looks[i], 0, 0);
		must(B, PWRITE, (off_t)before + 1000, 65);
		must(A, looks[i], 0, 0);
		cr_assert(ends_well());
		cr_assert_eq(tell(A, UNLINK, 0, 0, 0), 0);
	}
}

static void whoever_has_it_open(const char *options, size_t before)
{
	scratch_map(options);
	start_both();
	for (int i = 0; i < 4; i++)
		is_told_what_another_logs(i & 1 ? OPEN_READ : OPEN, before, i & 2);
	end_both();
}

Test(size_small, of_a_file_that_was_empty_when_it_was_opened_is_published)
{
	whoever_has_it_open("{small=0}", 0);
}
Test(size_small, of_a_file_that_grows_out_of_its_stub_is_published)
{
	whoever_has_it_open("{small=300}", 200);
}

/* ---- histories ---- */

/*
 * Of these a history is made. Where @from_end, the offset is behind the end; what the other has written is
 * not written over.
 */
static const struct {
	enum act act;
	off_t off;
	size_t len;
	bool from_end;
} letters[] = {
	{ PWRITE, 0, 100, false },   { PWRITE, 0, 40, true },	     { PWRITE, 50, 400, true },
	{ APPEND, 0, 70, false },    { TRUNCATE, 0, 0, false },	     { TRUNCATE, 60, 0, false },
	{ TRUNCATE, 500, 0, true },  { TRUNCATE_NAME, 0, 0, false }, { TRUNCATE_NAME, 90, 0, false },
	{ OPEN_TRUNC, 0, 0, false }, { FALLOCATE, 10, 100, true },   { COMMIT, 0, 0, false },
	{ SYNC, 0, 0, false },	     { SIZE, 0, 0, false },	     { FSTAT, 0, 0, false },
	{ STAT, 0, 0, false },	     { READ, 0, 0, false },	     { MAP_READ, 0, 0, false },
	{ REFRESH, 0, 0, false },    { KEEP_READING, 0, 0, false },
	{ CLOSE, 0, 0, false }, /* and opened again */
};

#define NR_LETTERS ((int)(sizeof(letters) / sizeof(*letters)))

static bool only_reads[2], keeps_reading[2]; /* as it opened the file; since it closed what may write */

static bool play(enum who who, int letter)
{
	struct step s = { who, letters[letter].act, letters[letter].off, letters[letter].len };

	if (letters[letter].from_end)
		s.off += (off_t)model_size;
	if (s.act == PWRITE && !may_write(who, (size_t)s.off, s.len))
		s.off = (off_t)model_size;
	if ((size_t)s.off + s.len > SIZE_MAX_HERE || (s.act == APPEND && model_size + s.len > SIZE_MAX_HERE))
		s = (struct step){ who, OPEN_TRUNC, 0, 0 };
	if ((only_reads[who] || keeps_reading[who]) &&
	    (s.act == PWRITE || s.act == APPEND || s.act == TRUNCATE || s.act == FALLOCATE))
		s = (struct step){ who, FSTAT, 0, 0 };
	keeps_reading[who] = s.act == KEEP_READING || (keeps_reading[who] && s.act != CLOSE);
	if (s.act == CLOSE)
		return step(s) && step((struct step){ who, only_reads[who] ? OPEN_READ : OPEN, 0, 0 });
	return step(s);
}

enum { NR_STARTS = 6 };

/* What is there when a history begins. */
static bool start(int no)
{
	static const struct step starts[NR_STARTS][6] = {
		{ { A, OPEN, 0, 0 }, { B, OPEN, 0, 0 } },
		{ { A, OPEN, 0, 0 }, { A, PWRITE, 0, 200 }, { B, OPEN, 0, 0 } },
		{ { A, OPEN, 0, 0 }, { B, OPEN, 0, 0 }, { A, PWRITE, 0, 2000 }, { A, COMMIT, 0, 0 } },
		{ { A, OPEN, 0, 0 },
		  { B, OPEN, 0, 0 },
		  { A, PWRITE, 0, 2000 },
		  { B, APPEND, 0, 100 },
		  { A, READ, 0, 0 } },
		{ { B, OPEN, 0, 0 }, { B, PWRITE, 0, 200 }, { A, OPEN_READ, 0, 0 }, { A, READ, 0, 0 } },
		{ { B, OPEN, 0, 0 }, { A, OPEN_READ, 0, 0 } },
	};
	bool ok = true;

	begin();
	only_reads[A] = only_reads[B] = keeps_reading[A] = keeps_reading[B] = false;
	for (int i = 0; i < 6 && ok && (!i || starts[no][i].act != OPEN || starts[no][i].who); i++) {
		only_reads[starts[no][i].who] |= starts[no][i].act == OPEN_READ;
		ok = step(starts[no][i]);
	}
	return ok;
}

static bool is_played(int first, const int *played, int nr, int nr_looks)
{
	bool ok = start(first);

	for (int i = 0; i < nr && ok; i++)
		ok = play(played[i] % 2, played[i] / 2);
	ok = ok && ends_well_after(nr_looks);
	return tell(A, UNLINK, 0, 0, 0) == 0 && ok;
}

static void all_of(const char *options)
{
	const char *rounds = getenv("PLFS_TEST_ROUNDS"), *given = getenv("PLFS_TEST_SEED");
	int nr_random = 300 * (rounds ? atoi(rounds) : 1), played[12], failed = 0;
	uint64_t seed = given ? strtoull(given, NULL, 0) : 1;

	scratch_in_memory = true; /* each is synced */
	scratch_map(options);
	start_both();
	for (int first = 0; first < NR_STARTS && !failed; first++) {
		for (int i = 0; i < NR_LETTERS * 2 * NR_LETTERS * 2 && !failed; i++) {
			if (!turn_takes(i))
				continue;
			played[0] = i / (NR_LETTERS * 2);
			played[1] = i % (NR_LETTERS * 2);
			failed = !is_played(first, played, 2, 10);
		}
	}
	for (int i = 0; i < nr_random && !failed; i++) {
		int nr = 3 + (int)(mix64(seed++) % 10), from = (int)(mix64(seed++) % NR_STARTS);

		for (int k = 0; k < nr; k++)
			played[k] = (int)(mix64(seed++) % (NR_LETTERS * 2));
		failed = !is_played(from, played, nr, i % 2 ? 0 : 10);
	}
	cr_assert(!failed);
	end_both();
}

Test(size_histories, are_those_of_a_plain_file) { all_of("{small=0}"); }
Test(size_histories, are_those_of_a_plain_file_that_grows_out_of_its_stub) { all_of("{small=300}"); }
Test(size_histories, are_those_of_a_plain_file_in_its_stub) { all_of(""); }
