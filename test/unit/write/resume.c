/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that one process opens, writes and closes again and again: one log of it, in which everything else is
 * as if there were many.
 */
#include "test/lib/scratch.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/dropping/datalog.h"
#include "core/dropping/trailers.h"
#include "core/store/posix.h"

#include <criterion/criterion.h>
#include <sys/mman.h>

TestSuite(resume, .init = scratch_setup, .fini = scratch_remove, .timeout = 300);

static void write_once(off_t off, size_t len, unsigned round)
{
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, off, len, round), (ssize_t)len);
	cr_assert_eq(lclose(&l), 0);
}

static int check_in_child(void *arg)
{
	off_t *part = arg;
	struct lfile l = lopen("f", O_RDONLY);

	return lcheck(&l, part[0], (size_t)part[1], 1) || lclose(&l);
}

static void check_elsewhere(off_t off, off_t len)
{
	off_t part[2] = { off, len };

	cr_assert_eq(in_child(check_in_child, part), 0);
}

Test(resume, many_opens_are_one_log)
{
	for (int i = 0; i < 50; i++)
		write_once(i * 100, 100, 1);
	cr_assert_eq(count_files("data."), 1);
	cr_assert_eq(count_files("live."), 0);
	check_elsewhere(0, 5000);
}

Test(resume, each_file_has_its_own)
{
	char name[20];

	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 20; i++) { /* more than are remembered */
			snprintf(name, sizeof(name), "f%d", i);
			struct lfile l = made(name);

			cr_assert_eq(lfill(&l, round * 1000, 1000, (unsigned)i), 1000);
			lclose(&l);
		}
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		struct lfile l = lopen(name, O_RDONLY);

		cr_assert_eq(lcheck(&l, 0, 3000, (unsigned)i), 0);
		lclose(&l);
	}
}

/* ---- what the log says of itself ---- */

static struct store store;
static uint8_t id[STUB_ID_LEN];
static int log_h, nr_tables;

static void read_log(void *buf, size_t len, uint64_t at)
{
	cr_assert_eq(store.ops->pread(&store, log_h, buf, len, DATALOG_DATA_OFF + at), (ssize_t)len);
}

/* Each chunk of the table, the last one up to @log_len, has the checksum that it says. */
static void check_table(uint64_t at, uint64_t log_len)
{
	static uint8_t table[1 << 16], chunk[INDEX_CHUNK_LEN];
	struct index_chunks chunks;
	ssize_t n = store.ops->pread(&store, log_h, table, sizeof(table), DATALOG_DATA_OFF + at);

	cr_assert_gt(index_chunks_parse(&chunks, table, (size_t)n), 0);
	for (uint64_t i = 0; i < chunks.nr_chunks; i++) {
		uint64_t from = (chunks.first_chunk + i) * INDEX_CHUNK_LEN, to = from + INDEX_CHUNK_LEN;

		to = to > log_len ? log_len : to;
		read_log(chunk, (size_t)(to - from), from);
		cr_assert_eq(crc32c(0, chunk, (size_t)(to - from)), get_le32(chunks.chunk_crc + 4 * i),
			     "chunk %lu of the table at %lu", chunks.first_chunk + i, at);
	}
	nr_tables++;
}

static int check_trailers(int want_records)
{
	struct trailer_walk walk;
	struct index_trailer t;
	char path[PATH_MAX], header[64];
	int nr = 0, ret, nr_records = 0;

	cr_assert(find_file("data.", path));
	cr_assert_eq(store_posix_open(&store, scratch), 0);
	log_h = store_open(&store, path + strlen(scratch) + 1, O_RDONLY, 0);
	cr_assert_geq(log_h, 0);
	cr_assert_eq(store.ops->pread(&store, log_h, header, sizeof(header), 0), 64);
	memcpy(id, header + 16, sizeof(id));
	nr_tables = 0;
	walk = (struct trailer_walk){ .s = &store, .h = log_h, .id = id };
	for (ret = trailer_last(&store, log_h, id, &t); !ret; ret = trailer_prev(&walk, &t), nr++) {
		struct index_block block;
		void *buf;
		ssize_t n = trailer_walk_block(&walk, &t, &buf);

		cr_assert_eq(index_block_parse(&block, buf, (size_t)n), n);
		nr_records += (int)block.nr_records;
		if (block.chunks_off)
			check_table(block.chunks_off, block.log_len);
		mem_free(buf);
	}
	trailer_walk_end(&walk);
	cr_assert_eq(ret, -ENODATA);
	cr_assert_eq(nr_records, want_records);
	store_close(&store, &log_h);
	return nr;
}

Test(resume, tables_and_trailers_lead_through_all_of_it)
{
	/* Ends before, at and behind the boundaries of chunks, small writes and large ones. */
	static const size_t lens[] = { 100,    65536 - 400, 200,    70000, 1,	  65536, 65535,
				       131072, 3,	    300000, 30,	   65000, 4096 };
	off_t off = 0;
	size_t nr = sizeof(lens) / sizeof(*lens);

	for (size_t i = 0; i < nr; off += (off_t)lens[i++])
		write_once(off, lens[i], 1);
	cr_assert_eq(count_files("data."), 1);
	cr_assert_eq(check_trailers((int)nr), (int)nr);
	cr_assert_eq(nr_tables, (int)nr);
	check_elsewhere(0, off);
}

Test(resume, a_piece_may_end_where_a_chunk_does)
{
	for (int i = 0; i < 900; i++)
		write_once(i * 61, 61, 1);
	cr_assert_eq(check_trailers(900), 900);
	check_elsewhere(0, 900 * 61);
}

/* ---- when it must not be gone on with ---- */

static int write_in_child(void *arg)
{
	(void)arg;
	write_once(1000, 1000, 1);
	return 0;
}

Test(resume, a_child_has_a_log_of_its_own)
{
	write_once(0, 1000, 1);
	cr_assert_eq(in_child(write_in_child, NULL), 0);
	write_once(2000, 1000, 1);
	cr_assert_eq(count_files("data."), 2);
	check_elsewhere(0, 3000);
}

Test(resume, two_descriptions_of_one_process_have_one_writer)
{
	struct lfile a = made("f"), b = made("f");

	cr_assert_eq(lfill(&a, 0, 100, 1), 100);
	cr_assert_eq(lclose(&a), 0);
	cr_assert_eq(lfill(&b, 100, 100, 1), 100);
	a = made("f");
	cr_assert_eq(lfill(&a, 200, 100, 1), 100);
	cr_assert_eq(lclose(&b), 0);
	cr_assert_eq(lclose(&a), 0);
	cr_assert_eq(count_files("data."), 1);
	check_elsewhere(0, 300);
}

static int empty_it(void *arg)
{
	struct lfile l = lopen("f", O_RDWR | O_TRUNC);

	(void)arg;
	return lfill(&l, 0, 10, 1) != 10 || lclose(&l);
}

Test(resume, what_was_collected_is_not)
{
	write_once(0, 1000, 2);
	cr_assert_eq(in_child(empty_it, NULL), 0);
	write_once(10, 1000, 1);
	check_elsewhere(0, 1010);
	for (int i = 0; i < 5; i++) {
		struct lfile l = lopen("f", O_RDWR | O_TRUNC);

		cr_assert_eq(lfill(&l, 0, 3000, 1), 3000);
		lclose(&l);
	}
	cr_assert_leq(count_files("data."), 1);
	check_elsewhere(0, 3000);
}

Test(resume, what_has_another_length_is_not)
{
	char path[PATH_MAX];

	write_once(0, 1000, 1);
	cr_assert(find_file("data.", path));
	cr_assert_eq(truncate(path, 70000), 0);
	write_once(1000, 1000, 1);
	cr_assert_eq(count_files("data."), 2);
	check_elsewhere(0, 2000);
}

Test(resume, what_was_removed_is_not)
{
	write_once(0, 1000, 2);
	cr_assert_eq(lunlink("f"), 0);
	write_once(0, 1000, 1);
	check_elsewhere(0, 1000);
}

/* ---- who looks on ---- */

static volatile unsigned *turns; /* shared: even: the writer's */

static int write_in_turns(void *arg)
{
	lclose(arg);
	for (unsigned i = 0; i < 40; i++) {
		while (*turns != 2 * i)
			usleep(50);
		write_once(100 + i * 100, 100, 1);
		*turns = 2 * i + 1;
	}
	return 0;
}

/*
 * @writer, in a child, appends 100 bytes in each of its turns; @l must see them in the next, which is ours.
 */
static void read_in_turns_with(int (*writer)(void *arg), struct lfile *l)
{
	pid_t pid;

	turns = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*turns = UINT32_MAX;
	pid = start_child(writer, l);
	for (unsigned i = 0; i < 40; i++) {
		*turns = 2 * i;
		while (*turns != 2 * i + 1)
			usleep(50);
		cr_assert_eq(lcheck(l, 0, 200 + i * 100, 1), 0, "turn %u", i);
	}
	cr_assert_eq(wait_child(pid), 0);
}

/*
 * A live file has the name of one that was there before: who has that one mapped must not go on looking at
 * it.
 */
Test(resume, a_reader_sees_each_life_at_once)
{
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, 0, 100, 1), 100);
	read_in_turns_with(write_in_turns, &l);
	cr_assert_eq(count_files("data."), 2);
	lclose(&l);
}

static int write_over(void *arg)
{
	lclose(arg);
	write_once(0, 100, 2);
	return 0;
}

/* What this process wrote in an earlier life of its log is not the latest for being in it. */
Test(resume, what_another_process_wrote_over_an_earlier_life_is_seen_at_once)
{
	struct lfile l;

	write_once(0, 100, 1);
	l = made("f");
	cr_assert_eq(lfill(&l, 1000, 100, 1), 100);
	cr_assert_eq(lcheck(&l, 0, 100, 1), 0);
	cr_assert_eq(in_child(write_over, &l), 0);
	cr_assert_eq(lcheck(&l, 0, 100, 2), 0);
	lclose(&l);
}

static int hold_in_turns(void *arg)
{
	lclose(arg);
	for (unsigned i = 0; i < 20; i++) {
		struct lfile l = made("f");

		for (int part = 0; part < 2; part++) {
			while (*turns != 4 * i + 2 * (unsigned)part)
				usleep(50);
			cr_assert_eq(lfill(&l, 100 + i * 200 + part * 100, 100, 1), 100);
			*turns += 1;
		}
		lclose(&l);
	}
	return 0;
}

Test(resume, a_reader_sees_what_is_written_in_each_life)
{
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, 0, 100, 1), 100);
	cr_assert_eq(plfs_truncate(l.f, 100000), 0); /* nobody reads at the end */
	read_in_turns_with(hold_in_turns, &l);
	lclose(&l);
}
