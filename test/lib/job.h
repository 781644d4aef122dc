/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the job, crash and benchmark programs share: the byte pattern that files are filled with and
 * checked against, the clock, and the way to give up. The pattern is a function of the byte's offset in
 * the file and of the round, so that any reader can check any byte, and a byte from the wrong
 * place or from an older round is found.
 */
#ifndef TEST_JOB_H
#define TEST_JOB_H

#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* One line on standard error, with errno's text if it is set, and exit code 1 without any clean-up. */
__attribute__((format(printf, 1, 2), noreturn)) static inline void die(const char *fmt, ...)
{
	int err = errno;
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s%s%s\n", line, err ? ": " : "", err ? strerror(err) : "");
	_exit(1);
}

static inline double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static inline uint64_t mix64(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/*
 * A number below @below, the next of the sequence that *@state is in; it is not 0 (xorshift64*: Vigna, "An
 * experimental exploration of Marsaglia's xorshift generators, scrambled", 2016).
 */
static inline uint64_t rnd_below(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (*state * 0x2545f4914f6cdd1d >> 16) % below;
}

/* The eight bytes of the file that begin at 8 * @word. */
static inline uint64_t pattern_word(uint64_t word, unsigned round)
{
	return mix64(word ^ ((uint64_t)round << 48));
}

static inline unsigned char pattern_byte(uint64_t off, unsigned round)
{
	return (unsigned char)(pattern_word(off / 8, round) >> (8 * (off % 8)));
}

/* Fill @buf with what bytes @off .. @off + @len - 1 of a file of @round are. */
static inline void pattern_fill(void *buf, size_t len, uint64_t off, unsigned round)
{
	unsigned char *p = buf;
	size_t i = 0;

	for (; i < len && (off + i) % 8; i++)
		p[i] = pattern_byte(off + i, round);
	for (; i + 8 <= len; i += 8) {
		uint64_t word = htole64(pattern_word((off + i) / 8, round));

		memcpy(p + i, &word, 8);
	}
	for (; i < len; i++)
		p[i] = pattern_byte(off + i, round);
}

/* The index of the first byte in @buf that is not the pattern's, or @len if all are right. */
static inline size_t pattern_check(const void *buf, size_t len, uint64_t off, unsigned round)
{
	const unsigned char *p = buf;
	size_t i = 0;

	for (; i < len && (off + i) % 8; i++)
		if (p[i] != pattern_byte(off + i, round))
			return i;
	for (; i + 8 <= len; i += 8) {
		uint64_t word = htole64(pattern_word((off + i) / 8, round));

		if (memcmp(p + i, &word, 8))
			break;
	}
	for (; i < len; i++)
		if (p[i] != pattern_byte(off + i, round))
			return i;
	return len;
}

/* pwrite(2) and pread(2) until done, as careful programs call them; they give up the process on an error. */
static inline void write_all(int fd, const void *buf, size_t len, off_t off, const char *path)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pwrite(fd, (const char *)buf + done, len - done, off + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			die("%s: pwrite of %zu bytes at %lld", path, len - done,
			    (long long)off + (long long)done);
		done += (size_t)n;
	}
}

/* Returns the bytes read: fewer than @len only at the end of the file. */
static inline size_t read_all(int fd, void *buf, size_t len, off_t off, const char *path)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, (char *)buf + done, len - done, off + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			die("%s: pread of %zu bytes at %lld", path, len - done,
			    (long long)off + (long long)done);
		if (!n)
			break;
		done += (size_t)n;
	}
	return done;
}

#endif
