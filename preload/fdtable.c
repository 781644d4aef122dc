/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of descriptors. Slots are changed by atomic exchange; what has to happen to the description that
 * was in one happens afterwards. A slot is emptied before its number is closed, so a number that the kernel
 * hands out is always empty.
 */
#include "fdtable.h"

#define FDTABLE_MAX (1U << 20) /* the kernel's own default limit, fs.nr_open */

HOT_DATA struct ofile **fdtable = NULL;
HOT_DATA unsigned fdtable_len = 0;
unsigned fdtable_top;
HOT_DATA int fd_hidden_low = INT_MAX;
struct ofile fd_hidden;
static unsigned table_len; /* fdtable_len to be */
void (*fdtable_on_standard)(int fd);

static pthread_mutex_t freeze_lock = PTHREAD_MUTEX_INITIALIZER; /* before any description's lock */
static struct ofile *frozen_list; /* locked, with a reference each; by the thread that holds freeze_lock */

HOT_DATA uint8_t *fdtable_far = NULL; /* behind the table in the same mapping */

/* Numbers beyond the table have no slot: programs can see those. */
static void note_hidden(int fd, bool hidden)
{
	struct ofile *old = hidden ? NULL : &fd_hidden;
	int low = __atomic_load_n(&fd_hidden_low, __ATOMIC_RELAXED);

	while (hidden && fd < low &&
	       !__atomic_compare_exchange_n(&fd_hidden_low, &low, fd, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
	if ((unsigned)fd < table_len)
		__atomic_compare_exchange_n(&fdtable[fd], &old, hidden ? &fd_hidden : NULL, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

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
	table_len = len;
	sys_fd_noted = note_hidden;
	return 0;
}

void fdtable_start(void) { __atomic_store_n(&fdtable_len, table_len, __ATOMIC_RELEASE); }

struct ofile *fd_get_slow(int fd, bool any)
{
	struct ofile *f;

	if (unlikely(__atomic_load_n(&fdtable[fd], __ATOMIC_RELAXED) == &fd_hidden))
		return &fd_hidden;
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
	if (old && old != &fd_hidden)
		ofile_unref(old);
	if (fd <= STDERR_FILENO && f->kind == OFILE_FILE && fdtable_on_standard)
		fdtable_on_standard(fd);
	return 0;
}

struct ofile *fd_take(int fd)
{
	if ((unsigned)fd >= fdtable_len)
		return NULL;
	fd_forget_far(fd);
	if (!fd_is_ours(fd) || fd_is_hidden(fd))
		return NULL;
	return __atomic_exchange_n(&fdtable[fd], NULL, __ATOMIC_ACQ_REL);
}

int fd_drop(int fd)
{
	bool section CRITICAL = critical_begin();
	struct ofile *old = fd_take(fd);

	return old ? ofile_unref(old) : 0;
}

static void each(void (*fn)(struct ofile *f, int fd))
{
	unsigned fd, top = __atomic_load_n(&fdtable_top, __ATOMIC_RELAXED);
	struct ofile *f;

	for (fd = 0; fd < top; fd++) {
		f = fd_find((int)fd);
		if (!f)
			continue;
		fn(f, (int)fd);
		fd_put(f);
	}
}

void fd_share_all(void) { each(ofile_share); }

bool fd_is_any_logical(void)
{
	unsigned fd = 0, top = __atomic_load_n(&fdtable_top, __ATOMIC_RELAXED);

	while (fd < top && !fd_is_logical((int)fd))
		fd++;
	return fd < top;
}

static void refresh(struct ofile *f, int fd)
{
	(void)fd;
	plfs_refresh(f->file);
}

void fd_refresh_all(void) { each(refresh); }

void fd_freeze(void)
{
	unsigned fd, top;
	struct ofile *f;

	mutex_lock(&freeze_lock);
	top = __atomic_load_n(&fdtable_top, __ATOMIC_RELAXED);
	for (fd = 0; fd < top; fd++) {
		f = fd_find((int)fd);
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

static void disown(struct ofile *f, int fd)
{
	(void)fd;
	if (!f->frozen)
		ofile_disown(f);
}

void fd_disown(void) { each(disown); }

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
