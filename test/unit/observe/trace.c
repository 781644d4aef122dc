/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words of a trace: what calls become, and that each is there once. A decoder of the words alone, which
 * knows what man/plfs-stats.5 says, reads them back.
 */
#include "core/base/sys.h"
#include "core/observe/observe.h"
#include "test/lib/scratch.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static struct trace_file file;
static char dir[PATH_MAX];
static uint64_t now;

static void begin(void)
{
	struct job j = { .rank = 3, .ranks = 8, .job = "j" };

	sys_init();
	scratch_dir();
	snprintf(dir, sizeof(dir), "%s/trace", scratch);
	trace_setup(dir, 1 << 20, &j, 0);
	now = 5000000000;
	memset(&file, 0, sizeof(file));
}

TestSuite(trace, .init = begin);

static void call(int kind, uint64_t off, uint64_t len)
{
	struct trace_call t = { .kind = kind, .off = off, .len = len, .begin_ns = now, .end_ns = now + 100 };

	now += 1000;
	trace_call(&file, "/plfs/some/where/file", true, &t);
}

struct word {
	uint64_t lo, hi;
};

/* The words of the only trace in the directory. Returns their number. */
static size_t words(struct word **w)
{
	char path[2 * PATH_MAX];
	struct dirent *e;
	DIR *d = opendir(dir);
	size_t nr = 0;
	FILE *in;

	trace_end();
	*w = calloc(1 << 17, sizeof(**w));
	while ((e = readdir(d)))
		if (*e->d_name != '.') {
			snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
			in = fopen(path, "r");
			cr_assert(in && !fseek(in, TRACE_HEADER_LEN, SEEK_SET));
			nr = fread(*w, sizeof(**w), 1 << 17, in);
			fclose(in);
		}
	closedir(d);
	return nr;
}

struct decoded {
	uint64_t calls, bytes, runs, sum_of_offs, words;
};

static struct decoded decode(void)
{
	struct decoded d = { 0 };
	uint64_t base = 0, length = 0, off = 0, len = 0;
	struct word *w;

	d.words = words(&w);
	for (size_t i = 0; i < d.words && w[i].lo & 255; i++) {
		unsigned tag = w[i].lo & 255;

		if (tag == TRACE_BASE) {
			base = w[i].hi;
		} else if (tag == TRACE_LENGTH) {
			length = w[i].hi;
		} else if (tag == TRACE_RUN) {
			uint64_t count = w[i].lo >> 32;

			d.runs++;
			d.calls += count - 1;
			d.bytes += (count - 1) * len;
			d.sum_of_offs += (count - 1) * off + w[i].hi * (count * (count - 1) / 2);
		} else if ((tag & 63) <= SEEN_OTHER) {
			off = base + (w[i].hi & ((1ULL << 40) - 1));
			len = length ? length : (w[i].hi >> 40) * (tag & TRACE_PAGES ? 4096 : 1);
			length = 0;
			d.calls++;
			d.bytes += len;
			d.sum_of_offs += off;
		}
	}
	free(w);
	return d;
}

Test(trace, a_run_is_three_words)
{
	struct decoded d;

	for (uint64_t i = 0; i < 90; i++) /* within 0.1 s */
		call(SEEN_WRITE, 1000 + i * 47001 * 8, 47001);
	d = decode();
	cr_assert_eq(d.calls, 90);
	cr_assert_eq(d.runs, 1);
	cr_assert_eq(d.bytes, 90 * 47001);
	cr_assert_eq(d.sum_of_offs, 90 * 1000 + 47001ULL * 8 * (90 * 89 / 2));
	cr_assert_leq(d.words, 3 + 1 + 1 + 2); /* a stream, a clock, a name of 21 bytes */
}

Test(trace, a_pause_ends_a_run)
{
	for (uint64_t i = 0; i < 10; i++)
		call(SEEN_WRITE, i * 100, 100);
	now += 1000000000;
	for (uint64_t i = 10; i < 20; i++)
		call(SEEN_WRITE, i * 100, 100);
	cr_assert_eq(decode().runs, 2);
}

Test(trace, the_short_way_adds_to_the_run)
{
	struct trace_stream *s;
	struct decoded d;

	for (uint64_t i = 0; i < 3; i++)
		call(SEEN_WRITE, i * 100, 100);
	s = file.streams;
	for (uint64_t i = 3; i < 3 + TRACE_MEASURED - 1; i++) {
		cr_assert(trace_expects(s, SEEN_WRITE, i * 100, 100));
		cr_assert(trace_again(s, now));
	}
	cr_assert_not(trace_expects(s, SEEN_WRITE, (2 + TRACE_MEASURED) * 100, 100));
	call(SEEN_WRITE, (2 + TRACE_MEASURED) * 100, 100);
	cr_assert(trace_expects(s, SEEN_WRITE, (3 + TRACE_MEASURED) * 100, 100));
	cr_assert_not(trace_again(s, now + 1000000000));
	d = decode();
	cr_assert_eq(d.calls, 3 + TRACE_MEASURED);
	cr_assert_eq(d.runs, 1);
}

/* Offsets and lengths from all over: each call is there, in 16 bytes as long as they are not huge. */
Test(trace, random_calls)
{
	uint64_t sum = 0, bytes = 0;
	struct decoded d;

	srand(2);
	for (int i = 0; i < 5000; i++) {
		uint64_t off = (uint64_t)rand() * 4, len = 1 + (uint64_t)rand() % 1000000;

		call(rand() % 2 ? SEEN_WRITE : SEEN_READ, off, len);
		sum += off;
		bytes += len;
	}
	d = decode();
	cr_assert_eq(d.calls, 5000);
	cr_assert_eq(d.sum_of_offs, sum);
	cr_assert_eq(d.bytes, bytes);
	cr_assert_leq(d.words, 5000 + 4);
}

Test(trace, huge_offsets_and_lengths)
{
	const uint64_t offs[] = { 0, 1ULL << 40, (1ULL << 62) + 5, 7, (1ULL << 40) - 1, 3ULL << 40 };
	const uint64_t lens[] = { 1 << 24, (1 << 24) + 1, 0x7ffff000, 0x7fffefff, 0, 1 };
	uint64_t sum = 0, bytes = 0;
	struct decoded d;

	for (int i = 0; i < 6; i++)
		for (int k = 0; k < 6; k++) {
			call(SEEN_WRITE, offs[i], lens[k]);
			sum += offs[i];
			bytes += lens[k];
		}
	d = decode();
	cr_assert_eq(d.calls, 36);
	cr_assert_eq(d.bytes, bytes);
	cr_assert_eq(d.sum_of_offs, sum);
}

/* At max= the trace says so, and the header how much was left out. */
Test(trace, a_full_trace_stops)
{
	struct decoded d;

	srand(3);
	for (int i = 0; i < 70000; i++)
		call(SEEN_WRITE, (uint64_t)rand(), 10);
	d = decode();
	cr_assert_leq(d.words * 16 + TRACE_HEADER_LEN, 1 << 20);
	cr_assert_lt(d.calls, 70000);
	cr_assert_gt(d.calls, 65000);
}
