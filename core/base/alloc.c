/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library's own memory, three ways: a private jemalloc (the normal build), a small allocator on mmap
 * (JEMALLOC=no, and under the thread sanitizer), and plain malloc under the address sanitizer, which is to
 * see every block (the host program of such a build is a test of ours).
 */
#include "core/base/alloc.h"

#include "core/base/critical.h"
#include "core/base/early.h"
#include "core/base/next_symbol.h"
#include "core/base/sys.h"

#if defined(PLFS_SANITIZE)

#include <stdlib.h>

static void *any_alloc(size_t len, bool zero)
{
	return zero ? calloc(1, len ? len : 1) : malloc(len ? len : 1);
}

static void *any_realloc(void *p, size_t len) { return realloc(p, len ? len : 1); }
static void any_free(void *p) { free(p); }

#else

/*
 * Where both allocators get their memory: the real functions, but not by way of the sys table, so
 * that a fault injected there always hits the caller that the test means.
 */
static struct {
	bool ready;
	void *(*mmap)(void *addr, size_t len, int prot, int flags, int fd, off_t off);
	int (*munmap)(void *addr, size_t len);
	int (*madvise)(void *addr, size_t len, int advice);
	long (*syscall)(long nr, long a, long b, long c, long d, long e, long f);
} os;

static void os_init(void)
{
	if (likely(__atomic_load_n(&os.ready, __ATOMIC_ACQUIRE)))
		return;
	/* Two threads may both do this; they store the same. Nothing is allocated for it. */
	*(void **)&os.mmap = next_symbol("mmap");
	*(void **)&os.munmap = next_symbol("munmap");
	*(void **)&os.madvise = next_symbol("madvise");
	*(void **)&os.syscall = next_symbol("syscall");
	__atomic_store_n(&os.ready, true, __ATOMIC_RELEASE);
}

#ifndef PLFS_NO_JEMALLOC

/*
 * jemalloc is linked as one object in which everything but the three functions below is local, and
 * in which what it wants of libc goes by other names (core/base/jemalloc.syms): those defined here. So
 * its malloc() is nobody's, it never enters our wrappers, it needs no libm, and neither MALLOC_CONF
 * nor /etc/malloc.conf, which are the program's, reach it.
 */
void *mallocx(size_t len, int flags);
void *rallocx(void *p, size_t len, int flags);
void dallocx(void *p, int flags);

#define MALLOCX_ZERO 0x40

/*
 * One arena does: what is allocated often is in the threads' caches, and a fork takes all locks of every
 * arena, of which the thread sanitizer of a program that was built with it can count 64. Memory goes back
 * after a second; never the program's brk.
 */
const char *plfs_jemalloc_conf = "narenas:1,dirty_decay_ms:1000,muzzy_decay_ms:0,dss:disabled";

void *plfs_jemalloc_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
int plfs_jemalloc_munmap(void *addr, size_t len);
int plfs_jemalloc_madvise(void *addr, size_t len, int advice);
long plfs_jemalloc_syscall(long nr, long a, long b, long c, long d, long e, long f);
char *plfs_jemalloc_getenv(const char *name);

/* What maps this much at once is the merge of a large index, which goes over all of it in another order. */
#define HUGE_LEN ((size_t)8 << 20)

void *plfs_jemalloc_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	void *p;

	os_init();
	p = os.mmap(addr, len, prot, flags, fd, off);
	if (p != MAP_FAILED && len >= HUGE_LEN)
		os.madvise(p, len, MADV_HUGEPAGE);
	return p;
}

int plfs_jemalloc_munmap(void *addr, size_t len)
{
	os_init();
	return os.munmap(addr, len);
}

int plfs_jemalloc_madvise(void *addr, size_t len, int advice)
{
	os_init();
	return os.madvise(addr, len, advice);
}

/* Called with fewer arguments than it takes: in our ABIs that only passes junk which nobody reads. */
long plfs_jemalloc_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	os_init();
	return os.syscall(nr, a, b, c, d, e, f);
}

char *plfs_jemalloc_getenv(const char *name)
{
	(void)name;
	return NULL;
}

/* readlink() is for /etc/malloc.conf; the others only its profiler calls, which is never on. */
#define UNUSED(name) \
	long plfs_jemalloc_##name(void); \
	long plfs_jemalloc_##name(void) { return -1; }
UNUSED(readlink)
UNUSED(open)
UNUSED(creat)
UNUSED(close)
UNUSED(log)
UNUSED(exp)
UNUSED(round)
UNUSED(backtrace)
UNUSED(backtrace_ip)
#undef UNUSED

/*
 * jemalloc sets itself up in the first call of all, at any time and beside any thread. A fork must not come
 * in between, so this call is made under a lock that forks take, and jemalloc's own preparations for a fork
 * are made behind that.
 */
int plfs_jemalloc_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

static pthread_mutex_t set_up = PTHREAD_MUTEX_INITIALIZER;
static bool is_set_up; /* written with the lock */
static void (*je_prepare)(void), (*je_parent)(void), (*je_child)(void);

int plfs_jemalloc_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
	je_prepare = prepare;
	je_parent = parent;
	je_child = child;
	return 0;
}

static void fork_prepare(void)
{
	mutex_lock(&set_up);
	if (je_prepare)
		je_prepare();
}

static void fork_parent(void)
{
	if (je_parent)
		je_parent();
	mutex_unlock(&set_up);
}

static void fork_child(void)
{
	if (je_child)
		je_child();
	mutex_unlock(&set_up);
}

static void watch_forks(void) { pthread_atfork(fork_prepare, fork_parent, fork_child); }

static bool make_set_up(void)
{
	void *p;

	mutex_lock(&set_up);
	if (!is_set_up) {
		p = mallocx(1, 0);
		if (p)
			dallocx(p, 0);
		__atomic_store_n(&is_set_up, p != NULL, __ATOMIC_RELEASE);
	}
	mutex_unlock(&set_up);
	return is_set_up;
}

/*
 * A thread's first call makes its cache, and in the first of all what the arena needs; where there is no
 * memory for that jemalloc 5.3 goes on without, and falls over it. So such a call is only made when there is
 * plenty.
 */
#define PLENTY ((size_t)8 << 20)

static __thread bool thread_is_ready __attribute__((tls_model("initial-exec")));

static bool make_ready(void)
{
	int saved_errno = errno;
	void *p;

	os_init();
	p = os.mmap(NULL, PLENTY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p != MAP_FAILED)
		os.munmap(p, PLENTY);
	thread_is_ready = p != MAP_FAILED &&
			  (likely(__atomic_load_n(&is_set_up, __ATOMIC_ACQUIRE)) || make_set_up());
	errno = saved_errno;
	return thread_is_ready;
}

static inline bool is_ready(void) { return likely(thread_is_ready) || make_ready(); }

static void *raw_alloc(size_t len) { return is_ready() ? mallocx(len ? len : 1, 0) : NULL; }
static void *raw_zalloc(size_t len) { return is_ready() ? mallocx(len ? len : 1, MALLOCX_ZERO) : NULL; }
static void *raw_realloc(void *p, size_t len) { return is_ready() ? rallocx(p, len ? len : 1, 0) : NULL; }

static void raw_free(void *p)
{
	if (is_ready()) /* else it is lost: a thread that frees something first, while there is no memory */
		dallocx(p, 0);
}

#else /* PLFS_NO_JEMALLOC */

/*
 * Sizes are powers of two from 32 bytes to 64 KiB, header included; each has a list of free
 * blocks under one lock, refilled from 256 KiB pieces that are never given back. Larger blocks
 * are mappings of their own.
 */
#define MIN_CLASS 5
#define MAX_CLASS 16
#define PIECE_LEN ((size_t)256 << 10)

struct block {
	size_t len; /* of the whole block; above 1 << MAX_CLASS it is a mapping */
	struct block *next; /* while free; else padding that keeps the data 16-byte aligned */
};
static_assert(sizeof(struct block) == 16, "data is 16-byte aligned");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *free_list[MAX_CLASS + 1]; /* under lock */

static void lock_all(void) { mutex_lock(&lock); }
static void unlock_all(void) { mutex_unlock(&lock); }

static void *map(size_t len)
{
	void *p;

	os_init();
	p = os.mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* Cut a new piece into blocks of @class. Under lock. */
static bool refill(unsigned class)
{
	char *piece = map(PIECE_LEN);

	if (!piece)
		return false;
	for (size_t at = 0; at < PIECE_LEN; at += (size_t)1 << class) {
		struct block *b = (struct block *)(piece + at);

		b->len = (size_t)1 << class;
		b->next = free_list[class];
		free_list[class] = b;
	}
	return true;
}

static void *raw_alloc(size_t len)
{
	struct block *b = NULL;
	unsigned class = MIN_CLASS;
	int saved_errno = errno;

	if (len > SIZE_MAX / 2)
		return NULL;
	len += sizeof(*b);
	if (len > (size_t)1 << MAX_CLASS) {
		len = round_up_u64(len, 4096);
		b = map(len);
		if (b)
			b->len = len;
	} else {
		while ((size_t)1 << class < len)
			class++;
		mutex_lock(&lock);
		if (free_list[class] || refill(class)) {
			b = free_list[class];
			free_list[class] = b->next;
		}
		mutex_unlock(&lock);
	}
	errno = saved_errno;
	return b ? b + 1 : NULL;
}

/* A child of fork must not find the lock held by a thread that it does not have. */
static void watch_forks(void) { pthread_atfork(lock_all, unlock_all, unlock_all); }

static void raw_free(void *p)
{
	struct block *b = (struct block *)p - 1;
	int saved_errno = errno;

	if (b->len > (size_t)1 << MAX_CLASS) {
		os.munmap(b, b->len);
		errno = saved_errno;
		return;
	}
	mutex_lock(&lock);
	b->next = free_list[__builtin_ctzl(b->len)];
	free_list[__builtin_ctzl(b->len)] = b;
	mutex_unlock(&lock);
}

static void *raw_zalloc(size_t len)
{
	void *p = raw_alloc(len);

	return p ? memset(p, 0, len) : NULL;
}

static void *raw_realloc(void *p, size_t len)
{
	size_t room = ((struct block *)p - 1)->len - sizeof(struct block);
	void *q;

	if (len <= room && len >= room / 4)
		return p;
	q = raw_alloc(len);
	if (q) {
		memcpy(q, p, min_size(len, room));
		raw_free(p);
	}
	return q;
}

#endif /* PLFS_NO_JEMALLOC */

/*
 * In the first allocation of all, before the rest of the library watches forks: what that does in its own
 * handlers may still allocate and free.
 */
static void begin_once(void)
{
	static bool begun; /* atomic */

	if (likely(__atomic_load_n(&begun, __ATOMIC_RELAXED)))
		return;
	if (!__atomic_exchange_n(&begun, true, __ATOMIC_RELAXED))
		watch_forks();
}

static void *any_alloc(size_t len, bool zero)
{
	void *p;

	begin_once();
	p = early_alloc(len, zero);
	return p ? p : zero ? raw_zalloc(len) : raw_alloc(len);
}

static void *any_realloc(void *p, size_t len)
{
	void *q;

	if (likely(!early_has(p)))
		return raw_realloc(p, len);
	if (len <= early_len(p))
		return p;
	q = any_alloc(len, false);
	if (q) {
		memcpy(q, p, early_len(p));
		early_free(p);
	}
	return q;
}

static void any_free(void *p) { early_has(p) ? early_free(p) : raw_free(p); }

#endif /* PLFS_SANITIZE */

bool (*mem_refuses)(void);

static inline bool refuses(void) { return unlikely(mem_refuses) && mem_refuses(); }

void *mem_alloc(size_t len)
{
	bool section CRITICAL = critical_begin();

	return refuses() ? NULL : any_alloc(len, false);
}

void *mem_zalloc(size_t len)
{
	bool section CRITICAL = critical_begin();

	return refuses() ? NULL : any_alloc(len, true);
}

void *mem_realloc(void *p, size_t len)
{
	bool section CRITICAL = critical_begin();

	if (refuses())
		return NULL;
	return p ? any_realloc(p, len) : any_alloc(len, false);
}

char *mem_strdup(const char *s)
{
	size_t len = strlen(s) + 1;
	char *copy = mem_alloc(len);

	return copy ? memcpy(copy, s, len) : NULL;
}

void mem_free(void *p)
{
	bool section CRITICAL = critical_begin();

	if (p)
		any_free(p);
}
