/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's memory: contents, alignment, threads, fork, and that it is not the program's malloc. */
#include "core/base/alloc.h"
#include "test/lib/sanitized.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

Test(mem_alloc, gives_aligned_blocks_that_do_not_overlap)
{
	enum { NR = 2000 };
	static unsigned char *block[NR];
	static size_t len[NR];

	for (int i = 0; i < NR; i++) {
		len[i] = (size_t)i * 37 % 5000 + (i % 100 ? 0 : 200000);
		block[i] = mem_alloc(len[i]);
		cr_assert_not_null(block[i]);
		cr_assert_eq((uintptr_t)block[i] % (len[i] >= 16 ? 16 : 8), 0);
		memset(block[i], i, len[i]);
	}
	for (int i = 0; i < NR; i++) {
		for (size_t at = 0; at < len[i]; at++)
			cr_assert_eq(block[i][at], (unsigned char)i, "block %d at %zu", i, at);
		mem_free(block[i]);
	}
}

Test(mem_alloc, of_nothing_can_be_freed)
{
	void *p = mem_alloc(0);

	cr_assert_not_null(p);
	mem_free(p);
	mem_free(NULL);
}

Test(mem_alloc, of_far_too_much_is_null)
{
	volatile size_t len = SIZE_MAX / 2 + 1;

	if (is_sanitized())
		cr_skip_test("the sanitizer stops the program instead");
	cr_assert_null(mem_alloc(len));
	cr_assert_null(mem_zalloc(len));
	cr_assert_null(mem_realloc(NULL, len));
}

Test(mem_zalloc, is_zero_even_where_memory_is_used_again)
{
	for (size_t len = 1; len < 300000; len = len * 3 + 1) {
		unsigned char *p = mem_alloc(len);

		memset(p, 0xff, len);
		mem_free(p);
		p = mem_zalloc(len);
		for (size_t at = 0; at < len; at++)
			cr_assert_eq(p[at], 0);
		mem_free(p);
	}
}

Test(mem_realloc, keeps_the_contents_up_and_down)
{
	static const size_t LENS[] = { 1, 100, 40, 5000, 70000, 300000, 299999, 60, 1 << 20, 3 };
	size_t kept = 0;
	unsigned char *p = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(LENS); i++) {
		p = mem_realloc(p, LENS[i]);
		cr_assert_not_null(p);
		for (size_t at = 0; at < min_size(kept, LENS[i]); at++)
			cr_assert_eq(p[at], (unsigned char)(at * 7));
		for (size_t at = 0; at < LENS[i]; at++)
			p[at] = (unsigned char)(at * 7);
		kept = LENS[i];
	}
	mem_free(p);
}

Test(mem_strdup, copies)
{
	char *p = mem_strdup("a container is keyed by an id");

	cr_assert_str_eq(p, "a container is keyed by an id");
	mem_free(p);
}

/* Bytes of the program's malloc that are in use. */
static size_t in_use(void)
{
#if __GLIBC_PREREQ(2, 33)
	struct mallinfo2 info = mallinfo2();
#else
	struct mallinfo info = mallinfo();
#endif

	return info.uordblks + info.hblkhd;
}

Test(mem_alloc, does_not_use_the_programs_malloc)
{
	size_t before;
	void *p[100];

	if (is_sanitized())
		cr_skip_test("in a sanitizer build it does, on purpose");
	free(malloc(100));
	before = in_use();
	for (int i = 0; i < 100; i++)
		p[i] = mem_alloc((size_t)i * 5000);
	cr_assert_eq(in_use(), before);
	for (int i = 0; i < 100; i++)
		mem_free(p[i]);
}

static void *churn(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	unsigned char *slot[64] = { 0 };
	size_t len[64] = { 0 };

	for (int i = 0; i < 20000; i++) {
		unsigned s = (seed = seed * 1664525 + 1013904223) >> 26;

		for (size_t at = 0; at < len[s]; at += 61)
			if (slot[s][at] != (unsigned char)(len[s] ^ s))
				return (void *)1;
		mem_free(slot[s]);
		len[s] = (seed >> 8) % 3000 + 1;
		slot[s] = mem_alloc(len[s]);
		memset(slot[s], (int)(len[s] ^ s), len[s]);
	}
	for (int s = 0; s < 64; s++)
		mem_free(slot[s]);
	return NULL;
}

Test(mem_alloc, serves_threads_at_once)
{
	pthread_t thread[4];
	void *bad;

	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, churn, (void *)(i + 1));
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &bad);
		cr_assert_null(bad, "a block of thread %d changed under it", i);
	}
}

Test(mem_alloc, works_in_children_forked_while_threads_allocate, .timeout = 300)
{
	pthread_t thread[2];

	if (is_sanitized())
		cr_skip_test("the sanitizer's allocator does not survive this");
	mem_free(mem_alloc(1)); /* the set-up, which alloc.h wants done before */
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, churn, (void *)(i + 1));
	for (int i = 0; i < 50; i++) {
		pid_t child = fork();
		int status;

		if (!child) {
			alarm(20);
			_exit(churn((void *)7) != NULL);
		}
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert_eq(status, 0, "child %d: status %x", i, status);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

/* MALLOC_CONF is for the program's own jemalloc, if it has one; ours must not even complain of it. */
Test(mem_alloc, does_not_read_the_programs_malloc_conf)
{
	FILE *complaints = tmpfile();
	int saved = dup(2);

	setenv("MALLOC_CONF", "nonsense:1,abort_conf:true", 1);
	dup2(fileno(complaints), 2);
	mem_free(mem_alloc(1));
	dup2(saved, 2);
	cr_assert_eq(lseek(fileno(complaints), 0, SEEK_END), 0);
}
