/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Live files of any process: opening one, reading its header, and the words that other processes write.
 */
#include "core/dropping/live_read.h"

#include "core/backend/host.h"
#include "core/backend/names.h"
#include "core/base/alloc.h"
#include "core/base/mapped_by.h"
#include "core/base/msg.h"
#include "core/base/io.h"

/*
 * Who tells a length does so in no time, unless its server is slow, or it stands still. Without a wait it
 * would undo the truncation then, or write into the body. So it is waited for. Each second there is a look
 * whether that process is the owner, and has not just come to its number. One that may not be looked at is
 * waited for ten seconds.
 */
#define TELLING_MS 1000
#define TELLING_TOLD_MS 10000

/* Whether the owner of the live file @path runs on another host. */
static bool is_foreign(const struct container *c, const char *path)
{
	return c->store->remote && !name_is_our_live(name_of(path));
}

bool live_is_stranded(const struct container *c, const struct live_header *lh)
{
	uint32_t ours = host_boot();

	return !c->store->remote && lh->boot && ours && lh->boot != ours;
}

static void refuse(const char *full, const uint8_t *raw)
{
	uint32_t version = get_le32(raw + LIVE_OFF_VERSION);

	if (version != LIVE_VERSION)
		msg_error("%s: live index of version %u, this library's is %d", full, version, LIVE_VERSION);
	else
		msg_error(
			"%s: live index with features that this library does not know (incompat 0x%x): use the one that wrote it",
			full, get_le32(raw + LIVE_OFF_INCOMPAT));
}

/* 0 or as live_header_decode(); one line says so of -EPROTONOSUPPORT. */
static int take_header(const struct container *c, const char *full, const uint8_t *raw, ssize_t len,
		       struct live_head *head)
{
	int ret = len == LIVE_HEADER_LEN ? live_header_decode(&head->fixed, raw, c->id) :
		  *raw			 ? -EBADMSG :
					   -ENODATA;

	if (ret == -EPROTONOSUPPORT)
		refuse(full, raw);
	head->words_damaged = live_words_decode(&head->words, raw) != 0;
	head->adopted = get_le64(raw + LIVE_OFF_ADOPTED);
	return ret;
}

/* Whether the live file @h, of this container, is to be written to under its name. */
static int check_name(const struct container *c, const char *path, int h, const struct live_head *head)
{
	struct stat st;
	int ret = c->store->ops->fstat(c->store, h, &st);

	return ret ? ret :
	       store_may_write(&st) && name_is_live_of(name_of(path), head->fixed.log_name) ? 0 :
											     -EBADMSG;
}

int live_open_header(const struct container *c, const char *path, int flags, struct live_head *head,
		     bool *elsewhere)
{
	uint8_t *raw = mem_zalloc(LIVE_HEADER_LEN); /* the stack may be small */
	char full[CONTAINER_PATH_LEN];
	bool foreign = is_foreign(c, path);
	ssize_t n;
	int h, ret;

	if (!raw)
		return -ENOMEM;
	container_path(c, path, full);
	h = store_open(c->store, full, flags | STORE_BRIEFLY | (foreign ? c->store->uncached : 0), 0);
	if (h < 0)
		goto out;
	if (elsewhere)
		*elsewhere = foreign && store_locked(c->store, h);
	if (foreign)
		store_forget(c->store, h);
	n = c->store->ops->pread(c->store, h, raw, LIVE_HEADER_LEN, 0);
	ret = n < 0 ? (int)n : take_header(c, full, raw, n, head);
	if (!ret && (flags & O_ACCMODE) != O_RDONLY)
		ret = check_name(c, path, h, head);
	if (ret) {
		store_close(c->store, &h);
		h = ret;
	}
out:
	mem_free(raw);
	return h;
}

int live_read_words(struct store *s, int h, struct live_words *lw)
{
	uint8_t raw[LIVE_WORDS_END];
	size_t len = sizeof(raw) - LIVE_OFF_SEQ;
	ssize_t n = s->ops->pread(s, h, raw + LIVE_OFF_SEQ, len, LIVE_OFF_SEQ);

	return n == (ssize_t)len ? live_words_decode(lw, raw) : n < 0 ? (int)n : -EBADMSG;
}

bool live_is_unborn(const struct container *c, const char *path)
{
	struct live_head head;
	bool elsewhere = false;
	int h = live_open_header(c, path, O_RDONLY, &head, &elsewhere);

	if (h >= 0)
		store_close(c->store, &h);
	return h == -ENODATA && elsewhere;
}

bool live_is_unmapped(const struct container *c, const char *path)
{
	struct live_head head;
	int h = live_open_header(c, path, O_RDONLY, &head, NULL);

	if (h < 0)
		return false;
	store_close(c->store, &h);
	return head.fixed.unmapped;
}

static bool is_telling(const struct container *c, const char *path, int h)
{
	uint8_t word[8];

	return c->store->ops->pread(c->store, h, word, sizeof(word), LIVE_OFF_TELLING) == sizeof(word) &&
	       get_le64(word) && name_is_running(name_of(path));
}

static void await_told(const struct container *c, const char *path, int h)
{
	const struct timespec wait = { .tv_nsec = 1000000 };
	uint32_t pid, seq;
	int owns;

	name_log_numbers(name_of(path), &pid, &seq);
	for (unsigned ms = 1; is_telling(c, path, h); ms++) {
		io_nanosleep(&wait, NULL);
		if (ms % TELLING_MS)
			continue;
		owns = mapped_by(pid, name_of(path));
		if (!owns || (owns < 0 && ms >= TELLING_TOLD_MS))
			return;
		if (ms == TELLING_TOLD_MS)
			msg_error(
				"%s: process %u stands still while it says how long the file is, and a truncation or move waits for it: let it go on (kill -CONT %u), or end it",
				c->dir, pid, pid);
	}
}

int live_notify(const struct container *c, const char *path, uint64_t stamp_ns)
{
	struct live_head head;
	uint8_t word[8];
	int h = live_open_header(c, path, O_RDWR, &head, NULL);
	uint8_t *map;
	ssize_t n;

	if (h < 0)
		return h == -ENODATA ? 0 : h;
	map = c->store->remote && !is_foreign(c, path) ? store_map(c->store, h, LIVE_HEADER_LEN, true) :
							      NULL;
	/*
	 * a write beside the stores of the owner loses what those have left in the page, on GlusterFS for one
	 */
	if (map) {
		store_le64(map + LIVE_OFF_NOTIFY_NS, stamp_ns);
		store_unmap(c->store, map, LIVE_HEADER_LEN);
		n = 0;
	} else {
		put_le64(word, stamp_ns);
		n = c->store->ops->pwrite(c->store, h, word, sizeof(word), LIVE_OFF_NOTIFY_NS);
	}
	await_told(c, path, h);
	store_close(c->store, &h);
	return n < 0 ? (int)n : 0;
}

uint64_t live_adopted(const struct container *c, const char *path)
{
	struct live_head head;
	int h = live_open_header(c, path, O_RDONLY, &head, NULL);

	if (h < 0)
		return 0;
	store_close(c->store, &h);
	return head.adopted;
}

void live_set_adopted(const struct container *c, const char *path, uint64_t digest)
{
	struct live_head head;
	uint8_t word[8];
	int h = live_open_header(c, path, O_RDWR, &head, NULL);

	if (h < 0)
		return;
	put_le64(word, digest);
	c->store->ops->pwrite(c->store, h, word, sizeof(word), LIVE_OFF_ADOPTED);
	store_close(c->store, &h);
}
