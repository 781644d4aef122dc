/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk DIR IMAGE STORY FAILURES GAP SEED DISKS: disks whose power fails. DIR/disk1, DIR/disk2, ..., in a FUSE
 * file system of their own, are files to lay loop devices on. What is written there is in the cache of the
 * disk, and in its part of IMAGE after the next flush of that disk, which is an fsync() here. Before requests
 * chosen at random, each GAP or so, IMAGE.0, IMAGE.1, ... are made: what the disks have if the power fails at
 * that moment, all that was flushed and any part of the cache of each, by chances of its own. When there are
 * FAILURES of them the story has come to its end; the disks go on until they are unmounted.
 *
 * The kernel's protocol is spoken as it is, <linux/fuse.h>: a root directory, and the files in it.
 */
#define _GNU_SOURCE
#include "story.h"

#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/uio.h>

#define ROOT FUSE_ROOT_ID
#define DISK1 2 /* the others follow */
#define DISKS_MAX 8
#define WRITE_MAX (1 << 20)
#define SECTOR 4096 /* is written whole: the superblock of ext4, for one, depends on it */
#define FOR_EVER 1000000

struct pending {
	uint64_t off;
	uint32_t len;
	unsigned disk; /* from 0 on */
	unsigned char *data;
};

static int fuse;
static off_t size;   /* of the image */
static uint64_t disk_len;
static unsigned nr_disks;
static unsigned char *now, *flushed; /* with and without what is pending */
static int image;
static const char *image_path;
static struct pending *pending;
static int nr_pending, pending_cap, nr_requests, next_failure, failures, gap;
static struct story *story;
static uint64_t state;

static uint64_t rnd(uint64_t below)
{
	state = mix64(state);
	return (state >> 8) % below;
}

static void reply(const struct fuse_in_header *in, int error, const void *data, size_t len)
{
	struct fuse_out_header out = { .len = (uint32_t)(sizeof(out) + len),
				       .error = error,
				       .unique = in->unique };
	struct iovec iov[] = { { &out, sizeof(out) }, { (void *)data, len } };

	if (writev(fuse, iov, 2) < 0 && errno != ENOENT)
		die("fuse: reply to %u", in->opcode);
}

static struct fuse_attr attr_of(uint64_t node)
{
	if (node == ROOT)
		return (struct fuse_attr){ .ino = node, .mode = S_IFDIR | 0700, .nlink = 1, .blksize = 4096 };
	return (struct fuse_attr){ .ino = node,
				   .size = disk_len,
				   .blocks = disk_len / 512,
				   .mode = S_IFREG | 0600,
				   .nlink = 1,
				   .blksize = 4096 };
}

static void reply_attr(const struct fuse_in_header *in)
{
	struct fuse_attr_out out = { .attr_valid = FOR_EVER, .attr = attr_of(in->nodeid) };

	reply(in, 0, &out, sizeof(out));
}

static void lookup(const struct fuse_in_header *in, const char *name)
{
	unsigned node = DISK1 - 1 + (!strncmp(name, "disk", 4) ? (unsigned)atoi(name + 4) : 0);
	struct fuse_entry_out out = {
		.nodeid = node, .entry_valid = FOR_EVER, .attr_valid = FOR_EVER, .attr = attr_of(node)
	};

	if (in->nodeid == ROOT && node >= DISK1 && node < DISK1 + nr_disks)
		reply(in, 0, &out, sizeof(out));
	else
		reply(in, -ENOENT, NULL, 0);
}

static void init(const struct fuse_in_header *in, const struct fuse_init_in *arg)
{
	struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION,
				     .minor = FUSE_KERNEL_MINOR_VERSION,
				     .max_readahead = arg->max_readahead,
				     .flags = FUSE_BIG_WRITES | FUSE_MAX_PAGES | FUSE_ASYNC_READ,
				     .max_background = 64,
				     .congestion_threshold = 48,
				     .max_write = WRITE_MAX,
				     .time_gran = 1,
				     .max_pages = WRITE_MAX / 4096 };

	reply(in, 0, &out, sizeof(out));
}

/* ---- the disks; offsets are in the image ---- */

static void write_disk(unsigned disk, uint64_t off, uint32_t len, const void *data)
{
	if (nr_pending == pending_cap) {
		pending_cap = pending_cap ? 2 * pending_cap : 1024;
		pending = realloc(pending, (size_t)pending_cap * sizeof(*pending));
	}
	pending[nr_pending] = (struct pending){ off, len, disk, malloc(len) };
	memcpy(pending[nr_pending++].data, data, len);
	memcpy(now + off, data, len);
}

static void flush_disk(unsigned disk)
{
	int nr_left = 0;

	for (int i = 0; i < nr_pending; i++) {
		if (pending[i].disk != disk) {
			pending[nr_left++] = pending[i];
			continue;
		}
		memcpy(flushed + pending[i].off, pending[i].data, pending[i].len);
		free(pending[i].data);
	}
	nr_pending = nr_left;
}

/* Copy what is not a hole. */
static void copy_image(int to)
{
	for (off_t at = 0, end; (at = lseek(image, at, SEEK_DATA)) >= 0; at = end) {
		end = lseek(image, at, SEEK_HOLE);
		write_all(to, flushed + at, (size_t)(end - at), at, "copy");
	}
	if (errno != ENXIO || ftruncate(to, size))
		die("%s", image_path);
}

/* Of one that was under way any of the sectors. */
static void keep(int to, const struct pending *p, bool torn)
{
	for (uint32_t at = 0, len; at < p->len; at += len) {
		len = torn ? SECTOR - (uint32_t)((p->off + at) % SECTOR) : p->len;
		len = len < p->len - at ? len : p->len - at;
		if (!torn || rnd(2))
			write_all(to, p->data + at, len, (off_t)(p->off + at), "copy");
	}
}

/* Of the cache of @disk nothing, all, what came up to a moment, or any of it by chance. */
static void keep_some(int to, unsigned disk, struct failure *f)
{
	int how = (int)rnd(8), end = nr_pending, parts = how < 3 ? 0 : how < 6 ? 16 : 1 + (int)rnd(15);

	if (how > 3 && how < 6)
		end = (int)rnd((uint64_t)nr_pending + 1);
	for (int i = 0; i < end; i++)
		if (pending[i].disk == disk && (int)rnd(16) < parts) {
			keep(to, &pending[i], how > 4 && (i + 1 == end || !rnd(8)));
			f->nr_kept++;
		}
}

static void fail(void)
{
	struct failure *f = &story->failures[story->nr_failures];
	char path[4096];
	int to;

	snprintf(path, sizeof(path), "%s.%d", image_path, story->nr_failures);
	to = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (to < 0)
		die("%s", path);
	copy_image(to);
	*f = (struct failure){ .requests = nr_requests, .nr_pending = nr_pending };
	for (unsigned i = 0; i < nr_disks; i++)
		keep_some(to, i, f);
	close(to);
	f->at = story_tick(story);
	next_failure = nr_requests + 1 + (int)rnd((uint64_t)gap * 2);
	__atomic_store_n(&story->nr_failures, story->nr_failures + 1, __ATOMIC_RELEASE);
	if (story->nr_failures == failures)
		__atomic_store_n(&story->enough, 1, __ATOMIC_SEQ_CST);
}

/* Until the story begins there is nothing to lose. */
static void count_request(void)
{
	if (!__atomic_load_n(&story->nr, __ATOMIC_RELAXED) || story->nr_failures >= failures)
		return;
	if (++nr_requests > next_failure)
		fail();
}

static void serve(const struct fuse_in_header *in, const void *arg)
{
	const struct fuse_read_in *r = arg;
	const struct fuse_write_in *w = arg;
	unsigned disk = (unsigned)in->nodeid - DISK1;
	uint64_t at, begin = disk * disk_len;

	switch (in->opcode) {
	case FUSE_INIT:
		init(in, arg);
		break;
	case FUSE_LOOKUP:
		lookup(in, arg);
		break;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		reply_attr(in);
		break;
	case FUSE_OPEN:
		reply(in, 0, &(struct fuse_open_out){ .open_flags = FOPEN_KEEP_CACHE },
		      sizeof(struct fuse_open_out));
		break;
	case FUSE_READ:
		at = r->offset < disk_len ? r->offset : disk_len;
		reply(in, 0, now + begin + at,
		      r->size < disk_len - at ? r->size : (size_t)(disk_len - at));
		break;
	case FUSE_WRITE:
		if (w->offset + w->size > disk_len) {
			reply(in, -ENOSPC, NULL, 0);
			break;
		}
		count_request();
		write_disk(disk, begin + w->offset, w->size, w + 1);
		reply(in, 0, &(struct fuse_write_out){ .size = w->size }, sizeof(struct fuse_write_out));
		break;
	case FUSE_FSYNC:
		count_request();
		flush_disk(disk);
		reply(in, 0, NULL, 0);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_DESTROY:
		reply(in, 0, NULL, 0);
		break;
	case FUSE_STATFS:
		reply(in, 0,
		      &(struct fuse_statfs_out){ .st = { .bsize = 4096, .namelen = 255, .frsize = 4096 } },
		      sizeof(struct fuse_statfs_out));
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		/* nothing is discarded */
		reply(in, in->opcode == FUSE_FALLOCATE ? -EOPNOTSUPP : -ENOSYS, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	size_t len = WRITE_MAX + 65536;
	char *buf = malloc(len), options[100];
	struct stat st;

	if (argc != 8)
		die("usage: disk DIR IMAGE STORY FAILURES GAP SEED DISKS");
	image_path = argv[2];
	image = open(image_path, O_RDWR);
	if (image < 0 || fstat(image, &st))
		die("%s", image_path);
	size = st.st_size;
	flushed = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, image, 0);
	now = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, image, 0);
	story = story_open(argv[3], true);
	failures = atoi(argv[4]);
	gap = atoi(argv[5]);
	state = strtoull(argv[6], NULL, 10);
	nr_disks = (unsigned)atoi(argv[7]);
	if (!nr_disks || nr_disks > DISKS_MAX)
		die("disks");
	disk_len = (uint64_t)size / nr_disks;
	if (failures > STORY_FAILURES || flushed == MAP_FAILED || now == MAP_FAILED)
		die("disk");
	next_failure = (int)rnd((uint64_t)gap * 4);
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse < 0)
		die("/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse);
	if (mount("disk", argv[1], "fuse", MS_NOSUID | MS_NODEV, options))
		die("mount %s", argv[1]);
	for (;;) {
		ssize_t n = read(fuse, buf, len);

		if (n < 0 && errno == ENODEV) /* unmounted */
			return 0;
		if (n < 0 && errno != EINTR && errno != ENOENT && errno != EAGAIN)
			die("fuse");
		if (n > 0)
			serve((struct fuse_in_header *)buf, buf + sizeof(struct fuse_in_header));
	}
}
