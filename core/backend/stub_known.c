/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking at headers where the mark may be wrong, and remembering the answers.
 */
#include "core/backend/stub_known.h"

#include "core/backend/mount.h"
#include "core/base/bytes.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/base/pause.h"
#include "core/base/sys.h"

#include <unistd.h>

#define NR_SETS 8192 /* a power of two; half a MiB, of which a program touches what it uses */
#define SET_LEN 8
#define GRAIN_NS 1100000000LL /* what changed less than this before may change again with the same time */

enum answer { UNKNOWN, PLAIN, STUB };

/* A hash of what the answer is for, and in its last two bits the answer: one word needs no lock. */
static uint64_t answers[NR_SETS][SET_LEN];
static bool no_more;

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* The length as well: a file may grow within one tick of the clock. */
static uint64_t key_of(const struct stat *st)
{
	uint64_t key = mix((uint64_t)st->st_dev * 0x9e3779b97f4a7c15ULL + (uint64_t)st->st_ino);

	key = mix(key ^ (uint64_t)st->st_ctim.tv_sec * 1000000000ULL ^ (uint64_t)st->st_ctim.tv_nsec);
	return mix(key ^ (uint64_t)st->st_size ^ (uint64_t)(st->st_mode & S_ISVTX) << 32) & ~3ULL;
}

static size_t set_of(uint64_t key) { return key >> 2 & (NR_SETS - 1); }

static enum answer recall(const struct stat *st)
{
	uint64_t key = key_of(st), word;

	for (int i = 0; i < SET_LEN; i++) {
		word = __atomic_load_n(&answers[set_of(key)][i], __ATOMIC_RELAXED);
		if ((word & ~3ULL) == key)
			return (enum answer)(word & 3);
	}
	return UNKNOWN;
}

static void remember(const struct stat *st, enum answer answer)
{
	uint64_t key = key_of(st), *set = answers[set_of(key)];
	struct timespec now;
	int64_t age;

	if (sys.clock_gettime(CLOCK_REALTIME, &now))
		return;
	age = (int64_t)(now.tv_sec - st->st_ctim.tv_sec) * 1000000000LL + now.tv_nsec - st->st_ctim.tv_nsec;
	if (age <= GRAIN_NS) /* or the file server's clock is ahead */
		return;
	/* the latest at the front; two threads at once lose one, no more */
	for (int i = SET_LEN - 1; i > 0; i--)
		__atomic_store_n(&set[i], __atomic_load_n(&set[i - 1], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	__atomic_store_n(&set[0], key | answer, __ATOMIC_RELAXED);
}

/* Whether all its blocks are there. */
static bool is_full(const struct stat *st)
{
	return (uint64_t)st->st_blocks * 512 >= (uint64_t)st->st_size;
}

/*
 * A marked file that is no stub: one that a program without the library has written has all its blocks, which
 * a stub has only if its bytes are in its body. With a virtual prefix nobody finds it by accident; so only
 * files of directories that are mapped onto themselves are looked at. An open looks at all.
 */
static bool is_doubtful(const struct stat *st)
{
	if (!stub_marked(st->st_mode))
		return stub_maybe_unmarked(st);
	return st->st_size && (st->st_size < STUB_SYNCED_OFF ||
			       (is_full(st) && mount_any_in_place()));
}

static void correct(struct stat *st, enum answer answer)
{
	if (answer == STUB)
		st->st_mode |= S_ISVTX;
	else if (answer == PLAIN)
		st->st_mode &= ~(mode_t)S_ISVTX;
}

static bool is_mine(const struct stat *st)
{
	uid_t me = geteuid();

	return !me || me == st->st_uid;
}

/* Give the file @fd the mark that @st should have, or take it off. 0: done. */
static int put_right(int fd, struct stat *st, enum answer answer)
{
	struct stat right;

	if (sys.fstat(fd, &right))
		return -errno;
	correct(&right, answer);
	if (!is_mine(st) || sys.fchmod(fd, right.st_mode & 07777))
		return -EPERM;
	sys.fstat(fd, st);
	correct(st, answer);
	return 0;
}

static __attribute__((noinline, cold)) void tell_written_anew(int fd)
{
	char name[PATH_MAX];

	msg_error(
		"%s: a program without libplfs has written it anew: it has no stub's header, and is a plain file now; plfs gc removes what libplfs had stored of it",
		stub_name(fd, name, sizeof(name)));
}

/* Where the bytes that were written from the beginning on end. 0: the first page was not. */
static off_t end_of_written(int fd)
{
	off_t before = sys.lseek(fd, 0, SEEK_CUR), hole = sys.lseek(fd, 0, SEEK_HOLE),
	      data = sys.lseek(fd, 0, SEEK_DATA);

	sys.lseek(fd, before, SEEK_SET);
	return !data && hole > 0 ? hole : 0;
}

/*
 * Whether there are hosts behind a header that is blank. They enter themselves when the header is there: if
 * that was written in the middle of the read, it is seen now.
 */
static bool has_lost_header(int fd, const uint8_t *head)
{
	uint8_t now[STUB_CLAIM_OFF];

	return !is_zero(head + STUB_HOSTS_OFF, STUB_HOSTS_LEN) &&
	       is_zero(head + STUB_HOSTS_OFF + STUB_HOSTS_LEN,
		       STUB_SYNCED_OFF - STUB_HOSTS_OFF - STUB_HOSTS_LEN) &&
	       io_pread_all(fd, now, sizeof(now), 0) == sizeof(now) && is_zero(now, sizeof(now));
}

#define SHORT_NS 400000000 /* so long the bytes may take to come */

/*
 * Whether a blank file that is shorter than its header stays so. The kernel may make a file longer before the
 * bytes are there that another process writes behind its end.
 */
static bool stays_short(int fd, const struct stat *st)
{
	struct stat now = *st;
	struct pause p = { 0 };

	while (now.st_size == st->st_size && p.slept_ns < SHORT_NS) {
		pause_before_asking(&p);
		if (sys.fstat(fd, &now))
			break;
	}
	return now.st_size == st->st_size;
}

int stub_look_blank(struct plfs_mount *m, int fd, const struct stat *st)
{
	uint8_t head[PLFS_BODY_OFF];
	ssize_t n = io_pread_all(fd, head, sizeof(head), 0);
	off_t written;

	if (!st->st_size || n <= 0 || !is_zero(head, min_size((size_t)n, STUB_CLAIM_OFF)))
		return 0;
	if (n == PLFS_BODY_OFF && has_lost_header(fd, head))
		return -EIO; /* hosts have written logs of it */
	if (st->st_size == PLFS_BODY_OFF || !stub_is_blank(head, (size_t)n))
		return 0;
	if (st->st_size < PLFS_BODY_OFF) /* the library makes a header without the sentence in one piece */
		return n == st->st_size && stays_short(fd, st) ? -EIO : 0;
	if (!is_zero(head + STUB_SYNCED_OFF, sizeof(head) - STUB_SYNCED_OFF)) /* the library wrote it */
		return 0;
	if (!m)
		m = mount_of_file(fd);
	if (!m || !mount_explains_bare(m))
		return 0;
	written = end_of_written(fd);
	if (!is_full(st))
		return written && written < st->st_size ? -EIO : 0; /* else holes do not show here */
	return !m->store.remote && written == st->st_size;
}

static __attribute__((noinline, cold)) void tell_of_stub(int fd)
{
	char name[PATH_MAX];

	msg_debug(MSG_OPEN, "%s: a stub that had lost its mark", stub_name(fd, name, sizeof(name)));
}

/* -errno: cannot be read. */
static __attribute__((noinline)) int look(int fd, const struct stat *st, enum answer *answer)
{
	bool marked = stub_marked(st->st_mode);
	uint8_t head[PLFS_BODY_OFF];
	ssize_t n = io_pread_all(fd, head, marked ? sizeof(head) : STUB_READ_LEN, 0);

	*answer = n < 0 ? UNKNOWN : stub_is_one(head, (size_t)n, marked) ? STUB : PLAIN;
	if (unlikely(n > 0 && marked && stub_is_blank(head, (size_t)n) &&
		     stub_look_blank(NULL, fd, st) > 0))
		*answer = PLAIN;
	return n < 0 ? (int)n : 0;
}

/* What @fd is, whose attributes are @st; both are put right. */
static void know_by(int fd, struct stat *st)
{
	bool marked = stub_marked(st->st_mode);
	struct stat before = *st;
	enum answer answer;

	if (look(fd, st, &answer))
		return;
	if ((answer == STUB) != marked && !mount_of_file(fd))
		answer = marked ? STUB : PLAIN; /* none of ours: it was reached by a name from elsewhere */
	if ((answer == STUB) == marked) {
		remember(st, answer);
		return;
	}
	if (put_right(fd, st, answer)) {
		correct(st, answer);
		remember(&before, answer);
	}
	if (answer == PLAIN)
		tell_written_anew(fd);
	else
		tell_of_stub(fd);
}

bool stub_is_known(struct stat *st)
{
	enum answer answer;

	if (!S_ISREG(st->st_mode) || !is_doubtful(st) || !mount_has_dev(st->st_dev))
		return true;
	answer = recall(st);
	correct(st, answer);
	return answer != UNKNOWN;
}

void stub_know(struct stat *st, int fd)
{
	int saved ERRNO_KEPT = errno;

	if (!stub_is_known(st))
		know_by(fd, st);
}

static int open_to_look(int dirfd, const char *path, int at_flags)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
			  (at_flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0);
	int fd = io_openat(dirfd, path, flags | O_NOATIME);

	if (fd < 0 && errno == EPERM) /* not the owner */
		fd = io_openat(dirfd, path, flags);
	return sys_fd_hide_briefly(fd < 0 ? -errno : fd);
}

void stub_know_at(struct stat *st, int dirfd, const char *path, int at_flags)
{
	int saved ERRNO_KEPT = errno;
	struct stat now;
	int fd;

	if (stub_is_known(st) || !*path || __atomic_load_n(&no_more, __ATOMIC_RELAXED))
		return;
	fd = open_to_look(dirfd, path, at_flags);
	if (fd < 0)
		return;
	if (!sys.fstat(fd, &now) && now.st_ino == st->st_ino && now.st_dev == st->st_dev) {
		know_by(fd, &now);
		*st = now;
	}
	sys_fd_close(&fd);
}

bool stub_is_by_header(int fd, const struct stat *st)
{
	enum answer answer;

	if (!S_ISREG(st->st_mode) || !mount_has_dev(st->st_dev))
		return false;
	if (!stub_maybe_unmarked(st) && !(stub_marked(st->st_mode) && st->st_size))
		return stub_marked(st->st_mode);
	return look(fd, st, &answer) ? stub_marked(st->st_mode) : answer == STUB;
}

bool stub_make_plain(int fd)
{
	struct stat st;
	enum answer answer;

	if (sys.fstat(fd, &st) || look(fd, &st, &answer) || answer != PLAIN)
		return false;
	if (stub_marked(st.st_mode)) {
		if (put_right(fd, &st, PLAIN))
			remember(&st, PLAIN);
		tell_written_anew(fd);
	}
	return true;
}

static __attribute__((noinline, cold)) int tell_replaced(int fd, bool *told)
{
	char name[PATH_MAX];

	if (!*told)
		msg_error(
			"%s: a program without libplfs has written it anew while this one had it open: what this one has written to it is lost",
			stub_name(fd, name, sizeof(name)));
	*told = true;
	return -EIO;
}

int stub_check_still(int fd, const struct stub *known, bool *told)
{
	struct stub now;
	int ret;

	if (!known->has_container || known->in_body)
		return 0;
	ret = stub_read_known(fd, known, &now);
	if (ret)
		return ret == -EIO && stub_is_headless(fd) ? tell_replaced(fd, told) : 0;
	if (now.in_body || (now.has_container && !memcmp(now.id, known->id, STUB_ID_LEN)))
		return 0;
	return tell_replaced(fd, told);
}

void stub_look_no_more(void)
{
	__atomic_store_n(&no_more, true, __ATOMIC_RELAXED);
}
