/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a stub's header is encoded, and reading it. The stub lives in the namespace that the program sees, so
 * it is reached through descriptors, not through a store.
 */
#include "core/backend/stub.h"

#include "core/base/stamp.h"
#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/base/alloc.h"
#include "core/base/msg.h"
#include "core/base/io.h"
#include "core/store/posix.h"
#include "core/base/sys.h"

#include <stdio.h>

#define COMPAT_CLOCKS 1
#define COMPAT_MAKER 2
#define COMPAT_COPIED 4
#define INCOMPAT_IN_BODY 1
#define INCOMPAT_MOVING 2
#define INCOMPAT_PLACED 4
#define INCOMPAT_SPREAD 8
#define INCOMPAT_KNOWN (INCOMPAT_IN_BODY | INCOMPAT_MOVING | INCOMPAT_PLACED | INCOMPAT_SPREAD)

const char stub_sentence[] =
	"\nThis file is a stub: its data lies in the directory .plfs at the top of this tree, or behind this header.\n"
	"Read it with libplfs.so preloaded, or make it a plain file with:  plfs flatten FILE\n";
const size_t stub_sentence_len = sizeof(stub_sentence) - 1;

_Static_assert(STUB_SENTENCE_OFF + sizeof(stub_sentence) - 1 <= STUB_CLAIM_OFF,
	       "the sentence leaves the words their places");

void stub_encode(const struct stub *stub, void *buf)
{
	uint8_t *p = buf;

	memset(p, 0, STUB_HEADER_LEN);
	memcpy(p, STUB_MAGIC, 8);
	put_le32(p + 8, STUB_VERSION);
	put_le32(p + 16, (stub->clocks ? COMPAT_CLOCKS : 0) | (stub->has_maker ? COMPAT_MAKER : 0) |
				 (stub->copied ? COMPAT_COPIED : 0));
	put_le32(p + 20, (stub->in_body ? INCOMPAT_IN_BODY : 0) | (stub->moving ? INCOMPAT_MOVING : 0) |
				 (stub->placed ? INCOMPAT_PLACED : 0) | (stub->spread ? INCOMPAT_SPREAD : 0));
	memcpy(p + 24, stub->id, STUB_ID_LEN);
	put_le64(p + 40, stub->generation_ns);
	put_le64(p + 48, stub->created_ns);
	put_le64(p + 56, stub->number);
	put_le32(p + 64, stub->has_maker ? stub->maker : 0);
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

static void decode_words(struct stub *stub, const uint8_t *p)
{
	stub->explained = !memcmp(p + STUB_SENTENCE_OFF, stub_sentence, stub_sentence_len);
	stub->claim = get_le64(p + STUB_CLAIM_OFF);
	if (stub->has_container)
		decode_cut(stub, p + STUB_CUT_OFF);
}

void stub_claimed_id(uint64_t claim, uint64_t number, uint8_t *id)
{
	put_le64(id, claim);
	put_le64(id + 8, number);
}

int stub_decode(struct stub *stub, const void *buf, size_t len)
{
	bool has_words = len >= STUB_READ_LEN;
	uint8_t copy[STUB_HEADER_LEN];

	memset(stub, 0, sizeof(*stub));
	len = len < STUB_HEADER_LEN ? len : STUB_HEADER_LEN;
	if (is_zero(buf, len)) {
		if (has_words)
			decode_words(stub, buf);
		return 0;
	}
	if (len < STUB_HEADER_LEN)
		return -EIO;
	memcpy(copy, buf, sizeof(copy));
	if (memcmp(copy, STUB_MAGIC, 8))
		return -EIO;
	if (get_le32(copy + 8) > STUB_VERSION || get_le32(copy + 20) & ~INCOMPAT_KNOWN)
		return -EPROTONOSUPPORT;
	put_le32(copy + 12, 0);
	if (crc32c(0, copy, sizeof(copy)) != get_le32((const uint8_t *)buf + 12) ||
	    get_le64(copy + 40) >= STAMP_MAX)
		return -EIO;
	stub->clocks = get_le32(copy + 16) & COMPAT_CLOCKS;
	stub->copied = get_le32(copy + 16) & COMPAT_COPIED;
	stub->has_maker = get_le32(copy + 16) & COMPAT_MAKER;
	stub->maker = stub->has_maker ? get_le32(copy + 64) : 0;
	stub->in_body = get_le32(copy + 20) & INCOMPAT_IN_BODY;
	stub->moving = get_le32(copy + 20) & INCOMPAT_MOVING;
	stub->placed = get_le32(copy + 20) & INCOMPAT_PLACED;
	stub->spread = get_le32(copy + 20) & INCOMPAT_SPREAD;
	stub->has_container = !is_zero(copy + 24, STUB_ID_LEN);
	memcpy(stub->id, copy + 24, STUB_ID_LEN);
	stub->generation_ns = get_le64(copy + 40);
	stub->created_ns = get_le64(copy + 48);
	stub->number = get_le64(copy + 56);
	if (has_words)
		decode_words(stub, buf);
	return 0;
}

/* How many of the bytes at @p, of which @have are there, are those of @want. */
static size_t nr_same(const uint8_t *p, size_t have, const char *want, size_t len)
{
	size_t nr = 0;

	for (size_t i = 0; i < len && i < have; i++)
		nr += p[i] == (uint8_t)want[i];
	return nr;
}

/* The sentence, but for a quarter of it; or its beginning, where the write of a killed process ended. */
static bool has_sentence(const uint8_t *p, size_t len)
{
	size_t have = len > STUB_SENTENCE_OFF ? len - STUB_SENTENCE_OFF : 0;
	size_t want = have < stub_sentence_len ? have : stub_sentence_len - stub_sentence_len / 4;

	/* a file that ends in it is of no more than that, which is a newline perhaps */
	if (have < stub_sentence_len && !is_zero(p, min_size(len, STUB_SENTENCE_OFF)))
		return false;
	return have && nr_same(p + STUB_SENTENCE_OFF, have, stub_sentence, stub_sentence_len) >= want;
}

bool stub_is_blank(const void *head, size_t len)
{
	const uint8_t *p = head;
	size_t end = min_size(len, STUB_SYNCED_OFF), words_end = min_size(len, STUB_READ_LEN);

	return is_zero(p, min_size(len, STUB_CLAIM_OFF)) &&
	       (end <= words_end || is_zero(p + words_end, end - words_end));
}

bool stub_is_one(const void *head, size_t len, bool marked)
{
	const size_t magic_len = sizeof(STUB_MAGIC) - 1, hosts_end = STUB_HOSTS_OFF + STUB_HOSTS_LEN;
	const uint8_t *p = head;
	struct stub stub;

	if (has_sentence(p, len))
		return true;
	if (nr_same(p, len, STUB_MAGIC, magic_len) == magic_len &&
	    (marked || stub_decode(&stub, p, min_size(len, STUB_READ_LEN)) != -EIO))
		return true;
	if (!marked)
		return false;
	if (stub_is_blank(p, len) || nr_same(p, len, STUB_MAGIC, magic_len) > min_size(len, magic_len) / 2)
		return true;
	/* the first sector of the header's page was lost */
	return len >= STUB_SYNCED_OFF && is_zero(p + hosts_end, STUB_SYNCED_OFF - hosts_end);
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

/* Whether another process is writing the header, or has locked it for that. */
static bool is_being_written(int fd)
{
	struct flock lk = { .l_type = F_WRLCK, .l_start = STUB_LOCK_HEADER, .l_len = 1 };

	return !sys.fcntl(fd, F_GETLK, &lk) && lk.l_type == F_WRLCK;
}

#define READ_TRIES 5
#define READ_TRIES_WRITTEN 13 /* 0.4 s in all */
#define READ_TRIES_OLDER 12   /* 0.2 s */

/*
 * A header being rewritten by another process may be seen half old, half new: read again before believing it.
 * A writer on a busy machine, or on another host, may be long at it. It has the header locked until it is
 * whole, or has set the word "claim", and no lock. So the last read found no such word and what the read
 * before had found, and a look before it and one after it have found no lock: else another writer may have
 * come and gone in between.
 */
static int read_header(int fd, struct stub *stub, uint8_t *buf, size_t len, bool *damaged)
{
	uint32_t crc, last = 0;
	int ret = -EIO;

	for (int tries = 0; ret == -EIO && tries < READ_TRIES_WRITTEN; tries++) {
		struct timespec wait = { .tv_nsec = 50000L << tries };
		bool written, enough = tries >= READ_TRIES - 1;
		ssize_t n;

		if (tries)
			io_nanosleep(&wait, NULL);
		written = enough && is_being_written(fd);
		store_posix_forget(fd, PLFS_BODY_OFF);
		n = io_pread_all(fd, buf, len, 0);
		*damaged = n >= 0;
		ret = n < 0 ? (int)n : stub_decode(stub, buf, min_size((size_t)n, STUB_READ_LEN));
		if (n >= 0)
			memset(buf + n, 0, len - (size_t)n);
		if (likely(ret != -EIO))
			break;
		crc = n < 0 ? 0 : crc32c(0, buf, min_size((size_t)n, STUB_READ_LEN));
		written |= n >= STUB_READ_LEN && get_le64(buf + STUB_CLAIM_OFF);
		if (enough && !written && crc == last && !is_being_written(fd))
			break;
		last = crc;
	}
	return ret;
}

/* Not part of who calls it: it takes 4 KiB of the stack. */
__attribute__((noinline)) bool stub_is_headless(int fd)
{
	uint8_t buf[PLFS_BODY_OFF];
	ssize_t n = io_pread_all(fd, buf, sizeof(buf), 0);

	return n >= 0 && !stub_is_one(buf, (size_t)n, true);
}

int stub_look(int fd, struct stub *stub)
{
	uint8_t buf[STUB_READ_LEN];
	bool damaged;

	return read_header(fd, stub, buf, sizeof(buf), &damaged);
}

__attribute__((noinline, cold))
void stub_tell_damaged(int fd)
{
	char *name = mem_alloc(PATH_MAX); /* too large for a small stack */

	msg_error("%s: damaged stub: its header is neither whole nor empty; the data in %s is untouched",
		  name ? stub_name(fd, name, PATH_MAX) : "(a stub)", PLFS_DIR_NAME);
	mem_free(name);
}

/* Its own function, as the two above: who makes an error line has little of the stack in use. */
static __attribute__((noinline, cold)) void tell_unreadable(int fd, int ret)
{
	char name[PATH_MAX];

	stub_name(fd, name, sizeof(name));
	if (ret == -EPROTONOSUPPORT)
		msg_error("%s: written by a newer libplfs (format version above %d); use that one to read it",
			  name, STUB_VERSION);
	else
		msg_error("%s: the header cannot be read: %s", name, strerror(-ret));
}

int stub_read(int fd, struct stub *stub)
{
	uint8_t buf[STUB_READ_LEN];

	return stub_read_into(fd, stub, buf, sizeof(buf));
}

int stub_read_into(int fd, struct stub *stub, uint8_t *buf, size_t len)
{
	bool damaged = false;
	int ret = read_header(fd, stub, buf, len, &damaged);

	if (ret == -EIO && damaged && !stub_is_headless(fd))
		stub_tell_damaged(fd);
	if (ret == -EPROTONOSUPPORT || (ret == -EIO && !damaged))
		tell_unreadable(fd, ret);
	return ret;
}

static bool is_older(const struct stub *now, const struct stub *known)
{
	if (now->in_body || !known->has_container)
		return false;
	return !now->has_container || (!memcmp(now->id, known->id, STUB_ID_LEN) &&
				       now->generation_ns < known->generation_ns);
}

int stub_read_known(int fd, const struct stub *known, struct stub *stub)
{
	const struct stub was = *known;
	int ret = stub_read(fd, stub);

	for (int tries = 0; !ret && tries < READ_TRIES_OLDER && is_older(stub, &was); tries++) {
		struct timespec wait = { .tv_nsec = 50000L << tries };

		io_nanosleep(&wait, NULL);
		ret = stub_read(fd, stub);
	}
	return ret;
}

/*
 * Write constant bytes, from the stack. Where bytes have to be read from the library's file first, the
 * kernel may make the stub longer before it has them: others would find zeros there, and a killed process
 * leave them.
 */
static int write_constant(int fd, const char *bytes, size_t len, off_t off)
{
	char copy[sizeof(stub_sentence)];
	ssize_t n;

	memcpy(copy, bytes, len);
	n = io_pwrite_all(fd, copy, len, off);
	return n < 0 ? (int)n : n < (ssize_t)len ? -ENOSPC : 0;
}

int stub_explain(int fd)
{
	return write_constant(fd, stub_sentence, stub_sentence_len, STUB_SENTENCE_OFF);
}

static const char synced_word[STUB_SYNCED_LEN] = "PLFSSYNC";

bool stub_is_synced(int fd)
{
	char word[STUB_SYNCED_LEN];

	return io_pread_all(fd, word, STUB_SYNCED_LEN, STUB_SYNCED_OFF) == STUB_SYNCED_LEN &&
	       !memcmp(word, synced_word, STUB_SYNCED_LEN);
}

int stub_set_synced(int fd, bool synced)
{
	static const char none[STUB_SYNCED_LEN];

	return write_constant(fd, synced ? synced_word : none, STUB_SYNCED_LEN, STUB_SYNCED_OFF);
}

int stub_set_cut(int fd, struct stub *stub, uint64_t size, uint64_t stamp_ns)
{
	uint8_t word[STUB_CUT_LEN];
	ssize_t n;

	encode_cut(word, size, stamp_ns);
	n = io_pwrite_all(fd, word, sizeof(word), STUB_CUT_OFF);
	if (n < (ssize_t)sizeof(word))
		return n < 0 ? (int)n : -ENOSPC;
	stub->cut_size = stamp_ns ? size : 0;
	stub->cut_ns = stamp_ns;
	return 0;
}

/* Others may write meanwhile: the stub must not get shorter. */
int stub_fill_header(int fd, const struct stat *st)
{
	return st->st_size < PLFS_BODY_OFF ? write_constant(fd, "", 1, PLFS_BODY_OFF - 1) : 0;
}

/*
 * The only call that takes no space, and needs no offset; but it can make the file shorter. Another process
 * may have made it longer during the calls before: so the last look at the length comes right before this.
 */
static int set_length(int fd, off_t len)
{
	struct stat st;
	int ret = sys.fstat(fd, &st);

	return ret || st.st_size >= len ? ret : sys.ftruncate(fd, len);
}

int stub_extend(int fd, uint64_t end)
{
	off_t last = (off_t)(PLFS_BODY_OFF + end - 1);
	bool appends;
	ssize_t n;
	int ret;

	do {
		ret = io_fallocate(fd, 0, last, 1);
	} while (ret < 0 && errno == EINTR);
	if (ret == 0)
		return 0;
	/* A description that appends is the only one there may be of a file whose mode forbids another. */
	appends = sys.fcntl(fd, F_GETFL) & O_APPEND;
	if (!appends && (errno == EOPNOTSUPP || errno == ENOSYS)) {
		do {
			n = io_pwrite(fd, "", 1, last);
		} while (n < 0 && errno == EINTR);
		ret = n == 1 ? 0 : -1;
	}
	if (ret < 0 && (appends || errno == ENOSPC || errno == EDQUOT))
		ret = set_length(fd, last + 1);
	return ret < 0 ? -errno : 0;
}

void stub_touch(int fd)
{
	static const struct timespec now[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_NOW } };
	int saved ERRNO_KEPT = errno;

	if (sys.futimens(fd, now))
		sys.futimens(fd, NULL); /* not the owner: both times or none */
}

bool stub_set_mtime(int fd, const struct timespec *mtime)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, *mtime };
	int saved ERRNO_KEPT = errno;

	return !sys.futimens(fd, times);
}

int stub_reopen(int fd, int flags)
{
	char link[64];
	int ret;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ret = io_open(link, flags | O_CLOEXEC);
	return sys_fd_hide(ret < 0 ? -errno : ret);
}
