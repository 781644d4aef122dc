/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * look DIR STORY FAILURE [goes-on]: whether DIR has what was synced before that failure of the disk, and else
 * nothing but what was there, what was to be there, zeros, and bytes that cannot be read, where something was
 * written since. With "goes-on" the files are then written and synced. Exit code 1: it has not, and the first
 * things that are wrong are told. With LOST in the environment a disk that had logs is not there: bytes may
 * be unreadable, but not those of files that had copies or parity of all since.
 */
#define _GNU_SOURCE
#include "story.h"

#include <linux/magic.h>
#include <sys/statfs.h>

static struct story *story;
static const char *dir;
static uint64_t at; /* the failure */
static uint64_t sure_until; /* what was synced before this is on the disk */
static char why[300];


__attribute__((format(printf, 1, 2))) static bool wrong(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return false;
}

/* What a file may have in it. */
struct file {
	unsigned char *sure; /* what was synced */
	int *stamp;          /* which action wrote it */
	long sure_size, min_size, max_size;
	int pending[20000], nr_pending; /* actions that may be seen */
	bool named, synced;             /* its first name was synced; something of itself */
	bool going, gone;               /* that name may have gone, or has */
	bool lost;                      /* any byte may be unreadable */
};

static bool has_begun(const struct action *a) { return a->begin && a->begin <= at; }
static bool has_ended(const struct action *a) { return a->end && a->end <= at; }
static bool is_write(const struct action *a) { return a->act == WRITE || a->act == APPEND; }

static bool is_sync(const struct action *a)
{
	return a->act == SYNC || a->act == SYNC_DIR || (is_write(a) && a->synced);
}

/* Whether what @a synced is on the disk. */
static bool is_sure(const struct action *a) { return has_ended(a) && a->end < sure_until; }

/*
 * btrfs and XFS tell the second of two processes that sync at a time that it is done before the first is: a
 * plain directory loses it too. There a sync is sure when no other that had begun has still to end.
 */
static void find_sure(void)
{
	struct statfs fs;

	sure_until = UINT64_MAX;
	if (statfs(dir, &fs))
		die("%s", dir);
	if (fs.f_type != BTRFS_SUPER_MAGIC && fs.f_type != XFS_SUPER_MAGIC)
		return;
	for (int i = 0; i < story->nr; i++) {
		const struct action *a = &story->actions[i];

		if (is_sync(a) && has_begun(a) && !has_ended(a) && a->begin < sure_until)
			sure_until = a->begin;
	}
}

static unsigned char byte_of(int i, long off)
{
	return pattern_byte((uint64_t)(off - story->actions[i].off), (unsigned)i % 65535 + 1);
}

static void apply(struct file *f, int i, long *size, bool bytes)
{
	const struct action *a = &story->actions[i];

	if (is_write(a)) {
		for (long off = a->off; bytes && off < a->off + a->len; off++) {
			f->sure[off] = byte_of(i, off);
			f->stamp[off] = i;
		}
		*size = a->off + a->len > *size ? a->off + a->len : *size;
		return;
	}
	for (long off = a->len; bytes && off < STORY_FILE_MAX; off++) {
		f->sure[off] = 0;
		f->stamp[off] = i;
	}
	*size = a->len;
}

/* Actions that ended before this are synced; so are directories. */
static void find_syncs(int no, uint64_t *synced, uint64_t *dir_synced)
{
	*synced = *dir_synced = 0;
	for (int i = 0; i < story->nr; i++) {
		const struct action *a = &story->actions[i];

		if (!is_sync(a) || !is_sure(a))
			continue;
		if (a->act == SYNC_DIR && a->begin > *dir_synced)
			*dir_synced = a->begin;
		if (a->file == no && (a->act == SYNC || (story->mapped && is_write(a) && a->synced)) &&
		    a->begin > *synced)
			*synced = a->begin;
	}
}

static bool is_before(const struct action *a, uint64_t synced) { return a->end && a->end < synced; }

/* Whether all that was done with the file is synced, and has been covered since. */
static bool is_covered(const struct file *f, int no)
{
	uint64_t last = 0, covered = 0;

	for (int i = 0; i < story->nr; i++) {
		const struct action *a = &story->actions[i];

		if (a->file != no || !has_begun(a))
			continue;
		if (a->act == COVER && has_ended(a))
			covered = a->begin;
		else if (a->act != COVER && a->act != UNLINK)
			last = !has_ended(a) ? UINT64_MAX : a->end > last ? a->end : last;
	}
	return !f->nr_pending && covered > last;
}

static void foresee(struct file *f, int no)
{
	uint64_t synced, dir_synced;
	long size;

	free(f->sure);
	free(f->stamp);
	*f = (struct file){ .sure = calloc(1, STORY_FILE_MAX),
			    .stamp = malloc(STORY_FILE_MAX * sizeof(*f->stamp)) };
	memset(f->stamp, -1, STORY_FILE_MAX * sizeof(*f->stamp));
	find_syncs(no, &synced, &dir_synced);
	f->synced = synced;
	for (int i = 0; i < story->nr; i++) {
		const struct action *a = &story->actions[i];

		if (a->file != no || !has_begun(a))
			continue;
		if (is_write(a) || a->act == TRUNCATE) {
			if (is_before(a, synced) || (a->synced && is_sure(a)))
				apply(f, i, &f->sure_size, true);
			else
				f->pending[f->nr_pending++] = i;
		}
		f->named |= a->act == CREATE && (is_before(a, synced) || is_before(a, dir_synced));
		f->named |= is_write(a) && a->synced && is_sure(a);
		f->going |= a->act == RENAME || a->act == UNLINK;
		f->gone |= (a->act == RENAME || a->act == UNLINK) && is_before(a, dir_synced);
	}
	f->lost = getenv("LOST") && !is_covered(f, no);
	size = f->min_size = f->max_size = f->sure_size;
	for (int i = 0; i < f->nr_pending; i++) {
		if (is_write(&story->actions[f->pending[i]]) && story->actions[f->pending[i]].off < 0)
			continue; /* an append that never ended */
		apply(f, f->pending[i], &size, false);
		f->min_size = size < f->min_size ? size : f->min_size;
		f->max_size = size > f->max_size ? size : f->max_size;
	}
}

/* Whether byte @off may be @c, or, @c -1, may be unreadable. */
static bool may_be(const struct file *f, long off, int c)
{
	if (c == f->sure[off])
		return true;
	for (int i = 0; i < f->nr_pending; i++) {
		const struct action *a = &story->actions[f->pending[i]];

		if (f->pending[i] < f->stamp[off])
			continue;
		if (is_write(a) && off >= a->off && off < a->off + a->len &&
		    (c <= 0 || c == byte_of(f->pending[i], off)))
			return true;
		if (!is_write(a) && off >= a->len && c <= 0)
			return true;
	}
	return false;
}

static bool look_at_bytes(const struct file *f, int fd, long size)
{
	static unsigned char buf[STORY_FILE_MAX];
	long step = size, least = f->lost ? 4096 : 16; /* errors take their time */

	for (long off = 0, len; off < size; off += len) {
		/* what a host wrote and lost, unsynced, takes along what nobody wrote */
		bool excused = f->going || f->lost || !f->sure_size;
		ssize_t n;

		len = size - off < step ? size - off : step;
		n = pread(fd, buf + off, (size_t)len, off);
		if (n != len && step > least) { /* in smaller pieces from here on */
			step = step > 65536 ? 65536 : step > 4096 ? 4096 : step > 512 ? 512 : 16;
			step = step > least ? step : least;
			len = 0;
			continue;
		}
		if (n == len && !memcmp(buf + off, f->sure + off, (size_t)len))
			continue;
		for (long i = off; i < off + len; i++) {
			excused |= n != len && may_be(f, i, -1);
			if (n == len && !may_be(f, i, buf[i]) && !(f->going && !buf[i]))
				return wrong("wrong byte at %ld of %ld: %d, not %d (%ld synced)", i, size,
					     buf[i], f->sure[i], f->sure_size);
		}
		if (n != len && !excused)
			return wrong("cannot read [%ld, %ld) of %ld (%ld synced): %s", off, off + len, size,
				     f->sure_size, strerror(errno));
		if (off % 65536 + len >= 65536)
			step = 65536;
	}
	return true;
}

/* Write and sync, and see that it is there, and nothing else is changed. */
static bool go_on(struct file *f, const char *path, long size)
{
	static const struct { long off, len; } more[] = { { 100, 50 }, { 0, 3000 } };
	char buf[3000];
	int fd = open(path, O_RDWR);

	for (int i = 0; i < 2; i++) {
		long off = i ? size + more[i].off : more[i].off;

		pattern_fill(buf, (size_t)more[i].len, (uint64_t)off, 65535);
		if (fd < 0 || pwrite(fd, buf, (size_t)more[i].len, off) != more[i].len)
			return wrong("cannot be written on: %s", strerror(errno));
		memcpy(f->sure + off, buf, (size_t)more[i].len);
		for (long j = off; j < off + more[i].len; j++)
			f->stamp[j] = STORY_MAX;
		f->sure_size = f->sure_size > off + more[i].len ? f->sure_size : off + more[i].len;
	}
	if (fsync(fd) || close(fd))
		return wrong("cannot be synced: %s", strerror(errno));
	fd = open(path, O_RDONLY);
	if (fd < 0 || lseek(fd, 0, SEEK_END) != (size + 3000 > 150 ? size + 3000 : 150) ||
	    !look_at_bytes(f, fd, size + 3000)) {
		char was[200];

		snprintf(was, sizeof(was), "%s", why);
		return wrong("after it was written on from %ld: %s", size, was);
	}
	close(fd);
	return true;
}

/* File @no as it is at @path. */
static bool scan_container(struct file *f, int no, const char *path, bool goes_on)
{
	int fd;
	long size;
	bool ok = true;

	*why = '\0';
	foresee(f, no);
	fd = open(path, O_RDONLY);
	size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	if (size < 0 && errno == ENOENT)
		return f->named && !f->going ? wrong("is gone") : true;
	if (size < 0 && errno == EIO && (!f->synced || f->lost))
		ok = true; /* its name was synced, nothing of what that names: an error is what is promised */
	else if (size < 0)
		ok = f->named && !f->going ?
			     wrong("cannot be opened (%ld synced): %s", f->sure_size, strerror(errno)) :
			     true;
	else if ((size < f->min_size && !f->going) || size > f->max_size)
		ok = wrong("%ld bytes, not %ld to %ld (%ld synced)", size, f->min_size, f->max_size,
			   f->sure_size);
	else
		ok = look_at_bytes(f, fd, size);
	if (fd >= 0)
		close(fd);
	return ok && size >= 0 && goes_on && !f->going ? go_on(f, path, size) : ok;
}

static bool is_file(struct file *f, int no, const char *path)
{
	int fd = open(path, O_RDONLY);
	long size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	bool ok;

	foresee(f, no);
	f->going = false; /* it has come to this name */
	ok = size < 0		  ? wrong("cannot be opened: %s", strerror(errno)) :
	     size != f->sure_size ? wrong("%ld bytes, not %ld", size, f->sure_size) :
				    look_at_bytes(f, fd, size);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* The name that files are renamed to: one of them, whole, and none that was replaced for good. */
static bool look_at_replaced(struct file *f, const char *path)
{
	uint64_t synced, dir_synced;
	int first = 0;
	bool sure = false;

	find_syncs(-1, &synced, &dir_synced);
	for (int i = 0; i < story->nr; i++)
		if (story->actions[i].act == RENAME && is_before(&story->actions[i], dir_synced)) {
			first = i;
			sure = true;
		}
	if (access(path, F_OK))
		return sure ? wrong("is gone") : true;
	for (int i = first; i < story->nr; i++)
		if (story->actions[i].act == RENAME && has_begun(&story->actions[i]) &&
		    is_file(f, story->actions[i].file, path))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	static struct file f;
	const struct failure *fail;
	int last = -1, nr_bad = 0;
	char path[4096];

	if (argc < 4)
		die("usage: look DIR STORY FAILURE [goes-on]");
	dir = argv[1];
	story = story_open(argv[2], false);
	fail = &story->failures[atoi(argv[3])];
	at = fail->at;
	find_sure();
	for (int i = 0; i < story->nr; i++)
		if (has_begun(&story->actions[i]) && story->actions[i].file > last)
			last = story->actions[i].file;
	for (int no = 0; no <= last + 1; no++) {
		bool ok;

		snprintf(path, sizeof(path), no <= last ? "%s/f%d" : "%s/c", dir, no);
		ok = no <= last ? scan_container(&f, no, path, argc > 4) : look_at_replaced(&f, path);
		if (!ok && nr_bad++ < 5)
			fprintf(stderr, "%s: %s\n", path, why);
	}
	printf("failure %s at %llu, request %d, %d of %d pending kept, files to f%d: %d bad\n", argv[3],
	       (unsigned long long)at, fail->requests, fail->nr_kept, fail->nr_pending, last, nr_bad);
	return nr_bad > 0;
}
