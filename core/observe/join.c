/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The directory of parts, the lock, and the end of the stats file.
 */
#include "core/observe/join.h"

#include "core/backend/host.h"
#include "core/base/alloc.h"
#include "core/base/io.h"
#include "core/observe/lines.h"
#include "core/store/dirs.h"

#include <stdio.h>

#define WAIT_MS 10000
#define PAUSE_MS 10
#define STALE_S 60

struct join {
	int fd;		  /* of the stats file */
	off_t end;	  /* of it */
	const char *only; /* the host whose parts are taken; NULL: all */
	bool counting;	  /* who lives; nothing is taken */
	int error;
	struct joined *j;
};

/* ---- one part ---- */

static bool is_locked(int fd)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return !sys.fcntl(fd, F_OFD_GETLK, &lk) && lk.l_type != F_UNLCK;
}

static bool is_stale(int fd)
{
	struct timespec now;
	struct stat st;

	return !sys.fstat(fd, &st) && !sys.clock_gettime(CLOCK_REALTIME, &now) &&
	       now.tv_sec - st.st_mtim.tv_sec > STALE_S;
}

/* The whole part, mem_alloc()ed, and its length; NULL: it cannot be read. */
static uint8_t *read_part(int fd, size_t *len)
{
	struct part_head head;
	uint8_t *buf;
	ssize_t n;

	if (io_pread_all(fd, &head, sizeof(head), 0) != sizeof(head) || head.nr_slots > PART_SLOTS)
		return NULL;
	*len = (head.nr_slots + 1) * (size_t)PART_SLOT_LEN;
	buf = mem_alloc(*len);
	n = buf ? io_pread_all(fd, buf, *len, 0) : -1;
	if (n < 0) {
		mem_free(buf);
		return NULL;
	}
	*len = (size_t)n;
	return buf;
}

/* Bytes behind the end of the file; all of them, or none. */
static int append(struct join *jn, const char *p, size_t len)
{
	ssize_t n = io_pwrite_all(jn->fd, p, len, (uint64_t)jn->end);

	if (n == (ssize_t)len) {
		jn->end += n;
		return 0;
	}
	sys.ftruncate(jn->fd, jn->end);
	return n < 0 ? (int)n : -ENOSPC;
}

static int take(struct join *jn, int fd, bool locked)
{
	const struct part_head *head;
	struct text t = { 0 };
	size_t len = 0;
	uint8_t *buf = read_part(fd, &len);
	int ret = buf ? part_decode(buf, len, &head) : -EBADMSG;

	if (!ret && !head->ended && locked) {
		jn->j->alive++;
		ret = -EAGAIN;
	} else if (!ret && !jn->counting) {
		lines_add(&t, head, head->ended);
		ret = t.failed ? -ENOMEM : append(jn, t.p, t.len);
		jn->error = jn->error ? jn->error : ret;
		jn->j->parts += !ret;
	} else if (ret == -EPROTONOSUPPORT) {
		jn->j->newer++;
	} else if (ret == -EBADMSG && locked) {
		jn->j->alive++; /* it is being made */
	} else if (ret) {
		jn->j->damaged += is_stale(fd);
	}
	mem_free(t.p);
	mem_free(buf);
	return ret;
}

static int each_part(void *arg, int dir, const char *name, unsigned char type)
{
	struct join *jn = arg;
	struct stat st;
	int fd, ret;

	(void)type;
	if (*name < '0' || *name > '9')
		return 0;
	fd = io_openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	fd = sys_fd_hide(fd < 0 ? -errno : fd);
	if (fd < 0)
		return 0;
	ret = sys.fstat(fd, &st) || !S_ISREG(st.st_mode) ? -EBADMSG : take(jn, fd, is_locked(fd));
	sys_fd_close(&fd);
	if (!ret && !jn->counting)
		sys.unlinkat(dir, name, 0);
	return 0;
}

static int each_host(void *arg, int dir, const char *name, unsigned char type)
{
	struct join *jn = arg;
	int fd;

	(void)type;
	if (jn->only && strcmp(name, jn->only))
		return 0;
	fd = sys_fd_hide(dirs_open(dir, name));
	if (fd < 0)
		return 0;
	dirs_list(fd, each_part, jn);
	sys_fd_close(&fd);
	if (!jn->counting)
		sys.unlinkat(dir, name, AT_REMOVEDIR);
	return 0;
}

/* ---- all of them ---- */

/* A descriptor of the directory of parts; -ENOENT: there are none. */
static int open_parts(const char *file, char *path)
{
	int fd;

	if (snprintf(path, PATH_MAX, "%s" PART_DIR, file) >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = io_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return sys_fd_hide(fd < 0 ? -errno : fd);
}

static int visit(struct join *jn, int parts)
{
	if (jn->only)
		return each_host(jn, parts, jn->only, 0);
	return dirs_list(parts, each_host, jn);
}

/* 0; -EBUSY: somebody else has it; -errno. */
static int lock_file(int fd, bool wait)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000 };

	for (int ms = 0; sys.fcntl(fd, F_OFD_SETLK, &lk); ms += PAUSE_MS) {
		if (errno != EAGAIN && errno != EACCES)
			return -errno;
		if (!wait || ms >= WAIT_MS)
			return -EBUSY;
		io_nanosleep(&pause, NULL);
	}
	return 0;
}

/* A line that a killed process, or a full disk, has cut gets its end, so that the next ones are whole. */
static int find_end(struct join *jn)
{
	struct stat st;
	char last;

	if (sys.fstat(jn->fd, &st))
		return -errno;
	jn->end = st.st_size;
	if (!jn->end || io_pread_all(jn->fd, &last, 1, (uint64_t)jn->end - 1) != 1 || last == '\n')
		return 0;
	return append(jn, "\n", 1);
}

static int join_locked(struct join *jn, int parts, const char *file)
{
	int ret;

	jn->fd = io_open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
	jn->fd = sys_fd_hide(jn->fd < 0 ? -errno : jn->fd);
	if (jn->fd < 0)
		return jn->fd;
	ret = lock_file(jn->fd, !jn->only);
	if (!ret)
		ret = find_end(jn);
	if (!ret)
		ret = visit(jn, parts);
	if (!ret)
		ret = jn->error;
	sys_fd_close(&jn->fd); /* with the lock */
	return ret;
}

int join_parts(const char *file, bool all, struct joined *j)
{
	int saved ERRNO_KEPT = errno;
	struct join jn = { .only = all ? NULL : host_name(), .j = j };
	char path[PATH_MAX];
	int parts, ret = 0;
	unsigned before;

	memset(j, 0, sizeof(*j));
	do {
		unsigned taken = j->parts;

		before = taken;
		parts = open_parts(file, path);
		if (parts < 0)
			return parts == -ENOENT ? 0 : parts;
		jn.counting = true;
		memset(j, 0, sizeof(*j));
		j->parts = taken;
		if (!all)
			visit(&jn, parts);
		if (!all && j->alive) {
			sys_fd_close(&parts);
			return 0;
		}
		jn.counting = false;
		memset(j, 0, sizeof(*j));
		j->parts = taken;
		ret = join_locked(&jn, parts, file);
		sys_fd_close(&parts);
		sys.rmdir(path);
	} while (!ret && j->parts != before);
	return ret;
}
