/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of descriptors. Slots are changed by atomic exchange; what has to happen to the description that
 * was in one happens afterwards. A slot is emptied before its number is closed, so a number that the kernel
 * hands out is always empty.
 */
#include "fdtable.h"

#include "path.h"
#include "stream.h"

#define FDTABLE_MAX (1U << 20) /* the kernel's own default limit, fs.nr_open */

HOT_DATA struct ofile **fdtable = NULL;
HOT_DATA unsigned fdtable_len = 0;
unsigned fdtable_top;

static pthread_mutex_t freeze_lock = PTHREAD_MUTEX_INITIALIZER; /* before any description's lock */
static struct ofile *frozen_list; /* locked, with a reference each; by the thread that holds freeze_lock */

HOT_DATA uint8_t *fdtable_far = NULL; /* behind the table in the same mapping */

int fdtable_init(void)
{
	struct rlimit lim;
	unsigned len = FDTABLE_MAX;
	void *map;

	if (!sys.getrlimit(RLIMIT_NOFILE, &lim) && lim.rlim_max < len)
		len = (unsigned)lim.rlim_max;
	map = sys.mmap(NULL, len * (sizeof(*fdtable) + 1), PROT_READ | PROT_WRITE,
	               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	fdtable = map;
	fdtable_far = (uint8_t *)(fdtable + len);
	__atomic_store_n(&fdtable_len, len, __ATOMIC_RELEASE);
	return 0;
}

struct ofile *fd_get_slow(int fd, bool any)
{
	struct ofile *f;

	critical_enter();
	while ((f = __atomic_load_n(&fdtable[fd], __ATOMIC_ACQUIRE))) {
		if (!ofile_try_get(f))
			continue; /* dropped in between: the slot has changed */
		if (__atomic_load_n(&fdtable[fd], __ATOMIC_ACQUIRE) == f) {
			if (any || f->kind == OFILE_FILE)
				return f;
			ofile_unref(f);
			break;
		}
		ofile_unref(f);
	}
	critical_leave();
	return NULL;
}

/* The slot of @fd is about to be used. */
static void raise_top(int fd)
{
	unsigned top = __atomic_load_n(&fdtable_top, __ATOMIC_RELAXED);

	while (top <= (unsigned)fd && !__atomic_compare_exchange_n(&fdtable_top, &top, (unsigned)fd + 1,
	                                                           false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

int fd_install(int fd, struct ofile *f)
{
	struct ofile *old;

	if ((unsigned)fd >= fdtable_len) {
		ofile_unref(f);
		return -EMFILE;
	}
	raise_top(fd);
	fd_forget_far(fd);
	old = __atomic_exchange_n(&fdtable[fd], f, __ATOMIC_ACQ_REL);
	if (old)
		ofile_unref(old);
	if (fd <= STDERR_FILENO && f->kind == OFILE_FILE)
		stream_hook(fd);
	return 0;
}

struct ofile *fd_take(int fd)
{
	if ((unsigned)fd >= fdtable_len)
		return NULL;
	fd_forget_far(fd);
	if (!__atomic_load_n(&fdtable[fd], __ATOMIC_RELAXED))
		return NULL;
	return __atomic_exchange_n(&fdtable[fd], NULL, __ATOMIC_ACQ_REL);
}

int fd_drop(int fd)
{
	bool section CRITICAL = critical_begin();
	struct ofile *old = fd_take(fd);

	return old ? ofile_unref(old) : 0;
}

void fd_share_all(void)
{
	unsigned fd, top = __atomic_load_n(&fdtable_top, __ATOMIC_RELAXED);
	struct ofile *f;

	for (fd = 0; fd < top; fd++) {
		f = fd_get((int)fd);
		if (!f)
			continue;
		ofile_share(f, (int)fd);
		fd_put(f);
	}
}

void fd_refresh_all(void)
{
	unsigned fd, top = __atomic_load_n(&fdtable_top, __ATOMIC_RELAXED);
	struct ofile *f;

	for (fd = 0; fd < top; fd++) {
		f = fd_get((int)fd);
		if (!f)
			continue;
		plfs_refresh(f->file);
		fd_put(f);
	}
}

void fd_freeze(void)
{
	unsigned fd, top;
	struct ofile *f;

	mutex_lock(&freeze_lock);
	top = __atomic_load_n(&fdtable_top, __ATOMIC_RELAXED);
	for (fd = 0; fd < top; fd++) {
		f = fd_get((int)fd);
		if (!f)
			continue;
		if (f->frozen) { /* another descriptor of one that we have */
			ofile_freeze(f, (int)fd);
			fd_put(f);
			continue;
		}
		ofile_freeze(f, (int)fd);
		f->next_frozen = frozen_list;
		frozen_list = f;
	}
	ofile_freeze_list();
}

void fd_thaw(void)
{
	struct ofile *f;

	ofile_thaw_list();
	while ((f = frozen_list)) {
		frozen_list = f->next_frozen;
		ofile_thaw(f);
		fd_put(f);
	}
	mutex_unlock(&freeze_lock);
}

void fd_set_far(int fd)
{
	if ((unsigned)fd >= fdtable_len)
		return;
	raise_top(fd);
	__atomic_store_n(&fdtable_far[fd], 1, __ATOMIC_RELAXED);
}

void fd_adopt(int fd)
{
	struct plfs_file *file = NULL;
	struct plfs_mount *m;
	struct ofile *f = NULL;
	struct stat st;
	int r;

	if (sys_fd_is_hidden(fd) || sys.fstat(fd, &st))
		return;
	if (plfs_maybe_stub(st.st_mode)) {
		r = plfs_adopt(fd, &file);
		if (r < 0)
			log_error("descriptor %d: cannot be used: %s", fd, strerror(-r));
		if (file)
			f = ofile_new_heir(file, fd);
	} else if (S_ISDIR(st.st_mode)) {
		m = path_mount_of_dir(fd);
		if (m)
			f = ofile_new_dir(m, NULL);
	}
	if (f)
		fd_install(fd, f);
}

/*
 * Call fd_adopt() for each number named in the directory @dirfd, /proc/self/fd. No malloc: this runs in
 * initialisers.
 */
static void adopt_listed(int dirfd)
{
	union {
		struct dirent64 entry;
		char bytes[4096];
	} buf;
	const struct dirent64 *e;
	const char *p;
	ssize_t len, at;
	int fd;

	while ((len = sys.getdents64(dirfd, &buf, sizeof(buf))) > 0) {
		for (at = 0; at < len; at += e->d_reclen) {
			e = (const struct dirent64 *)(buf.bytes + at);
			for (fd = 0, p = e->d_name; *p >= '0' && *p <= '9'; p++)
				fd = fd * 10 + (*p - '0');
			if (p != e->d_name && fd != dirfd)
				fd_adopt(fd);
		}
	}
}

void fd_adopt_inherited(void)
{
	int fd, dirfd;

	dirfd = sys.openat(AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd >= 0 && sys.getdents64) {
		adopt_listed(dirfd);
	} else { /* no /proc: the ones that shells hand out */
		for (fd = 0; fd < 64; fd++)
			fd_adopt(fd);
	}
	if (dirfd >= 0)
		sys.close(dirfd);
}
