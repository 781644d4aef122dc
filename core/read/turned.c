/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turning from a log to its copies. All of it is for logs that are damaged: no other reader comes here.
 */
#include "core/read/turned.h"

#include "core/backend/rebuilt.h"
#include "core/base/alloc.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/dropping/copies.h"
#include "core/dropping/datalog.h"
#include "core/dropping/sums.h"

bool turned_may_help(int err) { return err == -EBADMSG || io_is_fault(-err); }

__attribute__((cold)) int turned_next(struct turned *t, const struct container *c, const char *path,
				      const char *why, bool *told)
{
	char where[PLACE_PATH_LEN];
	unsigned no = t->no;
	int h = copies_open(c, path, &no, where);

	if (h < 0) {
		h = t->no ? datalog_open(c, path, false) : -ENOENT;
		if (h < 0)
			return -ENOENT;
		t->no = 0;
		return h;
	}
	if (!*told && rebuilt_is(h))
		msg_error("%s/%s: %s: it is rebuilt from parity in %s; plfs repair makes it whole", c->dir,
			  path, why, where);
	else if (!*told)
		msg_error("%s/%s: %s: its copy in %s is read instead; plfs repair heals it", c->dir, path,
			  why, where);
	*told = true;
	t->no = no;
	return h;
}

int turned_open(struct turned *t, const struct container *c, const char *path, bool growing)
{
	char where[PLACE_PATH_LEN];
	unsigned no = t->no - 1;
	int h;

	if (likely(!t->no))
		return datalog_open(c, path, growing);
	h = copies_open(c, path, &no, where);
	if (h >= 0 && no == t->no)
		return h;
	if (h >= 0)
		store_close(c->store, &h);
	t->no = 0;
	return datalog_open(c, path, growing);
}

static bool is_right(struct store *s, int h, const struct iovec *iov, uint64_t log_off,
		     const struct sums_chunk *chunk)
{
	return datalog_pread(s, h, iov->iov_base, iov->iov_len, log_off) == (ssize_t)iov->iov_len &&
	       sums_check(s, h, iov, 1, log_off, chunk, NULL);
}

__attribute__((cold)) bool turned_patch(const struct turned *t, const struct container *c, const char *path,
					const struct iovec *iov, uint64_t log_off,
					const struct sums_chunk *chunk)
{
	struct iovec own = { mem_alloc(iov->iov_len), iov->iov_len };
	char where[PLACE_PATH_LEN];
	unsigned no = 0;
	bool right = false;
	int h = t->no && own.iov_base ? datalog_open(c, path, false) : -ENOENT;

	while (own.iov_base && !right) {
		if (h < 0)
			h = copies_open(c, path, &no, where);
		if (h < 0)
			break;
		right = is_right(c->store, h, &own, log_off, chunk);
		store_close(c->store, &h);
		h = -1;
	}
	if (right)
		memcpy(iov->iov_base, own.iov_base, own.iov_len);
	mem_free(own.iov_base);
	return right;
}
