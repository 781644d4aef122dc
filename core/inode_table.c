/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of inodes: how one is found, made, and ended with the last description or with the process.
 */
#include "inode.h"

#include "bare.h"
#include "file.h"
#include "sys.h"

static struct inode *table;
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
	ino->first_ctim = st->st_ctim;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP); /* mostly it is held for less than a sleep takes */
	pthread_mutex_init(&ino->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	reader_init(&ino->r, &ino->c);
	ret = st->st_size ? stub_read(fd, &ino->stub) : 0;
	if (!ret) {
		inode_adopt_container(ino, st);
		ino->body_len = inode_told_len(ino, st->st_size);
		HASH_ADD(hh, table, key, sizeof(ino->key), ino);
		ret = ino->hh.tbl ? 0 : -ENOMEM;
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
 * Remove the container of a stub that has no name left, unless somebody has it open. Our own mark goes before the
 * names are looked at: whoever takes the last one looks at the marks after that, so one of the two sees what the
 * other did. A description that other processes may share keeps its mark: it is asked for through another, when it is
 * closed here. A container that others have made since we looked is left to us as well.
 */
static void remove_if_unlinked(struct inode *ino, struct plfs_file *f)
{
	struct stat st;
	int other = -1, ask;

	if (ino->stub.in_body)
		return;
	if (!ino->shared)
		stub_unmark_in_use(file_marked_fd(f));
	if (sys.fstat(f->fd, &st) || st.st_nlink || bare_look(ino, f->fd) || !ino->stub.has_container)
		return;
	if (ino->shared) {
		other = stub_reopen(f->fd, O_RDONLY);
		file_close_fds(f);
	}
	ask = ino->shared ? other : file_marked_fd(f);
	if (ask >= 0 && !stub_in_use(ask))
		inode_remove_container(ino, true);
	sys_fd_close(&other);
}

void inode_finish(struct inode *ino, int fd)
{
	struct stat st;
	int other;

	inode_close_writer(ino, fd);
	if (fd >= 0)
		inode_publish_found(ino, fd);
	if (ino->shared || fd < 0 || sys.fstat(fd, &st) || st.st_nlink || bare_look(ino, fd) || !ino->stub.has_container)
		return;
	other = stub_reopen(fd, O_RDONLY);
	for (const struct plfs_file *f = ino->files; f; f = f->next)
		stub_unmark_in_use(file_marked_fd(f));
	if (other >= 0 && !stub_in_use(other)) {
		inode_remove_container(ino, true);
		ino->removed = true;
	}
	sys_fd_close(&other);
}

void inode_put(struct inode *ino, struct plfs_file *f)
{
	bool last;

	mutex_lock(&table_lock);
	last = --ino->refs == 0;
	if (last)
		HASH_DEL(table, ino);
	mutex_unlock(&table_lock);
	if (last) {
		inode_close_writer(ino, f ? f->fd : -1);
		if (ino->lock_h >= 0)
			store_close(&ino->m->store, &ino->lock_h);
		sys_fd_close(&ino->move_fd);
		if (f)
			remove_if_unlinked(ino, f);
		reader_release(&ino->r);
		pthread_mutex_destroy(&ino->lock);
		mem_free(ino);
	}
	if (f)
		file_close_fds(f);
}

/* ---- all ---- */

void inode_each(void (*fn)(struct inode *ino, int fd))
{
	struct inode *ino, *tmp;

	mutex_lock(&table_lock);
	HASH_ITER(hh, table, ino, tmp) {
		mutex_lock(&ino->lock);
		fn(ino, file_any_fd(ino));
		mutex_unlock(&ino->lock);
	}
	mutex_unlock(&table_lock);
}

void inode_lock_all(void)
{
	struct inode *ino, *tmp;

	mutex_lock(&table_lock);
	HASH_ITER(hh, table, ino, tmp)
		mutex_lock(&ino->lock);
	mapping_freeze();
}

void inode_unlock_all(void)
{
	struct inode *ino, *tmp;

	mapping_thaw();
	HASH_ITER(hh, table, ino, tmp)
		mutex_unlock(&ino->lock);
	mutex_unlock(&table_lock);
}
