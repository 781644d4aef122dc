/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is done to a stub's header under its lock. How it is encoded is in stub.c; the other lock is in
 * stub_use.c.
 */
#include "core/backend/stub_lock.h"

#include "core/backend/stub_byte.h"
#include "core/base/alloc.h"
#include "core/base/guard.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/base/pause.h"
#include "core/base/sys.h"

#include <endian.h>
#include <unistd.h>

/* The longest waits for a lock of somebody who may write the file: an append can have a log as well. */
#define APPEND_PATIENCE_MS 100
#define MOVE_PATIENCE_MS 1000
#define CLAIM_PATIENCE_MS 1000

/* Wait a little. Whether that was in vain for @patience_ms by now; 0: never. */
static bool is_hopeless(struct pause *p, unsigned patience_ms)
{
	if (patience_ms && p->slept_ns >= patience_ms * 1000000ULL)
		return true;
	pause_before_asking(p);
	return false;
}

/*
 * A lock owned by the process, not by the description, which a parent and its child share: who is killed must
 * not leave it to the other. But it goes when another thread closes any descriptor of the file; so after
 * anything that takes long it is taken again, and the header is looked at again.
 *
 * Nobody has it shared but a process that only reads the file, and means harm: -EBUSY, at once. So no call
 * may wait for it in the kernel, where it would wait for such a one as well.
 *
 * @claimed, if given: 1 without the lock, once the header says that whoever had it has claimed the stub. Else
 * all ranks of a job would have it in turn, to read that.
 */
static int lock_header_unless(int fd, unsigned patience_ms, struct stub *claimed)
{
	struct pause p = { 0 };
	int ret = stub_byte_lock(fd, F_SETLK, STUB_LOCK_HEADER, F_WRLCK);

	while (ret == -EBUSY && stub_byte_of_others(fd, F_GETLK, STUB_LOCK_HEADER, F_WRLCK) != F_RDLCK) {
		if (claimed && !stub_read(fd, claimed) && claimed->has_container && !claimed->moving)
			return 1;
		if (is_hopeless(&p, patience_ms))
			break;
		ret = stub_byte_lock(fd, F_SETLK, STUB_LOCK_HEADER, F_WRLCK);
	}
	return ret;
}

static int lock_header_strictly(int fd, unsigned patience_ms)
{
	return lock_header_unless(fd, patience_ms, NULL);
}

static bool is_missing(int ret)
{
	return ret == -ENOLCK || ret == -ENOSYS || ret == -EINVAL || ret == -EOPNOTSUPP;
}

static int lock_header(int fd)
{
	int ret = lock_header_strictly(fd, 0);

	/* A file system without locks: the program was told so by whoever mounted it. */
	return is_missing(ret) ? 0 : ret;
}

static void unlock_header(int fd)
{
	stub_byte_lock(fd, F_SETLK, STUB_LOCK_HEADER, F_UNLCK);
}

/* The caller has the container's lock, if there is a container: that is enough where this cannot be had. */
static int lock_header_too(int fd)
{
	int ret = lock_header(fd);

	return ret == -EBUSY ? 0 : ret;
}

/* Have the lock still, or again. @now: what the header says. */
static int relock_header(int fd, struct stub *now)
{
	int ret = lock_header(fd);

	return ret ? ret : stub_read(fd, now);
}

static int write_part(int fd, const uint8_t *buf, size_t from, size_t to)
{
	ssize_t n = io_pwrite_all(fd, buf + from, to - from, from);

	return n < 0 ? (int)n : n < (ssize_t)(to - from) ? -ENOSPC : 0;
}

/* @how: the header alone; with all behind it but the word at the end, which is set without a lock; not "claim". */
enum part { HEADER, PAGE, ALL_BUT_CLAIM };

/* The stack may be small. */
static int write_page(int fd, const struct stub *stub, enum part part)
{
	uint8_t *buf = mem_zalloc(PLFS_BODY_OFF);
	int ret;

	if (!buf)
		return -ENOMEM;
	stub_encode(stub, buf);
	memcpy(buf + STUB_SENTENCE_OFF, stub_sentence, stub_sentence_len);
	/* The header last: as soon as that is there hosts enter themselves behind it. */
	ret = part == ALL_BUT_CLAIM ? write_part(fd, buf, STUB_CUT_OFF, STUB_SYNCED_OFF) : 0;
	if (!ret)
		ret = write_part(fd, buf, 0, part == PAGE ? STUB_SYNCED_OFF : STUB_CLAIM_OFF);
	mem_free(buf);
	return ret;
}

static int write_header(int fd, const struct stub *stub, enum part part)
{
	uint8_t buf[STUB_HEADER_LEN];

	if (part != HEADER)
		return write_page(fd, stub, part);
	stub_encode(stub, buf);
	return write_part(fd, buf, 0, STUB_HEADER_LEN);
}

int stub_claim(int fd, struct stub *stub, uint64_t now_ns, ino_t number,
	       int (*make)(void *arg, struct stub *stub), void *arg)
{
	struct stub now;
	int ret = lock_header_unless(fd, 0, stub);

	if (ret && !is_missing(ret))
		return ret > 0 ? 0 : ret;
	ret = stub_read(fd, stub);
	stub->moving = false; /* we have the lock: he who was at it died */
	if (!ret && stub_has_none(stub) && stub->claim)
		ret = -EBUSY;
	if (!ret && stub_has_none(stub)) {
		stub->has_container = true;
		stub->created_ns = now_ns;
		stub->number = number;
		if (sys.getrandom(stub->id, STUB_ID_LEN, 0) != STUB_ID_LEN)
			ret = -EIO;
		if (!ret)
			ret = make(arg, stub);
		if (!ret)
			ret = relock_header(fd, &now);
		if (!ret && !stub_has_none(&now))
			*stub = now;
		else if (!ret && now.claim)
			ret = -EBUSY;
		else if (!ret)
			ret = write_header(fd, stub, PAGE);
		if (ret)
			stub->has_container = false;
	}
	unlock_header(fd);
	return ret;
}

void stub_wait_claimed(int fd)
{
	struct pause p = { 0 };

	while (stub_byte_of_others(fd, F_GETLK, STUB_LOCK_HEADER, F_UNLCK) == F_WRLCK &&
	       !is_hopeless(&p, CLAIM_PATIENCE_MS))
		;
}

int stub_propose(int fd, uint64_t claim, uint64_t *decided)
{
	struct stat st;
	void *page;
	int ret;

	if (sys.fstat(fd, &st))
		return -errno;
	ret = stub_fill_header(fd, &st);
	if (ret)
		return ret;
	page = sys.mmap(NULL, PLFS_BODY_OFF, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	ret = -ENOMEM;
	if (guard_add(page, PLFS_BODY_OFF)) {
		uint64_t *word = (uint64_t *)((uint8_t *)page + STUB_CLAIM_OFF), old = 0;

		if (__atomic_compare_exchange_n(word, &old, htole64(claim), false, __ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST))
			old = htole64(claim);
		*decided = le64toh(old);
		ret = guard_is_broken(page) ? -EIO : 0;
		guard_remove(page);
	}
	sys.munmap(page, PLFS_BODY_OFF);
	return ret;
}

int stub_finish_claim(int fd, struct stub *stub, const uint8_t *id, uint64_t now_ns, ino_t number,
		      uid_t maker)
{
	struct pause p = { 0 };
	int ret;

	/* Who has locked the header before he could see the word. */
	while (stub_byte_of_others(fd, F_GETLK, STUB_LOCK_HEADER, F_UNLCK) == F_WRLCK)
		is_hopeless(&p, 0);
	ret = stub_read(fd, stub);
	if (ret || !stub_has_none(stub))
		return ret;
	stub->moving = false;
	stub->has_container = true;
	stub->created_ns = now_ns;
	stub->number = number;
	stub->has_maker = maker != (uid_t)-1;
	stub->maker = maker;
	memcpy(stub->id, id, STUB_ID_LEN);
	ret = write_header(fd, stub, ALL_BUT_CLAIM);
	if (ret)
		stub->has_container = false;
	return ret;
}

/* Where the lock cannot be had, a process that is claiming the stub just now may miss the word. */
int stub_mark_synced(int fd)
{
	int ret = lock_header_too(fd);

	if (ret)
		return ret;
	ret = stub_set_synced(fd, true);
	unlock_header(fd);
	return ret;
}

/* What is set in @more is set in the header, and the generation raised to that of @more. */
static int change_header(int fd, struct stub *stub, const struct stub *more)
{
	int ret = lock_header_too(fd);

	if (ret)
		return ret;
	ret = stub_read_known(fd, stub, stub);
	if (!ret && stub->has_container &&
	    (stub->generation_ns < more->generation_ns || stub->clocks < more->clocks ||
	     stub->placed < more->placed || stub->spread < more->spread || stub->copied < more->copied)) {
		stub->generation_ns = max_u64(stub->generation_ns, more->generation_ns);
		stub->clocks |= more->clocks;
		stub->placed |= more->placed;
		stub->spread |= more->spread;
		stub->copied |= more->copied;
		ret = write_header(fd, stub, HEADER);
	}
	unlock_header(fd);
	return ret;
}

int stub_set_generation(int fd, struct stub *stub, uint64_t generation_ns)
{
	return change_header(fd, stub, &(struct stub){ .generation_ns = generation_ns });
}

int stub_set_clocks(int fd, struct stub *stub)
{
	return change_header(fd, stub, &(struct stub){ .clocks = true });
}

int stub_set_placed(int fd, struct stub *stub)
{
	return change_header(fd, stub, &(struct stub){ .placed = true });
}

int stub_set_copied(int fd, struct stub *stub)
{
	return change_header(fd, stub, &(struct stub){ .copied = true });
}

int stub_set_spread(int fd, struct stub *stub)
{
	return change_header(fd, stub, &(struct stub){ .spread = true });
}

int stub_set_number(int fd, const struct stub *stub, ino_t number)
{
	struct stub now;
	int ret = lock_header(fd);

	if (ret)
		return ret;
	ret = stub_read(fd, &now);
	if (!ret && (!now.has_container || memcmp(now.id, stub->id, STUB_ID_LEN)))
		ret = -EAGAIN;
	if (!ret) {
		now.number = number;
		ret = write_header(fd, &now, HEADER);
	}
	unlock_header(fd);
	return ret;
}

int stub_begin_append(int fd, struct stub *stub)
{
	int ret = lock_header_strictly(fd, APPEND_PATIENCE_MS);

	if (ret)
		return ret;
	ret = stub_read(fd, stub);
	if (ret)
		stub_end_append(fd);
	return ret;
}

void stub_end_append(int fd)
{
	unlock_header(fd);
}

/* Its own function, as the next: the name takes 4 KiB of the stack. */
static __attribute__((noinline, cold)) int tell_locked(int fd)
{
	char name[PATH_MAX];

	msg_error("%s: another process keeps its header locked: try again when that has ended",
		  stub_name(fd, name, sizeof(name)));
	return -EBUSY;
}

int stub_settle_bare(int fd, struct stub *stub)
{
	struct pause p = { 0 };
	int ret = stub_read(fd, stub);
	bool moves = false;

	while (!ret && stub->moving && !stub->has_container) {
		moves = stub_byte_of_others(fd, F_GETLK, STUB_LOCK_HEADER, F_UNLCK) == F_WRLCK;
		if (!moves || is_hopeless(&p, stub_is_ours_alone(fd) ? 0 : MOVE_PATIENCE_MS))
			break;
		ret = stub_read(fd, stub);
	}
	if (ret || !stub->moving || stub->has_container)
		return ret;
	if (moves)
		return tell_locked(fd);
	/* The mover has died. Who can only read leaves it at that. */
	ret = lock_header(fd);
	if (ret) {
		stub->moving = false;
		return ret == -EBADF || ret == -EBUSY ? 0 : ret;
	}
	ret = stub_read(fd, stub);
	if (!ret && stub->moving && !stub->has_container) {
		stub->moving = false;
		ret = write_header(fd, stub, HEADER);
	}
	unlock_header(fd);
	return ret;
}

int stub_clear_moving(int fd, struct stub *stub)
{
	int ret = lock_header_too(fd);

	if (ret)
		return ret;
	ret = stub_read(fd, stub);
	if (!ret && stub->moving) {
		stub->moving = false;
		ret = write_header(fd, stub, HEADER);
	}
	unlock_header(fd);
	return ret;
}

int stub_begin_move(int fd, struct stub *stub, bool locked)
{
	int ret = lock_header(fd);
	bool kept_out = ret == -EBUSY;

	if (ret && !(kept_out && locked))
		return ret;
	ret = stub_read(fd, stub);
	if (!ret && stub_has_none(stub) && (stub->claim || kept_out))
		ret = -EBUSY;
	if (!ret && stub->has_container && !locked)
		ret = -EAGAIN;
	if (!ret && !stub->in_body) {
		stub->moving = true;
		ret = write_header(fd, stub, stub->has_container ? HEADER : PAGE);
		if (!ret)
			return 0;
	}
	stub->moving = false;
	unlock_header(fd);
	return ret;
}

int stub_end_move(int fd, struct stub *stub, bool in_body)
{
	struct stub now = { .moving = false };
	int ret = stub->has_container ? lock_header_too(fd) : lock_header(fd);

	if (!ret)
		ret = stub_read(fd, &now);
	if (!ret && (!now.moving || now.generation_ns != stub->generation_ns ||
		     now.has_container != stub->has_container))
		ret = in_body ? -EAGAIN : 0;
	stub->moving = false;
	if (ret || !now.moving)
		goto out;
	stub->in_body = in_body;
	if (in_body) {
		stub->has_container = stub->placed = stub->spread = stub->copied = false;
		memset(stub->id, 0, STUB_ID_LEN);
	}
	ret = write_header(fd, stub, HEADER);
out:
	unlock_header(fd);
	return ret;
}
