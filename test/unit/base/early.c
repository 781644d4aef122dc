/* SPDX-License-Identifier: BSD-3-Clause */
/* The first memory of a process: contents, order of frees, threads, and what comes when it is full. */
#include "core/base/early.h"

#include "core/base/alloc.h"
#include "core/base/sys.h"
#include "test/lib/scratch.h"
#include "test/lib/sanitized.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/mman.h>

#define MUST(what) \
	do { \
		if (!(what)) \
			return __LINE__; \
	} while (0)

/* Each runs in a process of one thread, which one that runs tests is not; 0, or the line that failed. */
#define EARLY(name) \
	static int name(void *arg); \
	Test(early, name) { in_one_thread(name); } \
	static int name(void *arg __attribute__((unused)))

struct job {
	int (*fn)(void *arg);
	int *line;
};

static int run(void *arg)
{
	struct job *job = arg;

	be_single_threaded();
	*job->line = job->fn(NULL);
	return 0;
}

static void in_one_thread(int (*fn)(void *arg))
{
	struct job job = { fn, mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) };

	if (is_sanitized())
		cr_skip_test("a sanitizer build has every block from malloc");
#ifdef __libc_single_threaded
	cr_skip_test("glibc before 2.32 does not tell whether a process has one thread: this memory is not used");
#endif
	sys_init();
	cr_assert_eq(in_child(run, &job), 0);
	cr_assert_eq(*job.line, 0, "line %d", *job.line);
}

/* How many blocks of @len there are still; they are given back. */
static int count_room(size_t len)
{
	static void *p[5000];
	int nr = 0;

	while (nr < 5000 && (p[nr] = early_alloc(len, false)))
		nr++;
	for (int i = 0; i < nr; i++)
		early_free(p[i]);
	return nr;
}

EARLY(blocks_are_aligned_and_do_not_overlap)
{
	unsigned char *p[40];

	for (int i = 0; i < 40; i++) {
		p[i] = early_alloc((size_t)i * 17, false);
		MUST(p[i] && early_has(p[i]) && early_len(p[i]) >= (size_t)i * 17);
		MUST((uintptr_t)p[i] % 16 == 0);
		memset(p[i], i, (size_t)i * 17);
	}
	for (int i = 0; i < 40; i++)
		for (int at = 0; at < i * 17; at++)
			MUST(p[i][at] == i);
	return 0;
}

EARLY(what_is_freed_in_any_order_is_given_again)
{
	int before = count_room(1000);
	void *p[6];

	for (unsigned order = 0; order < 6 * 6 * 6; order++) {
		for (int i = 0; i < 6; i++)
			p[i] = early_alloc(1000, false);
		for (unsigned i = 0, left = order; i < 6; i++, left /= 6) {
			unsigned at = left % 6;

			while (!p[at])
				at = (at + 1) % 6;
			early_free(p[at]);
			p[at] = NULL;
		}
		MUST(count_room(1000) == before);
	}
	MUST(before >= 40);
	return 0;
}

EARLY(what_is_to_be_zero_is_also_where_others_have_written)
{
	for (size_t len = 1; len <= EARLY_LEN_MAX; len = len * 3 + 5) {
		unsigned char *below = early_alloc(100, false), *p = early_alloc(len / 2 + 1, false);

		memset(below, 0xff, 100);
		memset(p, 0xff, len / 2 + 1);
		early_free(p);
		early_free(below);
		p = early_alloc(len, true);
		for (size_t at = 0; at < len; at++)
			MUST(p[at] == 0);
		memset(p, 0xff, len);
		early_free(p);
	}
	return 0;
}

EARLY(what_does_not_fit_comes_from_the_allocator)
{
	char *last = NULL, *p;
	int nr = 0;

	while ((p = mem_alloc(1000)) && early_has(p) && nr++ < 1000)
		last = memset(p, 'x', 1000);
	MUST(p && last && nr < 1000);
	memset(p, 'y', 1000);
	last = mem_realloc(last, 200000);
	MUST(last && !early_has(last));
	for (int at = 0; at < 1000; at++)
		MUST(last[at] == 'x' && p[at] == 'y');
	mem_free(last);
	mem_free(p);
	MUST(!early_alloc(EARLY_LEN_MAX + 1, false));
	return 0;
}

static void *allocates(void *arg)
{
	void **p = arg;

	early_free(p[0]);
	p[1] = early_alloc(100, false);
	return NULL;
}

EARLY(is_not_given_to_a_process_with_threads_which_may_free)
{
	void *p[2] = { early_alloc(100, false), NULL };
	pthread_t thread;

	MUST(p[0]);
	pthread_create(&thread, NULL, allocates, p);
	pthread_join(thread, NULL);
	MUST(!p[1]);
	MUST(!early_alloc(100, false));
	return 0;
}
