/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is done to that file, each time in a child.
 */
#include "test/lib/image.h"

#include "core/plfs_admin.h"

#include <criterion/criterion.h>

unsigned char image[IMAGE_MAX];
off_t image_len;

int image_write_piece(void *arg)
{
	const struct image_piece *p = arg;
	struct lfile l = made("a");

	return lfill(&l, p->off, p->len, p->round) != (ssize_t)p->len || lclose(&l);
}

void image_note(off_t off, size_t len, unsigned round)
{
	pattern_fill(image + off, len, (uint64_t)off, round);
	if (off + (off_t)len > image_len)
		image_len = off + (off_t)len;
}

void image_write(off_t off, size_t len, unsigned round)
{
	struct image_piece p = { off, len, round };

	cr_assert_eq(in_child(image_write_piece, &p), 0);
	image_note(off, len, round);
}

int image_read(void *arg)
{
	static unsigned char buf[IMAGE_MAX];
	size_t step = *(size_t *)arg;
	struct lfile l = lopen("a", O_RDONLY);
	off_t size = plfs_size(l.f);
	int found = size == image_len ? 0 : size == -EIO ? 1 : 2;
	off_t nr_eio = 0;

	/* where all is lost, each read may look at all logs in vain: the later ones are fewer */
	for (off_t off = 0; off < image_len && found < 2; off += (off_t)step * (1 + nr_eio / 50)) {
		ssize_t want = (ssize_t)min_u64(step, (uint64_t)(image_len - off));
		ssize_t n = plfs_pread(l.f, buf, step, off);

		nr_eio += n == -EIO;
		if (n == -EIO)
			found = 1;
		else if (n != want || memcmp(buf, image + off, (size_t)n))
			found = 2;
	}
	return lclose(&l) && !found ? 1 : found;
}

int image_look(void)
{
	int worst = 0;

	for (size_t step = 700; step <= 600000; step *= 29) {
		int one = in_child(image_read, &step);

		worst = one > worst ? one : worst;
	}
	return worst;
}

static void say(void *arg, const char *path, const char *why)
{
	(void)arg;
	fprintf(stderr, "drain: %s: %s\n", path, why);
}

int image_drain_here(void)
{
	struct plfs_drain d = { .trouble = say };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);
	int ret = plfs_drain_file(m, AT_FDCWD, path, &d);

	return ret || d.nr_lost ? 100 : (int)(d.nr_copies + d.nr_parity) + 50 * (d.nr_left > 0);
}

static int drain_it(void *arg) { return (void)arg, image_drain_here(); }

int image_drain(void) { return in_child(drain_it, NULL); }

struct checked {
	bool repair;
	const char *code; /* that is looked for */
	bool seen;
};

static void note_finding(void *arg, const struct plfs_finding *f)
{
	struct checked *c = arg;

	c->seen |= c->code && !strcmp(f->code, c->code);
	fprintf(stderr, "check: %d %s: %s: %s\n", f->severity, f->code, f->path, f->text);
}

static int check_it(void *arg)
{
	struct checked *c = arg;
	struct plfs_check check = { .repair = c->repair, .found = note_finding, .arg = c };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);
	int ret = plfs_check(m, AT_FDCWD, path, &check);

	return ret < 0 ? 100 : ret + 10 * (c->code && !c->seen);
}

int image_check_here(bool repair)
{
	struct checked c = { .repair = repair };

	return check_it(&c);
}

int image_check(const char *code)
{
	struct checked c = { .code = code };

	return in_child(check_it, &c);
}

int image_repair(const char *code)
{
	struct checked c = { .repair = true, .code = code };

	return in_child(check_it, &c);
}

int image_chmod(void *mode)
{
	char path[PATH_MAX];

	lpath("a", path);
	return -plfs_chmod(AT_FDCWD, path, *(mode_t *)mode, 0);
}
