/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of together.c on the bytes of one file, and what the model makes of them. A change is first
 * planned in the model; while the call goes on, others may read the file and find the old bytes or the new
 * ones. If the process is killed meanwhile, the next one that can read the file finds out what became of it,
 * and all others must find the same.
 */
#define _GNU_SOURCE
#include "together.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>

static unsigned char buf[FILE_LEN + 100];

/* ---- what must be there: the file's lock is held ---- */

static off_t least(const struct file *f)
{
	return f->changing != NOBODY && f->next_size < f->size ? f->next_size : f->size;
}

static off_t most(const struct file *f)
{
	return f->changing != NOBODY && f->next_size > f->size ? f->next_size : f->size;
}

/* Of a plain file a reader may find a truncation half done. */
static bool is_size(const struct file *f, off_t size)
{
	if (f->changing != NOBODY && f->cuts && !becomes_plain)
		return size == f->size || size == f->next_size;
	return size >= least(f) && size <= most(f);
}

static bool is_byte(const struct file *f, off_t off, unsigned char byte)
{
	if (byte == f->bytes[off])
		return true;
	return f->changing != NOBODY && byte == f->next[off];
}

static void compare_size(const struct file *f, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		fail("fstat");
	errno = 0;
	if (!is_size(f, st.st_size))
		fail("size %lld, not %lld", (long long)st.st_size, (long long)f->size);
	if (st.st_mode != (S_IFREG | f->mode))
		fail("mode %o, not %o", st.st_mode, f->mode);
}

static size_t read_in_pieces(int fd, size_t len, off_t off)
{
	size_t done = 0, n;

	do {
		size_t first = 1 + rnd(5000);
		struct iovec iov[2] = { { buf + done, first < len - done ? first : len - done } };
		ssize_t ret;

		iov[1] = (struct iovec){ buf + done + iov[0].iov_len, len - done - iov[0].iov_len };
		ret = preadv(fd, iov, 2, off + (off_t)done);
		if (ret < 0)
			fail("preadv");
		n = (size_t)ret;
		done += n;
	} while (n && done < len);
	return done;
}

static size_t read_at_position(int fd, size_t len, off_t off)
{
	size_t done = 0;
	ssize_t n;

	if (lseek(fd, off, SEEK_SET) != off)
		fail("lseek");
	while (done < len && (n = read(fd, buf + done, len - done)))
		if (n < 0)
			fail("read");
		else
			done += (size_t)n;
	if (lseek(fd, 0, SEEK_CUR) != off + (off_t)done)
		fail("the position after %zu bytes at %lld", done, (long long)off);
	return done;
}

static size_t read_map(const struct file *f, int fd, size_t len, off_t off)
{
	size_t n = off + (off_t)len > f->size ? (size_t)(f->size - off) : len;
	int flags = rnd(20) || locks || !becomes_plain ? MAP_PRIVATE : MAP_SHARED;
	unsigned char *map;

	if (!n)
		return 0;
	map = mmap(NULL, (size_t)off + n, PROT_READ, flags, fd, 0);
	if (map == MAP_FAILED)
		fail("mmap, %s", flags == MAP_SHARED ? "shared" : "private");
	memcpy(buf, map + off, n);
	munmap(map, (size_t)off + n);
	return n;
}

/* A shared position, and the end of a map, are only right while nobody changes the file. */
static size_t read_some(const struct file *f, int fd, size_t len, off_t off)
{
	switch (f->changing == NOBODY ? rnd(8) : 7) {
	case 0: return read_map(f, fd, len, off);
	case 1: case 2: return read_at_position(fd, len, off);
	case 3: case 4: return read_in_pieces(fd, len, off);
	default: return read_all(fd, buf, len, off, what);
	}
}

static void check_bytes(const struct file *f, size_t n, off_t off)
{
	errno = 0;
	for (size_t i = 0; i < n; i++)
		if (!is_byte(f, off + (off_t)i, buf[i]))
			fail("byte %lld is %02x, not %02x (size %lld)", (long long)off + (long long)i, buf[i],
			     f->bytes[off + (off_t)i], (long long)f->size);
}

/* Who changed it was killed: any part of that may be there, and what is there now stays. */
static void settle(struct file *f, int fd)
{
	size_t n = read_all(fd, buf, sizeof(buf), 0, what);

	errno = 0;
	if (!is_size(f, (off_t)n))
		fail("%zu bytes after a kill, not %lld or %lld", n, (long long)f->size,
		     (long long)f->next_size);
	check_bytes(f, n, 0);
	memcpy(f->bytes, buf, n);
	memset(f->bytes + n, 0, FILE_LEN - n);
	f->size = (off_t)n;
	f->changing = NOBODY;
}

void compare(struct file *f, int fd)
{
	off_t off = rnd(2) ? 0 : (off_t)rnd((uint64_t)f->size + 1);
	size_t len = rnd(2) ? FILE_LEN : 1 + rnd(5000), n;
	off_t end;

	if (f->changing == DEAD)
		settle(f, fd);
	off = off < f->size ? off : f->size;
	n = read_some(f, fd, len, off);
	end = off + (off_t)n;
	errno = 0;
	if (n == len ? end > most(f) : n ? !is_size(f, end) : off < least(f))
		fail("%zu bytes at %lld, not %zu (size %lld or %lld)", n, (long long)off, len,
		     (long long)f->size, (long long)(f->changing == NOBODY ? f->size : f->next_size));
	check_bytes(f, n, off);
	compare_size(f, fd);
}

/* Nothing but zeros is in a hole, which may also be shown as data. */
static void seek(const struct file *f, int fd)
{
	off_t off = (off_t)rnd((uint64_t)f->size + 1), data, hole, end = lseek(fd, 0, SEEK_END);

	errno = 0;
	if (!is_size(f, end))
		fail("SEEK_END: %lld, not %lld", (long long)end, (long long)f->size);
	if (f->changing != NOBODY || off == f->size)
		return;
	hole = lseek(fd, off, SEEK_HOLE);
	if (hole < off || hole > f->size)
		fail("SEEK_HOLE: %lld from %lld on", (long long)hole, (long long)off);
	data = lseek(fd, off, SEEK_DATA);
	if (data < 0 && errno == ENXIO)
		data = f->size;
	if (data < off || data > f->size)
		fail("SEEK_DATA: %lld from %lld on", (long long)data, (long long)off);
	for (errno = 0; off < data; off++)
		if (f->bytes[off])
			fail("SEEK_DATA: %lld, but byte %lld is %02x", (long long)data, (long long)off,
			     f->bytes[off]);
}

/* ---- changes ---- */

static bool begin_change(struct file *f)
{
	if (f->changing != NOBODY)
		return false;
	memcpy(f->next, f->bytes, FILE_LEN);
	f->next_size = f->size;
	f->cuts = false;
	__atomic_store_n(&f->changing, me, __ATOMIC_SEQ_CST); /* a kill may come at any moment */
	return true;
}

static void plan_size(struct file *f, off_t size)
{
	memset(f->next + size, 0, (size_t)(FILE_LEN - size));
	f->next_size = size;
}

static void plan_bytes(struct file *f, const void *bytes, size_t len, off_t off)
{
	memcpy(f->next + off, bytes, len);
	if (off + (off_t)len > f->next_size)
		f->next_size = off + (off_t)len;
}

/* Others may look meanwhile. A lock on the file itself would keep them waiting, with the model's lock. */
static bool let_others_look(struct file *f)
{
	if (locks || rnd(3) == 0)
		return false;
	unlock(&f->lock);
	return true;
}

static void end_change(struct file *f, bool others_look)
{
	if (others_look)
		lock(&f->lock);
	memcpy(f->bytes, f->next, FILE_LEN);
	f->size = f->next_size;
	__atomic_store_n(&f->changing, NOBODY, __ATOMIC_SEQ_CST);
}

/* Where a process may write: with "apart" in its part. False: there is no room. */
static bool some_place(const struct file *f, const struct open_file *o, off_t *off, size_t *len)
{
	*len = rnd(8) ? 1 + rnd(3000) : 1 + rnd(90000);
	*off = o->append ? f->size : (off_t)rnd(rnd(3) ? (uint64_t)f->size + 1 : FILE_LEN);
	if (apart && !o->append) {
		off_t part = FILE_LEN / nr_processes, mine = me % nr_processes * part;

		*len = *len < (size_t)part ? *len : (size_t)part;
		*off = mine + (off_t)rnd((uint64_t)part - *len + 1);
	}
	return *off + (off_t)*len <= FILE_LEN;
}

static ssize_t write_somehow(const struct open_file *o, int how, const unsigned char *bytes, size_t len,
			     off_t off)
{
	struct iovec iov[2] = { { (void *)bytes, len / 3 }, { (void *)(bytes + len / 3), len - len / 3 } };

	if (how == 0)
		return o->append ? writev(o->fd, iov, 2) : pwritev(o->fd, iov, 2, off);
	if (how == 1 && lseek(o->fd, off, SEEK_SET) == off)
		return rnd(2) ? write(o->fd, bytes, len) : writev(o->fd, iov, 2);
	return o->append ? write(o->fd, bytes, len) : pwrite(o->fd, bytes, len, off);
}

static void write_some(struct file *f, const struct open_file *o)
{
	int how = (int)rnd(6);
	bool others_look;
	size_t len;
	off_t off;
	ssize_t n;

	if (!some_place(f, o, &off, &len) || !begin_change(f))
		return;
	DOING("%s, way %d", o->append ? "append" : "write", how);
	for (size_t i = 0; i < len; i++)
		buf[i] = (unsigned char)(i % 8 ? buf[i - 1] + 1u : (unsigned)rnd(256));
	plan_bytes(f, buf, len, off);
	others_look = how != 1 && let_others_look(f); /* the position may be that of others too */
	n = write_somehow(o, how, buf, len, off);
	if (n != (ssize_t)len)
		fail("%zd of %zu bytes at %lld", n, len, (long long)off);
	end_change(f, others_look);
}

static void store(struct file *f, const struct open_file *o)
{
	unsigned char *map;
	size_t len;
	off_t off;

	if (!becomes_plain || (locks && o->append) || !o->readable || !some_place(f, o, &off, &len) ||
	    off >= f->size || !begin_change(f))
		return;
	DOING("store through a map");
	len = off + (off_t)len > f->size ? (size_t)(f->size - off) : len;
	memset(buf, (int)rnd(256), len);
	plan_bytes(f, buf, len, off);
	map = mmap(NULL, (size_t)f->size, PROT_READ | PROT_WRITE, MAP_SHARED, o->fd, 0);
	if (map == MAP_FAILED)
		fail("mmap, shared and writable");
	memcpy(map + off, buf, len);
	if (munmap(map, (size_t)f->size))
		fail("munmap");
	end_change(f, false);
}

static off_t some_size(const struct file *f)
{
	return rnd(3) ? (off_t)rnd((uint64_t)f->size + 1) : rnd(2) ? 0 : (off_t)rnd(FILE_LEN);
}

static void resize(struct file *f, int fd)
{
	off_t size = some_size(f);
	bool others_look;

	if (!begin_change(f))
		return;
	DOING("ftruncate");
	plan_size(f, size);
	f->cuts = true;
	others_look = let_others_look(f);
	if (ftruncate(fd, size))
		fail("to %lld", (long long)size);
	end_change(f, others_look);
}

void cut_by_name(struct file *f, const char *path)
{
	off_t size = some_size(f);

	if (!begin_change(f))
		return;
	DOING("truncate");
	plan_size(f, size);
	f->cuts = true;
	if (truncate(path, size))
		fail("%s to %lld", path, (long long)size);
	end_change(f, false);
}

/* What the file system does not have changes nothing. */
static void allocate(struct file *f, const struct open_file *o)
{
	static const int modes[] = { 0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_ZERO_RANGE, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE };
	int mode = modes[rnd(5)];
	size_t len;
	off_t off, end;

	if (!some_place(f, o, &off, &len) || !begin_change(f))
		return;
	DOING("fallocate, mode %x", mode);
	end = off + (off_t)len;
	if (!fallocate(o->fd, mode, off, (off_t)len)) {
		if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
			memset(f->next + off, 0, len);
		if (!(mode & FALLOC_FL_KEEP_SIZE) && end > f->size)
			f->next_size = end;
	} else if (errno != EOPNOTSUPP) {
		fail("%zu bytes at %lld", len, (long long)off);
	}
	end_change(f, false);
}

static void lock_bytes(const struct open_file *o, short type)
{
	struct flock fl = { .l_type = type, .l_whence = SEEK_SET };

	if (locks && fcntl(o->fd, F_SETLKW, &fl))
		fail("fcntl");
}

/* From another file, whose lock is held as well. A part of it may be copied. No call appends. */
static void copy(const struct file *from, const struct open_file *source, struct file *f,
		 const struct open_file *o)
{
	off_t off, to, at = (off_t)rnd((uint64_t)from->size + 1), end = at;
	bool with_position;
	size_t len;
	ssize_t n;

	if (o->append || from->changing != NOBODY || !some_place(f, o, &off, &len))
		return;
	with_position = rnd(2) && lseek(o->fd, off, SEEK_SET) == off;
	len = at + (off_t)len > from->size ? (size_t)(from->size - at) : len;
	if (!len || !begin_change(f))
		return;
	DOING("%s", with_position ? "sendfile" : "copy_file_range");
	plan_bytes(f, from->bytes + at, len, off);
	to = off;
	n = with_position ? sendfile(o->fd, source->fd, &end, len) :
			    copy_file_range(source->fd, &end, o->fd, &to, len, 0);
	to = with_position ? lseek(o->fd, 0, SEEK_CUR) : to;
	if (n <= 0 || end != at + n || to != off + n)
		fail("%zd of %zu bytes at %lld to %lld", n, len, (long long)at, (long long)off);
	/* a kill in between finds the bytes copied, and a size that has them */
	f->next_size = f->size > to ? f->size : to;
	memcpy(f->next + to, f->bytes + to, (size_t)(off + (off_t)len - to));
	end_change(f, false);
}

static void copy_from(const struct open_file *source, const struct open_file *o)
{
	struct file *a = &model->file[source->file], *b = &model->file[o->file];

	lock(a < b ? &a->lock : &b->lock);
	lock(a < b ? &b->lock : &a->lock);
	DOING("lock");
	lock_bytes(source, F_RDLCK);
	lock_bytes(o, F_WRLCK);
	copy(a, source, b, o);
	lock_bytes(o, F_UNLCK);
	lock_bytes(source, F_UNLCK);
	unlock(&a->lock);
	unlock(&b->lock);
}

static void set_mode_and_times(struct file *f, int fd)
{
	struct timespec times[2] = { { 0, UTIME_OMIT }, { 1000000000 + (time_t)rnd(1000000), 123456789 } };
	struct stat st;

	DOING("fchmod, futimens");
	f->mode = rnd(2) ? 0644 : 0640;
	if (fchmod(fd, f->mode) || futimens(fd, times) || fstat(fd, &st))
		fail("failed");
	errno = 0;
	if (f->changing == NOBODY && st.st_mtim.tv_sec != times[1].tv_sec)
		fail("the time is %lld, not %lld", (long long)st.st_mtim.tv_sec, (long long)times[1].tv_sec);
}

static void change(struct file *f, const struct open_file *o)
{
	switch (rnd(60)) {
	case 0: case 1: case 2: case 3: resize(f, o->fd); break;
	case 4: case 5: allocate(f, o); break;
	case 6: if (!rnd(4)) store(f, o); break;
	case 7: if (me < nr_processes) set_mode_and_times(f, o->fd); break;
	default: write_some(f, o);
	}
}

static void look(struct file *f, const struct open_file *o)
{
	if (!rnd(8)) {
		DOING("fsync");
		if (rnd(2) ? fsync(o->fd) : fdatasync(o->fd))
			fail("failed");
	} else if (f->changing != DEAD && !rnd(8)) {
		DOING("lseek");
		seek(f, o->fd);
	} else if (o->readable) {
		DOING("read through an old descriptor");
		compare(f, o->fd);
	}
}

void at_bytes(void)
{
	struct open_file *o = &opened[rnd(NR_FDS)], *other = &opened[rnd(NR_FDS)];
	struct file *f;

	if (o->fd < 0)
		return;
	if (o->writable && other->fd >= 0 && other->readable && other->file != o->file && !rnd(30)) {
		copy_from(other, o);
		return;
	}
	f = &model->file[o->file];
	lock(&f->lock);
	DOING("lock");
	lock_bytes(o, o->writable ? F_WRLCK : F_RDLCK);
	if (o->writable && rnd(2))
		change(f, o);
	else
		look(f, o);
	lock_bytes(o, F_UNLCK);
	unlock(&f->lock);
}
