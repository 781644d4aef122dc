/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of the trace, its words, and when calls become a run.
 */
#include "core/observe/trace.h"

#include "core/backend/host.h"
#include "core/base/alloc.h"
#include "core/base/bytes.h"
#include "core/base/critical.h"
#include "core/base/guard.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/observe/mapped.h"

#include <stdio.h>
#include <sys/syscall.h>

#define CHUNK (256ULL << 10) /* of the disk, at a time */
#define CLOCK_NS 60000000000 /* the low bits of a time last for 274 s */
#define STREAMS 256
#define NO_FILE 65535
#define SEQ_MAX 10000

bool tracing;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for all that follows; innermost */
static char *dir;
static struct job job;
static uint64_t max_len, room, begun_ns, clock_ns;
static int64_t offset_ns; /* CLOCK_REALTIME less the clock of intervals */
static uint8_t *map;	  /* NULL: there is no file */
static int fd = -1;
static uint64_t nr_words;
static unsigned nr_streams, nr_files;
static bool is_full;

void trace_setup(const char *path, uint64_t max, const struct job *j, int64_t real_ns)
{
	dir = mem_strdup(path);
	max_len = max_u64(max & ~4095ULL, 2 * TRACE_HEADER_LEN);
	job = *j;
	offset_ns = real_ns;
	tracing = dir != NULL;
}

/* ---- the file; with the lock ---- */

static int create(char *path)
{
	int h = -1;

	if (sys.mkdir(dir, 0777) && errno != EEXIST) {
		snprintf(path, PATH_MAX, "%s", dir);
		return -errno;
	}
	for (int seq = 0; seq < SEQ_MAX; seq++) {
		if (snprintf(path, PATH_MAX, "%s/trace.%s.%ld.%d", dir, host_name(), (long)sys.getpid(),
			     seq) >= PATH_MAX)
			return -ENAMETOOLONG;
		h = io_open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
		if (h >= 0 || errno != EEXIST)
			break;
	}
	return sys_fd_hide(h < 0 ? -errno : h);
}

/* Have the disk's blocks up to @len. A store to a mapping cannot report that there are none. */
static int reserve(uint64_t len)
{
	static const char zeros[4096];

	if (len <= room)
		return 0;
	if (len > max_len)
		return -EFBIG;
	len = min_u64(round_up_u64(max_u64(room + CHUNK, len), 4096), max_len);
	if (!io_fallocate(fd, 0, (off_t)room, (off_t)(len - room))) {
		room = len;
		return 0;
	}
	if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)
		return -errno;
	for (; room < len; room = (room & ~4095ULL) + sizeof(zeros))
		if (io_pwrite_all(fd, zeros, sizeof(zeros) - room % sizeof(zeros), room) < 0)
			return -ENOSPC;
	return 0;
}

static void put_text(uint8_t *p, const char *text)
{
	memcpy(p, text, min_size(strlen(text), JOB_NAME_LEN - 1));
}

static void fill_header(uint64_t now_ns)
{
	begun_ns = now_ns;
	memcpy(map, TRACE_MAGIC, 8);
	put_le32(map + 8, TRACE_VERSION);
	put_le32(map + 12, TRACE_HEADER_LEN);
	put_le64(map + 16, now_ns + (uint64_t)offset_ns);
	put_le32(map + 24, TRACE_TICK_NS);
	put_le32(map + 28, (uint32_t)sys.getpid());
	put_le32(map + 32, job.rank < 0 ? UINT32_MAX : (uint32_t)job.rank);
	put_le32(map + 36, job.ranks < 0 ? 0 : (uint32_t)job.ranks);
	put_text(map + 64, host_name());
	put_text(map + 128, job.job);
	put_text(map + 192, job.program);
}

static void tell(const char *path, int err)
{
	is_full = true;
	if (job.rank <= 0) /* one of a job is enough */
		msg_error(
			"PLFS_TRACE: %s: %s: this process is traced no further; free space, or name another directory",
			path, strerror(-err));
}

static bool open_trace(uint64_t now_ns)
{
	char path[PATH_MAX];
	int ret;

	fd = create(path);
	if (fd < 0) {
		ret = fd;
		fd = -1;
		tell(path, ret);
		return false;
	}
	room = 0;
	ret = reserve(TRACE_HEADER_LEN + 4096);
	if (!ret) {
		map = mapped_shared(fd, max_len);
		ret = map == MAP_FAILED ? -errno : 0;
	}
	if (ret) {
		map = NULL;
		sys.unlink(path);
		sys_fd_close(&fd);
		tell(path, ret);
		return false;
	}
	sys_fd_own(&fd);
	fill_header(now_ns);
	return true;
}

static void leave_out(uint64_t calls, uint64_t bytes)
{
	put_le64(map + 48, get_le64(map + 48) + calls);
	put_le64(map + 56, get_le64(map + 56) + bytes);
}

static struct trace_word *word_at(uint64_t nr)
{
	return (struct trace_word *)(map + TRACE_HEADER_LEN + nr * sizeof(struct trace_word));
}

/* Room for @nr words and the one that says "full". */
static bool has_room(uint64_t nr)
{
	uint64_t need = TRACE_HEADER_LEN + (nr_words + nr + 1) * sizeof(struct trace_word);
	int ret;

	if (is_full)
		return false;
	ret = guard_is_broken(map) ? -EIO : reserve(need);
	if (!ret)
		return true;
	is_full = true;
	if (TRACE_HEADER_LEN + (nr_words + 1) * sizeof(struct trace_word) <= room)
		word_at(nr_words++)->lo = TRACE_FULL;
	if (ret != -EFBIG)
		tell(dir, ret);
	return false;
}

static struct trace_word *put(uint64_t lo, uint64_t hi)
{
	struct trace_word *w = word_at(nr_words++);

	w->hi = hi;
	__atomic_store_n(&w->lo, lo, __ATOMIC_RELEASE); /* until then the words end here */
	return w;
}

/* ---- names and streams ---- */

#define NAME_PIECE 12

static bool name_file(struct trace_file *f, const char *path)
{
	size_t len = min_size(strlen(path), PATH_MAX - 1);

	if (nr_files >= NO_FILE) {
		f->nr = NO_FILE + 1;
		return true;
	}
	if (!has_room(len / NAME_PIECE + 1))
		return false;
	f->nr = ++nr_files;
	for (size_t at = 0; at < len; at += NAME_PIECE) {
		size_t piece = min_size(len - at, NAME_PIECE);
		uint8_t word[16] = { TRACE_NAME, (uint8_t)piece };

		put_le16(word + 2, (uint16_t)(f->nr - 1));
		memcpy(word + 4, path + at, piece);
		put(get_le64(word), get_le64(word + 8));
	}
	return true;
}

static struct trace_stream *find_stream(struct trace_file *f, bool logical)
{
	struct trace_stream *s, **at;

	for (at = &f->streams; (s = *at); at = &s->next)
		if (pthread_equal(s->thread, pthread_self())) {
			*at = s->next; /* the one used last is the first */
			s->next = f->streams;
			f->streams = s;
			return s;
		}
	s = has_room(1) ? mem_zalloc(sizeof(*s)) : NULL;
	if (!s)
		return NULL;
	s->thread = pthread_self();
	s->nr = (uint8_t)(nr_streams < STREAMS - 1 ? nr_streams : STREAMS - 1);
	if (nr_streams < STREAMS) {
		nr_streams++;
		put(TRACE_STREAM | (uint64_t)s->nr << 8 |
			    (uint64_t)(s->nr == STREAMS - 1 ? NO_FILE : f->nr - 1) << 16 |
			    (uint64_t)(uint32_t)sys.syscall(SYS_gettid) << 32,
		    logical);
	}
	s->next = f->streams;
	f->streams = s;
	return s;
}

void trace_forget(struct trace_file *f)
{
	struct trace_stream *s;

	while ((s = f->streams)) {
		f->streams = s->next;
		mem_free(s);
	}
	f->nr = 0;
}

/* ---- calls ---- */

static uint64_t duration(uint64_t ns)
{
	unsigned shift = 0;

	for (; ns > 2047 && shift < 31; shift++)
		ns = (ns + 1) / 2;
	return (ns > 2047 ? 2047 : ns) | shift << 11;
}

static uint64_t ticks(uint64_t ns) { return ns / TRACE_TICK_NS & UINT32_MAX; }

/* The words that a call needs before its own. */
static void put_before(struct trace_stream *s, const struct trace_call *call, uint64_t begin_ns, bool pages)
{
	if (!nr_words || begin_ns > clock_ns + CLOCK_NS || begin_ns + CLOCK_NS < clock_ns || !clock_ns) {
		clock_ns = begin_ns | 1;
		put(TRACE_CLOCK, begin_ns);
	}
	if (call->off < s->base || call->off - s->base >= 1ULL << 40) {
		s->base = call->off & ~((1ULL << 39) - 1);
		put(TRACE_BASE | (uint64_t)s->nr << 8, s->base);
	}
	if (call->len >= 1 << 24 && !pages)
		put(TRACE_LENGTH, call->len);
}

static void put_call(struct trace_stream *s, const struct trace_call *call)
{
	bool pages = call->len >= 1 << 24 && !(call->len % 4096) && call->len >> 12 < 1 << 24;
	uint64_t begin_ns = call->begin_ns - begun_ns, len = pages ? call->len >> 12 : call->len;

	put_before(s, call, begin_ns, pages);
	put((uint64_t)call->kind | (call->failed ? TRACE_FAILED : 0) | (pages ? TRACE_PAGES : 0) |
		    (uint64_t)s->nr << 8 | duration(call->end_ns - call->begin_ns) << 16 |
		    ticks(begin_ns) << 32,
	    ((call->off - s->base) & ((1ULL << 40) - 1)) | (len & 0xffffff) << 40);
}

static void put_busy(const struct trace_stream *s)
{
	s->run[2].hi = s->busy_ns;
	__atomic_store_n(&s->run[2].lo, TRACE_BUSY | ticks(s->end_ns - s->begin_ns) << 32, __ATOMIC_RELEASE);
}

static bool is_data(int kind) { return kind == 3 || kind == 4 || kind == 5; }

/* Whether the call goes on with the run; then it is in it. */
static bool grow(struct trace_stream *s, const struct trace_call *call)
{
	if (!s->run || call->kind != s->kind || call->len != s->len || call->off != s->next_off ||
	    call->failed || call->begin_ns > max_u64(s->coarse_ns, s->end_ns) + TRACE_PAUSE_NS ||
	    call->end_ns > s->begin_ns + TRACE_RUN_NS)
		return false;
	s->busy_ns += (call->end_ns - call->begin_ns) * (s->unmeasured + 1);
	s->unmeasured = 0;
	s->left = TRACE_MEASURED - 1;
	s->end_ns = call->end_ns;
	s->coarse_ns = call->end_ns;
	s->next_off += (uint64_t)s->stride;
	s->run[1].lo += 1ULL << 32;
	put_busy(s);
	return true;
}

/* Whether it becomes a run with the two before it, whose words are the last ones. */
static bool begin_run(struct trace_stream *s, const struct trace_call *call)
{
	int64_t stride = (int64_t)(s->offs[1] - s->offs[0]);

	if (s->nr_single < 2 || nr_words != s->first_word + 2 || call->kind != s->kind ||
	    call->len != s->len || call->failed || (int64_t)(call->off - s->offs[1]) != stride ||
	    call->len >= 1 << 24 || call->begin_ns > s->end_ns + TRACE_PAUSE_NS ||
	    call->end_ns > s->begins_ns[0] + TRACE_RUN_NS || call->off < s->base ||
	    call->off - s->base >= 1ULL << 40 || !has_room(1))
		return false;
	s->run = word_at(s->first_word);
	s->stride = stride;
	s->next_off = call->off + (uint64_t)stride;
	s->begin_ns = s->begins_ns[0];
	s->busy_ns += call->end_ns - call->begin_ns;
	s->end_ns = call->end_ns;
	s->coarse_ns = call->end_ns;
	s->left = TRACE_MEASURED - 1;
	s->unmeasured = 0;
	nr_words++;
	put_busy(s);
	s->run[1].hi = (uint64_t)stride;
	__atomic_store_n(&s->run[1].lo, TRACE_RUN | 3ULL << 32, __ATOMIC_RELEASE);
	return true;
}

/* What has to be known of single calls, for those that come to be a run with them. */
static void note_single(struct trace_stream *s, const struct trace_call *call, bool alone)
{
	bool goes_on = s->nr_single && alone && nr_words == s->first_word + min_u64(s->nr_single, 2) + 1 &&
		       call->kind == s->kind && call->len == s->len;

	if (!is_data(call->kind) || call->failed || !call->len || !alone) {
		s->nr_single = 0;
		return;
	}
	if (!goes_on) {
		s->nr_single = 0;
		s->first_word = nr_words - 1;
	} else if (s->nr_single == 2) {
		s->first_word++;
		s->offs[0] = s->offs[1];
		s->begins_ns[0] = s->begins_ns[1];
		s->nr_single = 1;
		s->busy_ns = s->end_ns - s->begins_ns[0];
	}
	s->busy_ns = (s->nr_single ? s->busy_ns : 0) + call->end_ns - call->begin_ns;
	s->offs[s->nr_single] = call->off;
	s->begins_ns[s->nr_single++] = call->begin_ns;
	s->kind = call->kind;
	s->len = call->len;
	s->end_ns = call->end_ns;
}

void trace_call(struct trace_file *f, const char *path, bool logical, const struct trace_call *call)
{
	int saved ERRNO_KEPT = errno;
	struct trace_stream *s;
	uint64_t before;

	mutex_lock(&lock);
	if ((!map && (is_full || !open_trace(call->begin_ns))) || (!f->nr && !name_file(f, path))) {
		if (map)
			leave_out(1, call->failed ? 0 : call->len);
		mutex_unlock(&lock);
		return;
	}
	s = find_stream(f, logical);
	if (!s || is_full) {
		leave_out(1, call->failed ? 0 : call->len);
	} else if (!grow(s, call) && !begin_run(s, call)) {
		s->run = NULL;
		if (has_room(4)) {
			before = nr_words;
			put_call(s, call);
			note_single(s, call, nr_words == before + 1 || !s->nr_single);
		} else {
			leave_out(1, call->failed ? 0 : call->len);
		}
	}
	mutex_unlock(&lock);
}

/* ---- the process ---- */

void trace_end(void)
{
	mutex_lock(&lock);
	if (map && !guard_is_broken(map)) {
		put_le32(map + 40, 1);
		room = TRACE_HEADER_LEN + nr_words * sizeof(struct trace_word);
		if (sys.ftruncate(fd, (off_t)room))
			room = 0; /* is reserved anew */
	}
	mutex_unlock(&lock);
}

void trace_fork_child(void)
{
	pthread_mutex_init(&lock, NULL); /* another thread of the parent may have had it */
	if (map) {
		guard_remove(map);
		sys.munmap(map, max_len);
		sys_fd_close(&fd);
	}
	map = NULL;
	is_full = false;
	nr_words = clock_ns = room = 0;
	nr_streams = nr_files = 0;
	job_find(&job);
}
