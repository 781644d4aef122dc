/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making, growing and ending the part of a process; decoding that of another.
 */
#include "core/observe/part.h"

#include "core/backend/host.h"
#include "core/base/guard.h"
#include "core/base/io.h"
#include "core/observe/mapped.h"

#include <stdio.h>

#define GROW 16 /* slots */
#define MAPPED_LEN ((PART_SLOTS + 1) * (size_t)PART_SLOT_LEN)
#define SEQ_MAX 10000
#define TRIES 100

/* A name below the stats file. 0; -ENAMETOOLONG. */
static int name_part(char *path, const char *file, long pid, int seq)
{
	int len = pid < 0 ? snprintf(path, PATH_MAX, "%s" PART_DIR, file) :
		  !pid	  ? snprintf(path, PATH_MAX, "%s" PART_DIR "/%s", file, host_name()) :
			    snprintf(path, PATH_MAX, "%s" PART_DIR "/%s/%ld.%d", file, host_name(), pid, seq);

	return len < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int make_dir(const char *path) { return sys.mkdir(path, 0777) && errno != EEXIST ? -errno : 0; }

static int create(const char *file, uint32_t *seq, char *path)
{
	int fd = -1, ret;

	for (int i = 0; i < SEQ_MAX; i++) {
		ret = name_part(path, file, sys.getpid(), i);
		if (ret)
			return ret;
		fd = io_open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
		*seq = (uint32_t)i;
		if (fd >= 0 || errno != EEXIST)
			break;
	}
	return fd < 0 ? -errno : sys_fd_hide(fd);
}

/* Have the disk's blocks for @slots slots: a store to a mapping cannot report that there are none. */
static int reserve(int fd, uint32_t from, uint32_t slots)
{
	static const char zeros[PART_SLOT_LEN];
	off_t off = from ? (from + 1) * (off_t)PART_SLOT_LEN : 0, end = (slots + 1) * (off_t)PART_SLOT_LEN;

	if (!io_fallocate(fd, 0, off, end - off))
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)
		return -errno;
	for (; off < end; off += PART_SLOT_LEN)
		if (io_pwrite_all(fd, zeros, sizeof(zeros), (uint64_t)off) != sizeof(zeros))
			return -ENOSPC;
	return 0;
}

static void fill_head(struct part_head *head, const struct job *j, uint64_t start_ns, uint32_t seq)
{
	memcpy(head->magic, PART_MAGIC, sizeof(head->magic));
	head->version = PART_VERSION;
	head->slot_len = PART_SLOT_LEN;
	head->start_ns = start_ns;
	head->pid = sys.getpid();
	head->seq = seq;
	head->rank = j->rank;
	head->ranks = j->ranks;
	snprintf(head->host, sizeof(head->host), "%s", host_name());
	memcpy(head->job, j->job, sizeof(head->job));
	memcpy(head->program, j->program, sizeof(head->program));
}

/* A lock that a process has as long as it lives, and its children have not. */
static void lock(int fd)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	sys.fcntl(fd, F_OFD_SETLK,
		  &lk); /* a store without locks: its parts seem to be those of killed processes */
}

static int map_part(struct part *p)
{
	void *map;
	int ret = reserve(p->fd, 0, GROW);

	if (ret)
		return ret;
	map = mapped_shared(p->fd, MAPPED_LEN);
	if (map == MAP_FAILED)
		return -errno;
	p->head = map;
	p->room = GROW;
	return 0;
}

/* Both directories, and the part. A process that ends may remove the directories at any moment. */
static int make_part(const char *file, uint32_t *seq, char *path)
{
	int ret = -ENOENT;

	for (int tries = 0; ret == -ENOENT && tries < TRIES; tries++) {
		ret = 0;
		for (int level = -1; level <= 0 && !ret; level++) {
			ret = name_part(path, file, level, 0);
			if (!ret)
				ret = make_dir(path);
			if (ret == -ENOENT && level < 0) /* then it is another directory that is missing */
				return ret;
		}
		if (!ret)
			ret = create(file, seq, path);
	}
	return ret;
}

int part_open(struct part *p, const char *file, const struct job *j, uint64_t start_ns, char *what)
{
	uint32_t seq = 0;
	int ret = make_part(file, &seq, what);

	p->head = NULL;
	p->room = 0;
	p->fd = ret < 0 ? -1 : ret;
	if (ret < 0)
		return ret;
	lock(p->fd);
	ret = map_part(p);
	if (ret) {
		sys.unlink(what);
		sys_fd_close(&p->fd);
		return ret;
	}
	sys_fd_own(&p->fd);
	fill_head(p->head, j, start_ns, seq);
	part_slot(p)->files = 0;
	return 0;
}

struct counters *part_slot(struct part *p)
{
	struct part_head *head = p->head;
	uint32_t nr = head->nr_slots;
	struct counters *c;

	if (nr == p->room && nr < PART_SLOTS) {
		uint32_t more = p->room + GROW < PART_SLOTS ? p->room + GROW : PART_SLOTS;

		if (!reserve(p->fd, p->room, more))
			p->room = more;
	}
	if (nr >= p->room || part_is_broken(p))
		nr = 0;
	c = (struct counters *)part_counters(head, nr);
	if (nr || !head->nr_slots)
		head->nr_slots++;
	c->files++;
	return c;
}

bool part_is_broken(const struct part *p) { return guard_is_broken(p->head); }

void part_forget(struct part *p)
{
	if (!p->head)
		return;
	guard_remove(p->head);
	sys.munmap(p->head, MAPPED_LEN);
	p->head = NULL;
	sys_fd_close(&p->fd);
}

void part_end(struct part *p)
{
	if (!p->head)
		return;
	__atomic_store_n(&p->head->ended, 1, __ATOMIC_RELEASE);
	p->head = NULL;
	sys_fd_close(&p->fd);
}

int part_decode(const uint8_t *buf, size_t len, const struct part_head **head)
{
	const struct part_head *h = (const void *)buf;

	if (len < PART_SLOT_LEN || memcmp(h->magic, PART_MAGIC, sizeof(h->magic)))
		return -EBADMSG;
	if (h->version != PART_VERSION || h->slot_len != PART_SLOT_LEN)
		return h->version ? -EPROTONOSUPPORT : -EBADMSG;
	if (h->nr_slots > PART_SLOTS || len < (h->nr_slots + 1) * (size_t)PART_SLOT_LEN ||
	    h->host[sizeof(h->host) - 1] || h->job[sizeof(h->job) - 1] || h->program[sizeof(h->program) - 1])
		return -EBADMSG;
	for (uint32_t i = 0; i < h->nr_slots; i++)
		if (part_counters(h, i)->path[COUNTERS_PATH - 1])
			return -EBADMSG;
	*head = h;
	return 0;
}
