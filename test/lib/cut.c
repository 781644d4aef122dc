/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file is known by its bytes before and after the change; a change is made by a process of its own. What
 * a reader finds is compared with both, and with what has been found before.
 */
#include "test/lib/cut.h"

#include "test/lib/calls.h"

#include <criterion/criterion.h>
#include <sys/mman.h>

#define CLAIM_OFF 196000 /* more than 64 times small= */
#define CLAIM_LEN 100

unsigned char cut_image[2][FILE_MAX];
ssize_t cut_size[2];
long cut_to;
enum change cut_change;
enum cut_version *cut_seen;

/* ---- what is found ---- */

enum cut_version cut_version_of_size(off_t size)
{
	if (cut_size[OLD] != cut_size[NEW])
		return size == cut_size[OLD] ? OLD : size == cut_size[NEW] ? NEW : WRONG;
	return size == cut_size[OLD] ? BOTH : WRONG;
}

static enum cut_version version_of(const unsigned char *buf, ssize_t n)
{
	bool old = n == cut_size[OLD] && !memcmp(buf, cut_image[OLD], (size_t)n);
	bool new = n == cut_size[NEW] && !memcmp(buf, cut_image[NEW], (size_t)n);

	return old && new ? BOTH : old ? OLD : new ? NEW : WRONG;
}

bool cut_found(const char *who, const char *what, enum cut_version v, ssize_t n)
{
	enum cut_version last = *cut_seen;
	const char *const names[] = { "before", "afterwards", "either", "neither" };

	if (v == WRONG || (last == NEW && v == OLD)) {
		fprintf(stderr, "%s: %s (%zd) is that of %s; it was %s\n", who, what, n,
			names[v], names[last]);
		return false;
	}
	if (v == NEW)
		*cut_seen = NEW;
	return true;
}

bool cut_look(const char *who, struct lfile *l)
{
	static unsigned char buf[FILE_MAX + 1];
	ssize_t n = plfs_pread(l->f, buf, sizeof(buf), 0);
	off_t size;

	if (!cut_found(who, "the content", version_of(buf, n), n))
		return false;
	size = plfs_size(l->f);
	if (!cut_found(who, "the size", cut_version_of_size(size), size))
		return false;
	n = plfs_pread(l->f, buf, sizeof(buf), 0);
	return cut_found(who, "the content again", version_of(buf, n), n);
}

int cut_look_newly(void *arg)
{
	off_t size = stat_size("f");
	struct lfile l;
	bool ok;

	if (!cut_found("stat", "the size", cut_version_of_size(size), size))
		return 1;
	l = lopen("f", arg ? O_RDWR : O_RDONLY);
	ok = cut_look("newly opened", &l);
	lclose(&l);
	return !ok;
}

/* ---- processes that have the file open ---- */

static int look_when_asked(void *arg)
{
	struct looker *k = arg;
	struct lfile l = lopen("f", k->flags);
	char c = 0;

	if (k->writes &&
	    (lfill(&l, 90000, 5000, 5) != 5000 || plfs_commit(l.f) || lfill(&l, 95000, 5000, 5) != 5000))
		return 1;
	for (int i = 0; i < 2 && !k->writes; i++)
		if (!cut_look("before", &l))
			return 1;
	do {
		if (write(k->answer[1], &c, 1) != 1 || read(k->ask[0], &c, 1) != 1)
			return 1;
		c = c == 'q' ? 'q' : !cut_look(k->writes ? "who writes" : "opened before", &l);
	} while (c != 'q');
	if (k->writes && !k->ends && lfill(&l, 120000, 100, 6) != 100)
		return 1;
	return lclose(&l) ? 1 : 0;
}

static bool await(struct looker *k)
{
	char c;

	return read(k->answer[0], &c, 1) == 1 && !c;
}

bool ask(struct looker *k)
{
	return write(k->ask[1], "l", 1) == 1 && await(k);
}

void start_looker(struct looker *k)
{
	cr_assert(!pipe(k->ask) && !pipe(k->answer));
	k->pid = start_child(look_when_asked, k);
	cr_assert(await(k));
}

void end_looker(struct looker *k)
{
	cr_assert_eq(write(k->ask[1], "q", 1), 1);
	cr_assert_eq(wait_child(k->pid), 0);
	for (int i = 0; i < 2; i++) {
		close(k->ask[i]);
		close(k->answer[i]);
	}
}

/* ---- the process that changes it ---- */

static int (*at_last)(enum call call);

int cut_change_file(void *arg)
{
	struct lfile l = { .fd = -1 };

	(void)arg;
	if (cut_change != OPEN)
		l = lopen("f", O_RDWR);
	calls_intercept();
	on_call = at_last;
	if (cut_change == OPEN)
		l = lopen("f", O_RDWR | O_TRUNC);
	if (cut_change == CUT && plfs_truncate(l.f, cut_to))
		return 1;
	if (cut_change == CLAIM && lfill(&l, CLAIM_OFF, CLAIM_LEN, 9) != CLAIM_LEN)
		return 1;
	if (cut_change == MOVE && plfs_in_body(l.f, PLFS_MAP_WRITE) != 1)
		return 1;
	on_call = NULL;
	*cut_seen = NEW;
	return lclose(&l) ? 1 : 0;
}

/* ---- the file ---- */

static void put(struct lfile *l, off_t off, size_t len, unsigned round)
{
	if (lfill(l, off, len, round) != (ssize_t)len)
		die("write");
	pattern_fill(cut_image[OLD] + off, len, (uint64_t)off, round);
	cut_size[OLD] = off + (ssize_t)len > cut_size[OLD] ? off + (ssize_t)len : cut_size[OLD];
}

int cut_make_file(void *arg)
{
	const char *kind = arg;
	struct lfile l = made("f");

	put(&l, 0, 3000, 1); /* into the stub, if small files are there */
	lclose(&l);
	if (cut_change == CLAIM)
		return 0;
	l = lopen("f", O_RDWR);
	put(&l, 10000, 70000, 2);
	put(&l, 500, 1000, 3);
	put(&l, 2500, 1500, 4);
	if (strchr(kind, 'c')) { /* and cut before */
		if (plfs_truncate(l.f, 2000))
			die("truncate");
		put(&l, 2600, 100, 5);
		put(&l, 20000, 100, 5);
	}
	return lclose(&l) ? 1 : 0;
}

void cut_know_file(const char *kind, long to)
{
	unsigned char *p = cut_image[OLD];

	memset(cut_image, 0, sizeof(cut_image));
	pattern_fill(p, 3000, 0, 1);
	if (cut_change == CLAIM) {
		memcpy(cut_image[NEW], p, 3000);
		pattern_fill(cut_image[NEW] + CLAIM_OFF, CLAIM_LEN, CLAIM_OFF, 9);
		cut_size[OLD] = 3000;
		cut_size[NEW] = CLAIM_OFF + CLAIM_LEN;
		return;
	}
	pattern_fill(p + 10000, 70000, 10000, 2);
	pattern_fill(p + 500, 1000, 500, 3);
	pattern_fill(p + 2500, 1500, 2500, 4);
	cut_size[OLD] = 80000;
	if (strchr(kind, 'c')) {
		memset(p + 2000, 0, FILE_MAX - 2000);
		pattern_fill(p + 2600, 100, 2600, 5);
		pattern_fill(p + 20000, 100, 20000, 5);
		cut_size[OLD] = 20100;
	}
	if (strchr(kind, 'w')) {
		pattern_fill(p + 90000, 5000, 90000, 5);
		pattern_fill(p + 95000, 5000, 95000, 5);
		cut_size[OLD] = 100000;
	}
	cut_size[NEW] = cut_change == MOVE ? cut_size[OLD] : to;
	to = cut_size[NEW];
	memcpy(cut_image[NEW], p, (size_t)(to < cut_size[OLD] ? to : cut_size[OLD]));
}

off_t cut_stub_size(void)
{
	char path[PATH_MAX];
	struct stat st;

	lpath("f", path);
	if (stat(path, &st))
		die("stat");
	return st.st_size - 4096;
}

bool cut_word_is_set(void)
{
	char path[PATH_MAX], word[32], zeros[32] = { 0 };
	int fd;

	lpath("f", path);
	fd = open(path, O_RDONLY);
	if (pread(fd, word, sizeof(word), 480) != sizeof(word))
		die("the stub is short");
	close(fd);
	return memcmp(word, zeros, sizeof(word));
}

int cut_remove_file(void *arg)
{
	(void)arg;
	return lunlink("f") ? 1 : 0;
}

void cut_begin(struct cut_plan p)
{
	scratch_in_memory = true;
	scratch_map(p.options);
	cut_seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cut_to = p.to;
	cut_change = p.change;
	at_last = p.stops ? stop_at_last : die_at_last;
}
