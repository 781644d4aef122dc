/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of real functions. Inside libplfs.so a call of open() by name would reach our own wrapper; that
 * is why nothing below preload/ makes one.
 */
#include "core/base/sys.h"

#include "core/base/next_symbol.h"

#include <gnu/libc-version.h>
#include <link.h>

struct sys_table sys;

static bool table_is_full;

static const struct {
	const char *name;
	size_t member;
} SYMBOLS[] = {
#define SYS_SYMBOL(ret, name, args) { #name, offsetof(struct sys_table, name) },
	SYS_CALLS(SYS_SYMBOL)
#undef SYS_SYMBOL
};

/*
 * Before 2.33 glibc has the stat and mknod families only as these, with a version of the struct
 * before the arguments: 1 on x86-64, 0 elsewhere (mknod: 0 everywhere).
 */
#ifdef __x86_64__
#define OLD_STAT_VERSION 1
#else
#define OLD_STAT_VERSION 0
#endif

static struct {
	int (*xstat)(int version, const char *path, struct stat *st);
	int (*lxstat)(int version, const char *path, struct stat *st);
	int (*fxstat)(int version, int fd, struct stat *st);
	int (*fxstatat)(int version, int dirfd, const char *path, struct stat *st, int flags);
	int (*xmknod)(int version, const char *path, mode_t mode, dev_t *dev);
	int (*xmknodat)(int version, int dirfd, const char *path, mode_t mode, dev_t *dev);
} old_libc;

static int old_stat(const char *path, struct stat *st)
{
	return old_libc.xstat(OLD_STAT_VERSION, path, st);
}

static int old_lstat(const char *path, struct stat *st)
{
	return old_libc.lxstat(OLD_STAT_VERSION, path, st);
}

static int old_fstat(int fd, struct stat *st)
{
	return old_libc.fxstat(OLD_STAT_VERSION, fd, st);
}

static int old_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	return old_libc.fxstatat(OLD_STAT_VERSION, dirfd, path, st, flags);
}

static int old_mknod(const char *path, mode_t mode, dev_t dev)
{
	return old_libc.xmknod(0, path, mode, &dev);
}

static int old_mknodat(int dirfd, const char *path, mode_t mode, dev_t dev)
{
	return old_libc.xmknodat(0, dirfd, path, mode, &dev);
}

static void use_old_libc(struct sys_table *table)
{
	*(void **)&old_libc.xstat = next_symbol("__xstat");
	*(void **)&old_libc.lxstat = next_symbol("__lxstat");
	*(void **)&old_libc.fxstat = next_symbol("__fxstat");
	*(void **)&old_libc.fxstatat = next_symbol("__fxstatat");
	*(void **)&old_libc.xmknod = next_symbol("__xmknod");
	*(void **)&old_libc.xmknodat = next_symbol("__xmknodat");
	table->stat = old_stat;
	table->lstat = old_lstat;
	table->fstat = old_fstat;
	table->fstatat = old_fstatat;
	table->mknod = old_mknod;
	table->mknodat = old_mknodat;
}

static int openat2_by_number(int dirfd, const char *path, struct open_how *how, size_t size)
{
	return (int)sys.syscall(SYS_openat2, dirfd, path, how, size);
}

static bool begins_with(const char *name, const char *begin)
{
	while (*begin && *name == *begin)
		name++, begin++;
	return !*begin;
}

/*
 * Whether the C library is known to be too old for @name: asking it would allocate the message, in the
 * initialisation of the program's own allocator perhaps, which would then wait for itself.
 */
static bool is_newer(const char *name)
{
	const char *version = gnu_get_libc_version();
	/* "2.36"; by hand, for a sanitizer that is starting has its own idea of atoi() and strncmp() */
	int minor = version[0] == '2' && version[3] ? (version[2] - '0') * 10 + version[3] - '0' : 99;

	return (minor < 38 && begins_with(name, "__isoc23_")) ||
	       (minor < 39 && begins_with(name, "pidfd_spawn"));
}

/*
 * dlsym() allocates nothing when it finds the symbol (next_symbol.h). When it does not, its message is
 * allocated by the program's malloc, which may open files and so come back here through a wrapper: the inner
 * call then continues where the outer one stands, and returns with the table full. Two threads may fill it at
 * the same time; they store the same values.
 */
void sys_init(void)
{
	static __thread unsigned next __attribute__((tls_model("initial-exec")));
	static __thread bool asked __attribute__((tls_model("initial-exec")));
	int saved_errno = errno;
	bool missing = false;

	if (likely(__atomic_load_n(&table_is_full, __ATOMIC_ACQUIRE)))
		return;
	if (!asked) { /* a sanitizer may start at the first question, and needs all of the answers */
		asked = true;
		next_symbol("getpid");
	}
	while (next < ARRAY_SIZE(SYMBOLS)) {
		unsigned i = next++;
		void *symbol = is_newer(SYMBOLS[i].name) ? NULL : next_symbol(SYMBOLS[i].name);

		__atomic_store_n((void **)((char *)&sys + SYMBOLS[i].member), symbol, __ATOMIC_RELAXED);
		missing |= !symbol;
	}
	if (!sys.stat) /* the thread sanitizer of gcc 10 has an fstat() where the C library has none */
		use_old_libc(&sys);
	sys.openat2 = openat2_by_number;
	if (missing)
		dlerror(); /* the program must not find our message */
	__atomic_store_n(&table_is_full, true, __ATOMIC_RELEASE);
	errno = saved_errno;
}

struct range {
	uintptr_t start, end;
};

/* Widen @arg to the whole of the object that holds its start. */
static int find_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct range *r = arg, all = { UINTPTR_MAX, 0 };

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		all.start = at < all.start ? at : all.start;
		all.end =
			at + info->dlpi_phdr[i].p_memsz > all.end ? at + info->dlpi_phdr[i].p_memsz : all.end;
	}
	if (r->start < all.start || r->start >= all.end)
		return 0;
	*r = all;
	return 1;
}

/* dladdr() would tell as well, but it goes through all symbols: 20 us, and every program pays. */
bool sys_is_libc(void *function)
{
	static struct range libc; /* whoever comes first stores the same, the end last */
	struct range r = { (uintptr_t)gnu_get_libc_version, 0 };
	uintptr_t end = __atomic_load_n(&libc.end, __ATOMIC_ACQUIRE);

	if (!end && dl_iterate_phdr(find_object, &r)) {
		end = r.end;
		__atomic_store_n(&libc.start, r.start, __ATOMIC_RELAXED);
		__atomic_store_n(&libc.end, end, __ATOMIC_RELEASE);
	}
	return (uintptr_t)function >= __atomic_load_n(&libc.start, __ATOMIC_RELAXED) &&
	       (uintptr_t)function < end;
}
