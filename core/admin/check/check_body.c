/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking through the body of a logged file.
 */
#include "core/admin/check/check_body.h"

#include "core/base/bytes.h"
#include "core/base/io.h"
#include "core/base/sys.h"

#include <time.h>

#define SMALL_MAX (64 << 10)   /* of a file that was written under a mapping with another small= */
#define QUICK_MAX (64 << 20)   /* so many bytes are read with check.quick: a copy may have no holes */
#define PIECE 65536

/* The bytes found so far, without zeros at either end. */
struct strange {
	uint64_t from, to;
	uint64_t left; /* to be read */
};

static void take(struct strange *s, const uint8_t *buf, size_t len, uint64_t at)
{
	size_t first = 0, last = len;

	while (first < len && !buf[first])
		first++;
	while (last > first && !buf[last - 1])
		last--;
	if (first == last)
		return;
	if (s->to == s->from)
		s->from = at + first;
	s->to = at + last;
}

/* [@at, @end) of the file @fd. False: no more is to be read. */
static bool read_range(struct strange *s, int fd, uint64_t at, uint64_t end, uint8_t *buf)
{
	while (at < end && s->left) {
		ssize_t n = io_pread_all(fd, buf, (size_t)min_u64(min_u64(PIECE, end - at), s->left), at);

		if (n <= 0)
			return false;
		if (!is_zero(buf, (size_t)n))
			take(s, buf, (size_t)n, at);
		at += (uint64_t)n;
		s->left -= (uint64_t)n;
	}
	return s->left;
}

static void find(struct strange *s, int fd, uint64_t from, uint64_t end)
{
	uint8_t *buf = mem_alloc(PIECE);
	bool more = buf;

	while (more && from < end) {
		off_t data = sys.lseek(fd, (off_t)from, SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			break;
		from = data < 0 ? from : (uint64_t)data;
		hole = sys.lseek(fd, (off_t)from, SEEK_HOLE);
		more = read_range(s, fd, from, hole < 0 ? end : min_u64((uint64_t)hole, end), buf);
		from = hole < 0 ? end : (uint64_t)hole;
	}
	mem_free(buf);
}

/* So far the library itself may have written, before the file had logs. */
static uint64_t own_reach(const struct plfs_mount *m)
{
	return max_u64(SMALL_MAX, CONFIG_SMALL_REACH * m->spec->small);
}

void check_body(struct examined *k)
{
	uint64_t from = PLFS_BODY_OFF + own_reach(k->m);
	struct strange s = { .left = k->check->quick ? QUICK_MAX : UINT64_MAX };
	char when[40] = "?";
	struct tm tm;

	if (k->st.st_size <= (off_t)from || (uint64_t)k->st.st_blocks * 512 <= PLFS_BODY_OFF)
		return;
	find(&s, k->fd, from, (uint64_t)k->st.st_size);
	if (s.to == s.from)
		return;
	if (gmtime_r(&k->st.st_mtim.tv_sec, &tm))
		strftime(when, sizeof(when), "%F %T UTC", &tm);
	examine_report(k, PLFS_NOTED, "stranger", "",
		       "a program without the library wrote into its stub, at %s or before (or a process was killed "
		       "while it mapped the file): of bytes %llu to %llu of the file reads give what it wrote, where "
		       "the logs have nothing and the file was never truncated",
		       when, (unsigned long long)(s.from - PLFS_BODY_OFF),
		       (unsigned long long)(s.to - 1 - PLFS_BODY_OFF));
}
