/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading, claiming and marking stubs. The stub lives in the namespace that the program sees, so it is reached through
 * descriptors, not through a store.
 */
#include "stub.h"

#include "../index/record.h"
#include "bytes.h"
#include "crc32c.h"
#include "log.h"
#include "own.h"
#include "store.h"
#include "sys.h"

#include <stdio.h>

#define LOCK_CLAIM 0
#define LOCK_IN_USE 2

#define COMPAT_CLOCKS 1
#define SYNCED_OFF (PLFS_BODY_OFF - SYNCED_LEN)
#define SYNCED_LEN 8
#define INCOMPAT_IN_BODY 1
#define INCOMPAT_MOVING 2
#define INCOMPAT_KNOWN (INCOMPAT_IN_BODY | INCOMPAT_MOVING)

static const char sentence[] =
	"\nThis file is a stub: its data lies in the directory .plfs at the top of this tree, or behind this header.\n"
	"Read it with libplfs.so preloaded, or make it a plain file with:  plfs flatten FILE\n";

_Static_assert(STUB_HEADER_LEN + sizeof(sentence) - 1 <= STUB_CUT_OFF, "the sentence leaves the word its place");

void stub_encode(const struct stub *stub, void *buf)
{
	uint8_t *p = buf;

	memset(p, 0, STUB_HEADER_LEN);
	memcpy(p, STUB_MAGIC, 8);
	put_le32(p + 8, STUB_VERSION);
	put_le32(p + 16, stub->clocks ? COMPAT_CLOCKS : 0);
	put_le32(p + 20, (stub->in_body ? INCOMPAT_IN_BODY : 0) | (stub->moving ? INCOMPAT_MOVING : 0));
	memcpy(p + 24, stub->id, STUB_ID_LEN);
	put_le64(p + 40, stub->generation_ns);
	put_le64(p + 48, stub->created_ns);
	put_le64(p + 56, stub->number);
	put_le32(p + 12, crc32c(0, p, STUB_HEADER_LEN));
}

static void encode_cut(uint8_t *p, uint64_t size, uint64_t stamp_ns)
{
	memset(p, 0, STUB_CUT_LEN);
	if (!stamp_ns)
		return;
	put_le64(p, size);
	put_le64(p + 8, stamp_ns);
	put_le32(p + 16, crc32c(0, p, STUB_CUT_LEN));
}

/* A word that was torn was not followed by anything yet, or was being cleared. */
static void decode_cut(struct stub *stub, const uint8_t *p)
{
	uint8_t again[STUB_CUT_LEN];

	encode_cut(again, get_le64(p), get_le64(p + 8));
	if (memcmp(again, p, STUB_CUT_LEN))
		return;
	stub->cut_size = get_le64(p);
	stub->cut_ns = get_le64(p + 8);
}

int stub_decode(struct stub *stub, const void *buf, size_t len)
{
	static const uint8_t zeros[STUB_HEADER_LEN];
	bool has_cut = len >= STUB_READ_LEN;
	uint8_t copy[STUB_HEADER_LEN];

	memset(stub, 0, sizeof(*stub));
	len = len < STUB_HEADER_LEN ? len : STUB_HEADER_LEN;
	if (!memcmp(buf, zeros, len))
		return 0;
	if (len < STUB_HEADER_LEN)
		return -EIO;
	memcpy(copy, buf, sizeof(copy));
	if (memcmp(copy, STUB_MAGIC, 8))
		return -EIO;
	if (get_le32(copy + 8) > STUB_VERSION || get_le32(copy + 20) & ~INCOMPAT_KNOWN)
		return -EPROTONOSUPPORT;
	put_le32(copy + 12, 0);
	if (crc32c(0, copy, sizeof(copy)) != get_le32((const uint8_t *)buf + 12) || get_le64(copy + 40) >= INDEX_STAMP_MAX)
		return -EIO;
	stub->clocks = get_le32(copy + 16) & COMPAT_CLOCKS;
	stub->in_body = get_le32(copy + 20) & INCOMPAT_IN_BODY;
	stub->moving = get_le32(copy + 20) & INCOMPAT_MOVING;
	stub->has_container = memcmp(copy + 24, zeros, STUB_ID_LEN);
	memcpy(stub->id, copy + 24, STUB_ID_LEN);
	stub->generation_ns = get_le64(copy + 40);
	stub->created_ns = get_le64(copy + 48);
	stub->number = get_le64(copy + 56);
	if (has_cut && stub->has_container)
		decode_cut(stub, (const uint8_t *)buf + STUB_CUT_OFF);
	return 0;
}

const char *stub_name(int fd, char *buf, size_t len)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = sys.readlinkat(AT_FDCWD, link, buf, len - 1);
	snprintf(buf + (n > 0 ? n : 0), n > 0 ? 1 : len, "%s", n > 0 ? "" : "(a stub)");
	return buf;
}

/* A header being rewritten by another process may be seen half old, half new: read again before believing it. */
static int read_header(int fd, struct stub *stub, bool *damaged)
{
	uint8_t buf[STUB_READ_LEN];
	int ret = -EIO;

	for (int tries = 0; tries < 5 && ret == -EIO; tries++) {
		struct timespec wait = { .tv_nsec = tries * 100000 };
		ssize_t n;

		if (tries)
			own_nanosleep(&wait, NULL);
		store_posix_forget(fd, PLFS_BODY_OFF);
		n = own_pread_all(fd, buf, sizeof(buf), 0);
		*damaged = n >= 0;
		ret = n < 0 ? (int)n : stub_decode(stub, buf, (size_t)n);
	}
	return ret;
}

int stub_look(int fd, struct stub *stub)
{
	bool damaged;

	return read_header(fd, stub, &damaged);
}

int stub_read(int fd, struct stub *stub)
{
	char name[PATH_MAX];
	bool damaged = false;
	int ret = read_header(fd, stub, &damaged);

	if (ret == -EIO && !damaged)
		log_error("%s: the header cannot be read: %s", stub_name(fd, name, sizeof(name)), strerror(-ret));
	if (ret == -EIO && damaged)
		log_error("%s: damaged stub: its header is neither whole nor empty; "
			  "the data in %s is untouched", stub_name(fd, name, sizeof(name)), PLFS_DIR_NAME);
	if (ret == -EPROTONOSUPPORT)
		log_error("%s: written by a newer libplfs (format version above %d); use that one to read it",
			  stub_name(fd, name, sizeof(name)), STUB_VERSION);
	return ret;
}

/*
 * A lock owned by the process, not by the description, which a parent and its child share: who is killed must not
 * leave it to the other. But it goes when another thread closes any descriptor of the file; so after anything that
 * takes long it is taken again, and the header is looked at again.
 */
static int lock_header_strictly(int fd, short type)
{
	struct flock lk = { .l_type = type, .l_whence = SEEK_SET, .l_start = LOCK_CLAIM, .l_len = 1 };
	int ret;

	/* EDEADLK: the kernel sees a circle with locks of the program, which holds this one for a moment only. */
	for (int tries = 0; (ret = store_posix_lock(fd, F_SETLKW, &lk)) < 0 && errno == EDEADLK && tries < 1000; tries++) {
		struct timespec wait = { .tv_nsec = 1000000 };

		own_nanosleep(&wait, NULL);
	}
	return ret < 0 ? -errno : 0;
}

static int lock_header(int fd, short type)
{
	int ret = lock_header_strictly(fd, type);

	/* A file system without locks: the program was told so by whoever mounted it. */
	return ret == -ENOLCK || ret == -ENOSYS || ret == -EINVAL || ret == -EOPNOTSUPP ? 0 : ret;
}

/* Have the lock still, or again. @now: what the header says. */
static int relock_header(int fd, struct stub *now)
{
	int ret = lock_header(fd, F_WRLCK);

	return ret ? ret : stub_read(fd, now);
}

static int write_header(int fd, const struct stub *stub, bool with_sentence)
{
	uint8_t buf[PLFS_BODY_OFF] = { 0 };
	size_t len = with_sentence ? SYNCED_OFF : STUB_HEADER_LEN; /* the word at the end is set by others, without a lock */
	ssize_t n;

	stub_encode(stub, buf);
	memcpy(buf + STUB_HEADER_LEN, sentence, sizeof(sentence) - 1);
	n = own_pwrite_all(fd, buf, len, 0);
	return n < 0 ? (int)n : n < (ssize_t)len ? -ENOSPC : 0;
}

int stub_claim(int fd, struct stub *stub, uint64_t now_ns, ino_t number, int (*make)(void *arg, const uint8_t *id),
	       void *arg)
{
	struct stub now;
	int ret = lock_header(fd, F_WRLCK);

	if (ret)
		return ret;
	ret = stub_read(fd, stub);
	stub->moving = false; /* we have the lock: he who was at it died */
	if (!ret && !stub->has_container && !stub->in_body) {
		stub->has_container = true;
		stub->created_ns = now_ns;
		stub->number = number;
		if (sys.getrandom(stub->id, STUB_ID_LEN, 0) != STUB_ID_LEN)
			ret = -EIO;
		if (!ret)
			ret = make(arg, stub->id);
		if (!ret)
			ret = relock_header(fd, &now);
		if (!ret && (now.has_container || now.in_body))
			*stub = now;
		else if (!ret)
			ret = write_header(fd, stub, true);
		if (ret)
			stub->has_container = false;
	}
	lock_header(fd, F_UNLCK);
	return ret;
}

static const char synced_word[SYNCED_LEN] = "PLFSSYNC";

bool stub_is_synced(int fd)
{
	char word[SYNCED_LEN];

	return own_pread_all(fd, word, SYNCED_LEN, SYNCED_OFF) == SYNCED_LEN && !memcmp(word, synced_word, SYNCED_LEN);
}

int stub_set_synced(int fd, bool synced)
{
	static const char none[SYNCED_LEN];
	ssize_t n = own_pwrite_all(fd, synced ? synced_word : none, SYNCED_LEN, SYNCED_OFF);

	return n < 0 ? (int)n : n < SYNCED_LEN ? -ENOSPC : 0;
}

int stub_mark_synced(int fd)
{
	int ret = lock_header(fd, F_WRLCK);

	if (ret)
		return ret;
	ret = stub_set_synced(fd, true);
	lock_header(fd, F_UNLCK);
	return ret;
}

/* Raise the generation to @generation_ns, and add @clocks. */
static int change_header(int fd, struct stub *stub, uint64_t generation_ns, bool clocks)
{
	int ret = lock_header(fd, F_WRLCK);

	if (ret)
		return ret;
	ret = stub_read(fd, stub);
	if (!ret && stub->has_container && (stub->generation_ns < generation_ns || stub->clocks < clocks)) {
		stub->generation_ns = max_u64(stub->generation_ns, generation_ns);
		stub->clocks |= clocks;
		ret = write_header(fd, stub, false);
	}
	lock_header(fd, F_UNLCK);
	return ret;
}

int stub_set_generation(int fd, struct stub *stub, uint64_t generation_ns)
{
	return change_header(fd, stub, generation_ns, false);
}

int stub_set_cut(int fd, struct stub *stub, uint64_t size, uint64_t stamp_ns)
{
	uint8_t word[STUB_CUT_LEN];
	ssize_t n;

	encode_cut(word, size, stamp_ns);
	n = own_pwrite_all(fd, word, sizeof(word), STUB_CUT_OFF);
	if (n < (ssize_t)sizeof(word))
		return n < 0 ? (int)n : -ENOSPC;
	stub->cut_size = stamp_ns ? size : 0;
	stub->cut_ns = stamp_ns;
	return 0;
}

int stub_set_clocks(int fd, struct stub *stub) { return change_header(fd, stub, 0, true); }

int stub_set_number(int fd, const struct stub *stub, ino_t number)
{
	struct stub now;
	int ret = lock_header(fd, F_WRLCK);

	if (ret)
		return ret;
	ret = stub_read(fd, &now);
	if (!ret && (!now.has_container || memcmp(now.id, stub->id, STUB_ID_LEN)))
		ret = -EAGAIN;
	if (!ret) {
		now.number = number;
		ret = write_header(fd, &now, false);
	}
	lock_header(fd, F_UNLCK);
	return ret;
}

int stub_begin_append(int fd, struct stub *stub)
{
	int ret = lock_header_strictly(fd, F_WRLCK);

	if (ret)
		return ret;
	ret = stub_read(fd, stub);
	if (ret)
		stub_end_append(fd);
	return ret;
}

void stub_end_append(int fd)
{
	lock_header(fd, F_UNLCK);
}

/* Others may write meanwhile: the stub must not get shorter. */
int stub_fill_header(int fd, const struct stat *st)
{
	ssize_t n = st->st_size < PLFS_BODY_OFF ? own_pwrite_all(fd, "", 1, PLFS_BODY_OFF - 1) : 1;

	return n == 1 ? 0 : n < 0 ? (int)n : -ENOSPC;
}

int stub_settle(int fd, struct stub *stub)
{
	bool writable = true;
	int ret = stub_read(fd, stub);

	if (ret || !stub->moving)
		return ret;
	ret = lock_header(fd, F_WRLCK);
	if (ret == -EBADF) {
		writable = false;
		ret = lock_header(fd, F_RDLCK);
	}
	if (ret)
		return ret;
	ret = stub_read(fd, stub);
	if (!ret && stub->moving) {
		stub->moving = false;
		ret = writable ? write_header(fd, stub, false) : 0;
	}
	lock_header(fd, F_UNLCK);
	return ret;
}

int stub_begin_move(int fd, struct stub *stub)
{
	int ret = lock_header(fd, F_WRLCK);

	if (ret)
		return ret;
	ret = stub_read(fd, stub);
	if (!ret && !stub->in_body) {
		stub->moving = true;
		ret = write_header(fd, stub, !stub->has_container);
		if (!ret)
			return 0;
	}
	lock_header(fd, F_UNLCK);
	return ret;
}

int stub_end_move(int fd, struct stub *stub, bool in_body)
{
	struct stub now;
	int ret = relock_header(fd, &now);

	if (!ret && (!now.moving || now.generation_ns != stub->generation_ns))
		ret = in_body ? -EAGAIN : 0;
	stub->moving = false;
	if (ret || !now.moving)
		goto out;
	stub->in_body = in_body;
	if (in_body) {
		stub->has_container = false;
		memset(stub->id, 0, STUB_ID_LEN);
	}
	ret = write_header(fd, stub, false);
out:
	lock_header(fd, F_UNLCK);
	return ret;
}

/* 0 or -errno; where locks do not work: 0. */
static int lock_in_use(int fd, int cmd, short type)
{
	struct flock lk = { .l_type = type, .l_whence = SEEK_SET, .l_start = LOCK_IN_USE, .l_len = 1 };
	int ret;

	do {
		ret = cmd == F_OFD_SETLKW ? store_posix_lock(fd, cmd, &lk) : own_fcntl(fd, cmd, &lk);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 && (errno == EAGAIN || errno == EACCES) ? -EBUSY : 0;
}

void stub_mark_in_use(int fd)
{
	lock_in_use(fd, F_OFD_SETLKW, F_RDLCK);
}

void stub_unmark_in_use(int fd)
{
	lock_in_use(fd, F_OFD_SETLK, F_UNLCK);
}

/* What others hold: F_RDLCK, F_WRLCK or F_UNLCK; @unknown where locks do not work. */
static short others(int fd, short unknown)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_IN_USE, .l_len = 1 };

	return sys.fcntl(fd, F_OFD_GETLK, &lk) ? unknown : lk.l_type;
}

bool stub_in_use(int fd)
{
	return others(fd, F_UNLCK) != F_UNLCK;
}

bool stub_is_alone(int fd)
{
	return others(fd, F_RDLCK) == F_UNLCK;
}

int stub_wait_flattened(int fd)
{
	short type = others(fd, F_UNLCK);

	if (type != F_WRLCK)
		return type == F_RDLCK ? -EBUSY : 0;
	stub_mark_in_use(fd);
	stub_unmark_in_use(fd);
	return -EAGAIN;
}

int stub_lock_out(int fd)
{
	int ret = lock_in_use(fd, F_OFD_SETLK, F_WRLCK);

	return ret ? stub_wait_flattened(fd) ? -EAGAIN : ret : 0;
}

int stub_lock_alone(int fd)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_IN_USE, .l_len = 1 };
	int ret;

	do {
		ret = own_fcntl(fd, F_OFD_SETLK, &lk);
	} while (ret < 0 && errno == EINTR);
	return !ret ? 0 : errno == EAGAIN || errno == EACCES ? -EBUSY : -EOPNOTSUPP;
}

int stub_reopen(int fd, int flags)
{
	char link[64];
	int ret;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ret = own_open(link, flags | O_CLOEXEC);
	return sys_fd_hide(ret < 0 ? -errno : ret);
}
