/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the fuzz targets share. Each is a libFuzzer target where it is built with -fsanitize=fuzzer (make
 * fuzz), and else a program that runs the inputs that are kept in corpus/TARGET and a number of mutations of
 * these and of valid ones, always the same:
 *
 *   build/test/fuzz/TARGET [ITERATIONS [SEED]] [FILE...]
 *                                    FUZZ_VERBOSE=1 shows what the library says; FUZZ_KEEP=FILE gets the
 *                                    input that breaks a promise
 *   build/test/fuzz/TARGET --seeds DIRECTORY    writes valid inputs for libFuzzer to begin with
 *
 * The first byte of an input is the target's; its bit 7 (FIX) asks for all checksums and lengths to be made
 * right first, without which hardly a mutation would get beyond them.
 */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include "core/base/alloc.h"
#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/base/msg.h"
#include "core/base/sys.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FIX 0x80
#define INPUT_MAX 65536

/* Defined by the target. */
extern const char fuzz_name[];
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* A valid input, into @buf of INPUT_MAX bytes; returns its length. */
static size_t fuzz_valid(uint8_t *buf);

static const uint8_t *input; /* the program's, while it is run */
static size_t input_len;

static void must(bool ok, const char *what)
{
	const char *keep = getenv("FUZZ_KEEP");
	FILE *f = !ok && keep && input ? fopen(keep, "wb") : NULL;

	if (ok)
		return;
	if (f && fwrite(input, 1, input_len, f) == input_len)
		fclose(f);
	fprintf(stderr, "fuzz_%s: broken promise: %s\n", fuzz_name, what);
	abort();
}

static inline void fix_crc(uint8_t *p, size_t field, size_t len)
{
	put_le32(p + field, 0);
	put_le32(p + field, crc32c(0, p, len));
}

/* The same of an error number. */
__attribute__((unused)) static void must_be(bool ok, int ret, const char *what)
{
	if (!ok)
		fprintf(stderr, "fuzz_%s: %d (%s)\n", fuzz_name, ret, strerror(-ret));
	must(ok, what);
}

/*
 * The input behind its first byte, in memory of its own that may be changed: free() it. NULL if there is not
 * even that byte.
 */
__attribute__((unused)) static uint8_t *copy_behind_head(const uint8_t *data, size_t size)
{
	uint8_t *p = size ? malloc(size > 1 ? size - 1 : 1) : NULL;

	if (p)
		memcpy(p, data + 1, size - 1);
	return p;
}

/* ---- what the library says ---- */

static unsigned nr_lines; /* on standard error, since it was set to 0 */

static ssize_t count_line(int fd, const void *buf, size_t len)
{
	if (fd == STDERR_FILENO)
		nr_lines++;
	return fd == STDERR_FILENO && !getenv("FUZZ_VERBOSE") ? (ssize_t)len : write(fd, buf, len);
}

static int no_sleep(const struct timespec *wait, struct timespec *left)
{
	(void)wait;
	(void)left;
	return 0;
}

/* What was just said is not said again: here it is never just. */
static int hurried_clock(clockid_t clock, struct timespec *now)
{
	static time_t more;
	int ret = clock_gettime(clock, now);

	if (clock == CLOCK_MONOTONIC_COARSE)
		now->tv_sec += more += 11;
	return ret;
}

/* Millions of messages are nobody's, and nobody waits for writers that there are not. */
__attribute__((unused)) static void fuzz_init(void)
{
	sys_init();
	sys.write = count_line;
	sys.nanosleep = no_sleep;
	sys.clock_gettime = hurried_clock;
}

/* ---- memory ---- */

int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
					      void (*on_free)(const volatile void *)) __attribute__((weak));
size_t __sanitizer_get_allocated_size(const volatile void *p) __attribute__((weak));

static size_t memory_now, memory_peak;

static void on_malloc(const volatile void *p, size_t len)
{
	(void)p;
	memory_now += len;
	memory_peak = memory_now > memory_peak ? memory_now : memory_peak;
}

static void on_free(const volatile void *p)
{
	if (p)
		memory_now -= __sanitizer_get_allocated_size(p);
}

/* From here on. */
__attribute__((unused)) static void memory_begin(void)
{
	static bool installed;

	if (!installed && __sanitizer_install_malloc_and_free_hooks)
		__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
	installed = true;
	memory_now = memory_peak = 0;
}

/* At most so many bytes at any moment since. Without the address sanitizer nobody counts. */
__attribute__((unused)) static void memory_end(size_t most)
{
	if (memory_peak > most && memory_peak < SIZE_MAX / 2) {
		fprintf(stderr, "fuzz_%s: %zu bytes of memory, %zu are enough\n", fuzz_name, memory_peak,
			most);
		abort();
	}
}

/* ---- the program ---- */

static uint64_t rng_state = 1;

static uint64_t rnd(uint64_t below)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (rng_state * 0x2545f4914f6cdd1d >> 16) % below;
}

static size_t mutate(uint8_t *p, size_t len)
{
	static const uint64_t odd[] = { 0,	    1,	       7,	   255,
					UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 1,
					1ull << 32, 1ull << 20 };

	for (uint64_t n = rnd(6); n > 0 && len > 1; n--) {
		uint64_t at = 1 + rnd(rnd(2) ? len - 1 : min_u64(len - 1, 200)), from;

		switch (rnd(6)) {
		case 0: p[at] ^= (uint8_t)(1 << rnd(8)); break;
		case 1: p[at] = (uint8_t)rnd(256); break;
		case 2:
		case 3:
			at = 1 + (at - 1) / 8 * 8; /* most fields are aligned to their size */
			if (at + 8 <= len)
				put_le64(p + at,
					 rnd(2) ? odd[rnd(ARRAY_SIZE(odd))] : get_le64(p + at) + rnd(17) - 8);
			break;
		case 4:
			from = 1 + rnd(len - 1);
			memmove(p + at, p + from, rnd(min_u64(len - at, len - from) + 1));
			break;
		default:
			if (rnd(4) == 0)
				len = at;
		}
	}
	return len;
}

static size_t read_input(const char *path, uint8_t *buf)
{
	FILE *f = fopen(path, "rb");
	size_t len = f ? fread(buf, 1, INPUT_MAX, f) : 0;

	if (f)
		fclose(f);
	must(f != NULL, path);
	return len;
}

/* Of its own memory, so that the sanitizer sees where it ends. */
static void run_input(const uint8_t *buf, size_t len)
{
	uint8_t *p = malloc(len ? len : 1);

	memcpy(p, buf, len);
	input = buf;
	input_len = len;
	LLVMFuzzerTestOneInput(p, len);
	input = NULL;
	free(p);
}

static void write_seeds(const char *dir, uint8_t *buf)
{
	for (uint64_t i = 0; i < 200; i++) {
		char path[PATH_MAX];
		size_t len;
		FILE *f;

		rng_state = (i + 1) * 0x9e3779b97f4a7c15 | 1;
		rnd(2);
		len = fuzz_valid(buf);
		snprintf(path, sizeof(path), "%s/seed-%03d", dir, (int)i);
		f = fopen(path, "wb");
		must(f && fwrite(buf, 1, len, f) == len && !fclose(f), path);
	}
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Weak: libFuzzer's own takes its place. */
__attribute__((weak)) int main(int argc, char **argv)
{
	uint64_t iterations = argc > 1 ? strtoull(argv[1], NULL, 0) : 2000,
		 seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	char dir[PATH_MAX], path[2 * PATH_MAX];
	static uint8_t buf[INPUT_MAX];
	struct dirent **names = NULL;
	int nr;

	setvbuf(stdout, NULL, _IONBF, 0);
	sys_init(); /* a valid input may need the host's name */
	if (argc == 3 && !strcmp(argv[1], "--seeds")) {
		write_seeds(argv[2], buf);
		return 0;
	}
	for (int i = 3; i < argc; i++)
		run_input(buf, read_input(argv[i], buf));
	snprintf(dir, sizeof(dir), "%s/corpus/%s", FUZZ_DIR, fuzz_name);
	nr = scandir(dir, &names, NULL, compare_names);
	nr = nr > 0 ? nr : 0;
	for (uint64_t i = 0; i < (uint64_t)nr + iterations; i++) {
		const char *name = nr ? names[i % (uint64_t)nr]->d_name : ".";
		size_t len;

		rng_state = (seed + i) * 0x9e3779b97f4a7c15 | 1;
		rnd(2);
		snprintf(path, sizeof(path), "%s/%s", dir, name);
		if (*name == '.' && i < (uint64_t)nr)
			continue;
		len = *name == '.' || (i >= (uint64_t)nr && rnd(2)) ? fuzz_valid(buf) : read_input(path, buf);
		run_input(buf, i < (uint64_t)nr ? len : mutate(buf, len));
	}
	printf("fuzz_%s: %d kept inputs, %lu mutations from seed %lu\n", fuzz_name, nr > 2 ? nr - 2 : 0,
	       iterations, seed);
	for (int i = 0; i < nr; i++)
		free(names[i]);
	free(names);
	return 0;
}

#endif
