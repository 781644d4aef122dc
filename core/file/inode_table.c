/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of inodes: how one is found, made, and ended with the last description or with the process.
 */
#include "core/file/inode.h"

#include "core/backend/stub_use.h"
#include "core/file/accessed.h"
#include "core/file/sweep.h"
#include "core/file/logged.h"
#include "core/file/release.h"
#include "core/file/file.h"
#include "core/base/io.h"
#include "core/base/sys.h"

static struct inode *table;
static uint64_t nr_made; /* under the table's lock */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static struct inode *find_locked(dev_t dev, ino_t number)
{
	struct inode_key key;
	struct inode *ino;

	memset(&key, 0, sizeof(key));
	key.dev = dev;
	key.ino = number;
	HASH_FIND(hh, table, &key, sizeof(key), ino);
	if (ino)
		ino->refs++;
	return ino;
}

struct inode *inode_find(dev_t dev, ino_t number)
{
	struct inode *ino;

	if (!__atomic_load_n(&table, __ATOMIC_RELAXED))
		return NULL;
	mutex_lock(&table_lock);
	ino = find_locked(dev, number);
	mutex_unlock(&table_lock);
	return ino;
}

int inode_get(struct plfs_mount *m, int fd, const struct stat *st, struct inode **out)
{
	pthread_mutexattr_t attr;
	struct inode *ino;
	int ret = 0;

	mutex_lock(&table_lock);
	ino = find_locked(st->st_dev, st->st_ino);
	if (ino)
		goto out;
	ret = -ENOMEM;
	ino = mem_zalloc(sizeof(*ino));
	if (!ino)
		goto out;
	ino->key.dev = st->st_dev;
	ino->key.ino = st->st_ino;
	ino->refs = 1;
	ino->m = m;
	ino->lock_h = ino->move_fd = -1;
	ino->v.first_ctim = st->st_ctim;
	ino->access_due = accessed_is_due(st);
	pthread_mutexattr_init(&attr);
	/* mostly it is held for less than a sleep takes */
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&ino->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	reader_init(&ino->v.r, &ino->c);
	ret = st->st_size ? inode_read_header(ino, fd, st) : 0;
	if (!ret) {
		ino->v.told_len = view_told_len(&ino->v, st->st_size);
		ino->number = ++nr_made;
		HASH_ADD(hh, table, key, sizeof(ino->key), ino);
		ino->listed = ino->hh.tbl;
		ret = ino->listed ? 0 : -ENOMEM;
	}
	if (ret) {
		mem_free(ino);
		ino = NULL;
	}
out:
	mutex_unlock(&table_lock);
	*out = ino;
	return ret;
}

/*
 * Remove the container of a stub that has no name left, unless another process has it open. Our own mark goes
 * before the names are looked at. A process that removes the last name looks at the marks after that. So one
 * of the two sees what the other did. A description that other processes may share keeps its mark: it is
 * asked for through another, when it is closed here. A container that others have made since we looked is
 * left to us as well.
 */
static void remove_if_unlinked(struct inode *ino, struct plfs_file *f)
{
	struct stat st;
	int other = -1, ask;

	if (ino->v.stub.in_body)
		return;
	if (!ino->shared)
		stub_unmark_in_use(file_marked_fd(f));
	if (sys.fstat(f->fd, &st) || st.st_nlink || inode_look_bare(ino, f->fd) || !ino->v.stub.has_container)
		return;
	if (ino->shared) {
		other = stub_reopen(f->fd, O_RDONLY);
		file_close_fds(f);
	}
	ask = ino->shared ? other : file_marked_fd(f);
	if (ask >= 0 && !stub_in_use(ask)) {
		inode_seek_container(ino, ask);
		inode_remove_container(ino, true);
		ino->removed = true;
	}
	sys_fd_close(&other);
}

static void sweep_by(struct inode *ino, const struct plfs_file *f)
{
	if (f->writable)
		sweep(ino, f->fd, ino->shared ? -1 : file_marked_fd(f));
}

void inode_finish(struct inode *ino, int fd)
{
	struct stat st;
	int other;

	logged_close_writer(ino, fd);
	release_end(ino, fd);
	for (const struct plfs_file *f = ino->files; f; f = f->next)
		if (f->fd == fd)
			sweep_by(ino, f);
	if (fd >= 0)
		accessed_note(ino, fd);
	if (fd >= 0)
		logged_publish_found(ino, fd);
	if (ino->shared || fd < 0 || sys.fstat(fd, &st) || st.st_nlink || inode_look_bare(ino, fd) ||
	    !ino->v.stub.has_container)
		return;
	other = stub_reopen(fd, O_RDONLY);
	for (const struct plfs_file *f = ino->files; f; f = f->next)
		stub_unmark_in_use(file_marked_fd(f));
	if (other >= 0 && !stub_in_use(other)) {
		inode_seek_container(ino, other);
		inode_remove_container(ino, true);
		ino->removed = true;
	}
	sys_fd_close(&other);
}

static void close_helpers(struct inode *ino)
{
	if (ino->lock_h >= 0)
		store_close(&ino->m->store, &ino->lock_h);
	sys_fd_close(&ino->move_fd);
}

/*
 * With the last description all use of the file ends, though calls of other threads may have references
 * still.
 */
static void end_use(struct inode *ino, struct plfs_file *last)
{
	logged_close_writer(ino, last->fd);
	sweep_by(ino, last);
	accessed_note(ino, last->fd);
	close_helpers(ino);
	remove_if_unlinked(ino, last);
}

static void free_inode(struct inode *ino)
{
	close_helpers(ino);
	if (ino->removed)
		reader_release(&ino->v.r);
	else
		reader_park(&ino->v.r);
	if (unlikely(ino->tally != NULL))
		observe_leave(ino->tally, &ino->lock);
	pthread_mutex_destroy(&ino->lock);
	mem_free(ino);
}

/* Who has its descriptors closed takes it out first: from then on its number may be another file's. */
static void drop(struct inode *ino, bool over)
{
	bool last;

	mutex_lock(&table_lock);
	last = --ino->refs == 0;
	if ((last || over) && ino->listed) {
		HASH_DEL(table, ino);
		ino->listed = false;
	}
	mutex_unlock(&table_lock);
	if (last)
		free_inode(ino);
}

void inode_put(struct inode *ino, struct plfs_file *f)
{
	bool over = false;

	if (f) {
		mutex_lock(&ino->lock);
		over = !ino->files;
		if (over)
			end_use(ino, f);
		ino->over |= over;
		mutex_unlock(&ino->lock);
	}
	drop(ino, over);
	if (f)
		file_close_fds(f);
}

void inode_put_over(struct inode *ino) { drop(ino, true); }

/* ---- all ---- */

/* The one made after @ino, NULL: the first, with a reference; none with a number above @newest. */
static struct inode *next_inode(const struct inode *ino, uint64_t newest)
{
	struct inode *next;

	mutex_lock(&table_lock);
	next = ino && ino->listed ? ino->hh.next : table;
	while (ino && next && next->number <= ino->number)
		next = next->hh.next;
	if (next && next->number > newest)
		next = NULL;
	if (next)
		next->refs++;
	mutex_unlock(&table_lock);
	return next;
}

void inode_each(void (*fn)(struct inode *ino, int fd))
{
	struct inode *ino, *next;
	uint64_t newest;

	mutex_lock(&table_lock);
	newest = nr_made;
	mutex_unlock(&table_lock);
	for (ino = next_inode(NULL, newest); ino; ino = next) {
		mutex_lock(&ino->lock);
		if (ino->files)
			fn(ino, inode_any_fd(ino));
		mutex_unlock(&ino->lock);
		next = next_inode(ino, newest);
		inode_put(ino, NULL);
	}
}

void inode_lock_all(void)
{
	struct inode *ino, *tmp;

	mutex_lock(&table_lock);
	HASH_ITER(hh, table, ino, tmp)
		mutex_lock(&ino->lock);
}

void inode_drop_threads(void)
{
	struct inode *ino, *tmp;

	HASH_ITER(hh, table, ino, tmp) {
		ino->refs = 0;
		for (const struct plfs_file *f = ino->files; f; f = f->next)
			ino->refs++;
		if (!ino->refs) {
			HASH_DEL(table, ino);
			free_inode(ino);
		}
	}
}

void inode_unlock_all(void)
{
	struct inode *ino, *tmp;

	HASH_ITER(hh, table, ino, tmp)
		mutex_unlock(&ino->lock);
	mutex_unlock(&table_lock);
}
