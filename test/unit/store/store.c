/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract of store.h, on each store: on a directory, in memory, and on a directory with nothing but the
 * twelve calls and rmdir, and with handles that no kernel knows.
 */
#include "test/lib/scratch.h"

#include "core/base/alloc.h"
#include "core/base/guard.h"
#include "core/base/io.h"
#include "core/store/memory.h"
#include "core/store/posix.h"

#include <criterion/criterion.h>

static struct store store;

/* ---- the third ---- */

#define SHIFT (1 << 20)

static struct store under; /* the bare store's */

static int bare_handle(int h) { return h < 0 ? h : h + SHIFT; }

static int bare_open(struct store *s, const char *path, int flags, mode_t mode)
{
	(void)s;
	return bare_handle(store_open(&under, path, flags, mode));
}

static int bare_close(struct store *s, int *h)
{
	int fd = *h < 0 ? *h : *h - SHIFT;

	(void)s;
	*h = -1;
	return store_close(&under, &fd);
}

static ssize_t bare_pread(struct store *s, int h, void *buf, size_t len, uint64_t off)
{
	(void)s;
	return under.ops->pread(&under, h - SHIFT, buf, len, off);
}

static ssize_t bare_pwrite(struct store *s, int h, const void *buf, size_t len, uint64_t off)
{
	(void)s;
	return under.ops->pwrite(&under, h - SHIFT, buf, len, off);
}

static int bare_fstat(struct store *s, int h, struct stat *st)
{
	(void)s;
	return under.ops->fstat(&under, h - SHIFT, st);
}

static int bare_truncate(struct store *s, int h, uint64_t len)
{
	(void)s;
	return under.ops->truncate(&under, h - SHIFT, len);
}

static int bare_sync(struct store *s, int h, bool dir)
{
	(void)s;
	return under.ops->sync(&under, h - SHIFT, dir);
}

/* These take no handle: @s has the root of the store below. */
static struct store_ops bare_ops;

static void open_bare(void)
{
	cr_assert_eq(store_posix_open(&under, scratch), 0);
	bare_ops = (struct store_ops){
		.open = bare_open,
		.close = bare_close,
		.pread = bare_pread,
		.pwrite = bare_pwrite,
		.fstat = bare_fstat,
		.truncate = bare_truncate,
		.sync = bare_sync,
		.stat = under.ops->stat,
		.mkdir = under.ops->mkdir,
		.unlink = under.ops->unlink,
		.rename = under.ops->rename,
		.list = under.ops->list,
		.rmdir = under.ops->rmdir,
	};
	store = under;
	store.ops = &bare_ops;
}

/* ---- each case on each ---- */

static void setup_posix(void)
{
	scratch_dir();
	cr_assert_eq(store_posix_open(&store, scratch), 0);
}

static void setup_memory(void)
{
	scratch_dir();
	cr_assert_eq(store_memory_open(&store), 0);
}

static void setup_bare(void)
{
	scratch_dir();
	open_bare();
}

static void fini_memory(void)
{
	store_memory_close(&store);
	scratch_remove();
}

TestSuite(store_posix, .init = setup_posix, .fini = scratch_remove);
TestSuite(store_memory, .init = setup_memory, .fini = fini_memory);
TestSuite(store_bare, .init = setup_bare, .fini = scratch_remove);

#define STORE_TEST(name)                        \
	static void name(void);                 \
	Test(store_posix, name) { name(); }     \
	Test(store_memory, name) { name(); }    \
	Test(store_bare, name) { name(); }      \
	static void name(void)

static int opened(const char *path, int flags)
{
	bool made;
	int h = (flags & (O_CREAT | O_EXCL)) == O_CREAT ?
			store_open_or_make(&store, path, flags & ~O_CREAT, 0644, &made) :
			store_open(&store, path, flags, 0644);

	cr_assert_geq(h, 0, "%s: %d", path, h);
	return h;
}

static void put_text(const char *path, const char *text)
{
	int h = opened(path, O_RDWR | O_CREAT | O_TRUNC);

	cr_assert_eq(store.ops->pwrite(&store, h, text, strlen(text), 0), (ssize_t)strlen(text));
	cr_assert_eq(store_close(&store, &h), 0);
	cr_assert_eq(h, -1);
}

static const char *text_of(const char *path)
{
	static char buf[64];
	int h = opened(path, O_RDONLY);
	ssize_t n = store.ops->pread(&store, h, buf, sizeof(buf) - 1, 0);

	cr_assert_geq(n, 0);
	buf[n] = '\0';
	store_close(&store, &h);
	return buf;
}

static uint64_t size_of(int h)
{
	struct stat st;

	cr_assert_eq(store.ops->fstat(&store, h, &st), 0);
	return (uint64_t)st.st_size;
}

static int stat_of(const char *path)
{
	struct stat st;

	return store.ops->stat(&store, path, &st);
}

/* ---- opening ---- */

STORE_TEST(what_is_not_there_is_not_opened)
{
	cr_assert_eq(store_open(&store, "a", O_RDONLY, 0), -ENOENT);
	cr_assert_eq(store_open(&store, "a/b", O_RDWR | O_CREAT | O_EXCL, 0644), -ENOENT);
	cr_assert_eq(stat_of("a"), -ENOENT);
	cr_assert_eq(stat_of("a/b"), -ENOENT);
}

STORE_TEST(a_file_is_made_once)
{
	int h = opened("a", O_RDWR | O_CREAT | O_EXCL), again;

	cr_assert_eq(store_open(&store, "a", O_RDWR | O_CREAT | O_EXCL, 0644), -EEXIST);
	again = opened("a", O_RDWR | O_CREAT);
	cr_assert_neq(h, again);
	cr_assert_eq(size_of(again), 0);
	store_close(&store, &h);
	store_close(&store, &again);
	cr_assert_eq(store_close(&store, &h), 0, "-1 is ignored");
}

STORE_TEST(a_name_of_the_wrong_kind_is_eio)
{
	msg_is_muted = true;
	put_text("file", "x");
	cr_assert_eq(store.ops->mkdir(&store, "dir", 0755), 0);
	cr_assert_eq(store_open(&store, "dir", O_RDWR, 0), -EIO);
	cr_assert_eq(store_open(&store, "dir", O_RDWR | O_CREAT | O_EXCL, 0644), -EEXIST);
	cr_assert_eq(store_open(&store, "file", O_RDONLY | O_DIRECTORY, 0), -EIO);
	cr_assert_eq(store_open(&store, "file/below", O_RDWR | O_CREAT | O_EXCL, 0644), -EIO);
	cr_assert_eq(store_open(&store, "../x", O_RDWR | O_CREAT | O_EXCL, 0644), -EIO);
	cr_assert_eq(stat_of("file/below"), -ENOTDIR);
}

STORE_TEST(a_file_has_the_mode_that_was_asked_for)
{
	mode_t old = umask(077);
	int h = store_open(&store, "a", O_RDWR | O_CREAT | O_EXCL, 0664);
	struct stat st;

	cr_assert_eq(store.ops->mkdir(&store, "dir", 0775), 0);
	umask(old);
	cr_assert_eq(store.ops->fstat(&store, h, &st), 0);
	cr_assert(S_ISREG(st.st_mode));
	cr_assert_eq(st.st_mode & 0777, 0664);
	cr_assert_eq(st.st_uid, geteuid());
	cr_assert_eq(store.ops->stat(&store, "dir", &st), 0);
	cr_assert(S_ISDIR(st.st_mode));
	cr_assert_eq(st.st_mode & 0777, 0775);
	store_close(&store, &h);
}

/* Who made it is not known, nor whose it is. */
STORE_TEST(a_file_that_is_there_keeps_its_mode)
{
	int h = store_open(&store, "a", O_RDWR | O_CREAT | O_EXCL, 0600);
	struct stat st;
	bool made;

	store_close(&store, &h);
	cr_assert_eq(store_open(&store, "a", O_RDWR | O_CREAT, 0666), -EINVAL, "never without O_EXCL");
	h = store_open_or_make(&store, "a", O_RDWR, 0666, &made);
	cr_assert_geq(h, 0);
	cr_assert_not(made);
	cr_assert_eq(store.ops->fstat(&store, h, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	store_close(&store, &h);
	h = store_open_or_make(&store, "b", O_RDWR, 0666, &made);
	cr_assert(made);
	cr_assert_eq(store.ops->fstat(&store, h, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0666);
	store_close(&store, &h);
	cr_assert_eq(store_open_or_make(&store, "none/b", O_RDWR, 0666, &made), -ENOENT);
}

STORE_TEST(what_is_opened_for_reading_is_not_written)
{
	int h;

	put_text("a", "abc");
	h = opened("a", O_RDONLY);
	cr_assert_eq(store.ops->pwrite(&store, h, "x", 1, 0), -EBADF);
	store_close(&store, &h);
	cr_assert_str_eq(text_of("a"), "abc");
}

/* ---- bytes ---- */

STORE_TEST(bytes_are_read_as_they_were_written)
{
	int h = opened("a", O_RDWR | O_CREAT);
	char buf[16];

	cr_assert_eq(store.ops->pread(&store, h, buf, 16, 0), 0);
	cr_assert_eq(store.ops->pwrite(&store, h, "abcdef", 6, 0), 6);
	cr_assert_eq(store.ops->pwrite(&store, h, "XY", 2, 2), 2);
	cr_assert_eq(store.ops->pread(&store, h, buf, 16, 1), 5);
	cr_assert_eq(memcmp(buf, "bXYef", 5), 0);
	cr_assert_eq(store.ops->pread(&store, h, buf, 16, 6), 0);
	cr_assert_eq(store.ops->pwrite(&store, h, "", 0, 100), 0);
	cr_assert_eq(size_of(h), 6);
	store_close(&store, &h);
}

STORE_TEST(what_was_never_written_reads_as_zeros)
{
	int h = opened("a", O_RDWR | O_CREAT);
	char buf[101];

	memset(buf, 1, sizeof(buf));
	cr_assert_eq(store.ops->pwrite(&store, h, "x", 1, 100), 1);
	cr_assert_eq(store.ops->pread(&store, h, buf, sizeof(buf), 0), 101);
	for (int i = 0; i < 100; i++)
		cr_assert_eq(buf[i], 0);
	cr_assert_eq(buf[100], 'x');
	cr_assert_eq(store.ops->truncate(&store, h, 1ull << 40), 0);
	cr_assert_eq(size_of(h), 1ull << 40);
	buf[0] = 1;
	cr_assert_eq(store.ops->pread(&store, h, buf, 1, (1ull << 40) - 1), 1);
	cr_assert_eq(buf[0], 0);
	store_close(&store, &h);
}

STORE_TEST(what_was_cut_off_does_not_come_back)
{
	int h = opened("a", O_RDWR | O_CREAT);
	char buf[8];

	cr_assert_eq(store.ops->pwrite(&store, h, "abcdefgh", 8, 0), 8);
	cr_assert_eq(store.ops->truncate(&store, h, 3), 0);
	cr_assert_eq(store.ops->pread(&store, h, buf, 8, 0), 3);
	cr_assert_eq(store.ops->truncate(&store, h, 8), 0);
	cr_assert_eq(store.ops->pread(&store, h, buf, 8, 0), 8);
	cr_assert_eq(memcmp(buf, "abc\0\0\0\0\0", 8), 0);
	store_close(&store, &h);
}

STORE_TEST(several_pieces_are_one_after_the_other)
{
	int h = opened("a", O_RDWR | O_CREAT);
	char one[3], two[4], three[8];
	struct iovec iov[3] = { { one, 3 }, { two, 4 }, { three, 8 } };

	cr_assert_eq(store_pwrite2(&store, h, "abc", 3, "defgh", 5, 2), 8);
	cr_assert_eq(store_pwrite2(&store, h, "Z", 1, NULL, 0, 0), 1);
	cr_assert_eq(store_pwrite2(&store, h, NULL, 0, "Y", 1, 1), 1);
	cr_assert_eq(store_preadv(&store, h, iov, 3, 0), 10);
	cr_assert_eq(memcmp(one, "ZYa", 3), 0);
	cr_assert_eq(memcmp(two, "bcde", 4), 0);
	cr_assert_eq(memcmp(three, "fgh", 3), 0);
	store_close(&store, &h);
}

STORE_TEST(what_is_reserved_can_be_written_through_a_mapping)
{
	int h = opened("a", O_RDWR | O_CREAT);
	char c = 0, *p;

	cr_assert_eq(store_reserve(&store, h, 0, 70000), 0);
	cr_assert_geq(size_of(h), 70000);
	p = store_map(&store, h, 200000, true);
	if (store.ops->map) {
		cr_assert_not_null(p);
		p[69999] = 'x';
		cr_assert_eq(store_expose(&store, h, 70000), 0);
		cr_assert_eq(store.ops->pread(&store, h, &c, 1, 69999), 1);
		cr_assert_eq(c, 'x');
		cr_assert_eq(store_reserve(&store, h, 70000, 130000), 0);
		cr_assert_eq(p[69999], 'x');
		p[199999] = 'y';
		store_unmap(&store, p, 200000);
		cr_assert_eq(store.ops->pread(&store, h, &c, 1, 199999), 1);
		cr_assert_eq(c, 'y');
	} else {
		cr_assert_null(p);
	}
	store_close(&store, &h);
}

STORE_TEST(all_who_map_a_file_see_the_same_bytes)
{
	int h = opened("a", O_RDWR | O_CREAT), h2 = opened("a", O_RDONLY);
	char *w, *r;

	cr_assert_eq(store.ops->pwrite(&store, h, "abc", 3, 0), 3);
	if (store.ops->map) {
		w = store_map(&store, h, 4096, true);
		r = store_map(&store, h2, 4096, false);
		cr_assert(w && r);
		cr_assert_null(store_map(&store, h2, 4096, true), "it is open for reading");
		w[0] = 'X';
		cr_assert_eq(store.ops->pwrite(&store, h, "Y", 1, 1), 1);
		cr_assert_eq(memcmp(r, "XYc", 3), 0);
		store_close(&store, &h);
		cr_assert_eq(store.ops->unlink(&store, "a"), 0);
		cr_assert_eq(memcmp(r, "XYc", 3), 0, "a mapping needs neither handle nor name");
		store_unmap(&store, w, 4096);
		store_unmap(&store, r, 4096);
	}
	store_close(&store, &h2);
}

STORE_TEST(holes_are_found_or_taken_for_bytes)
{
	int h = opened("a", O_RDWR | O_CREAT);
	uint64_t at;

	cr_assert_eq(store.ops->pwrite(&store, h, "x", 1, 10 << 20), 1);
	at = store_next_data(&store, h, 0);
	cr_assert_leq(at, 10 << 20, "a byte that was written is in no hole");
	cr_assert(store_allocate_ahead(&store, h, (10 << 20) + 1, 65536) <= 0);
	cr_assert_eq(size_of(h), (10 << 20) + 1, "and the file is as long as it was");
	store_close(&store, &h);
}

STORE_TEST(a_file_has_an_identity_of_its_own)
{
	int a = opened("a", O_RDWR | O_CREAT), b = opened("b", O_RDWR | O_CREAT),
	    again = opened("a", O_RDONLY);
	struct store_identity ia, ib, ic;

	cr_assert_eq(store.ops->pwrite(&store, a, "x", 1, 6), 1);
	cr_assert_eq(store_identify(&store, a, &ia), 0);
	cr_assert_eq(store_identify(&store, b, &ib), 0);
	cr_assert_eq(store_identify(&store, again, &ic), 0);
	cr_assert_eq(ia.len, 7);
	cr_assert(ia.id != ib.id && ia.ino != ib.ino);
	cr_assert(ia.id == ic.id && ia.ino == ic.ino);
	store_forget(&store, a);
	store_close(&store, &a);
	store_close(&store, &b);
	store_close(&store, &again);
}

STORE_TEST(a_descriptor_is_asked_for)
{
	int h = opened("a", O_RDWR | O_CREAT), fd = store_fd(&store, h), root = store_fd(&store, store.root);
	struct stat st, of_fd;

	if (store.ops->fd) {
		cr_assert_eq(store.ops->fstat(&store, h, &st), 0);
		cr_assert_eq(fstat(fd, &of_fd), 0);
		cr_assert_eq(st.st_ino, of_fd.st_ino);
		cr_assert_eq(fstatat(root, "a", &of_fd, 0), 0);
		cr_assert_eq(st.st_ino, of_fd.st_ino);
	} else {
		cr_assert_eq(fd, -EOPNOTSUPP);
		cr_assert_eq(root, -EOPNOTSUPP);
		cr_assert(fcntl(h, F_GETFD) < 0, "a handle is none");
	}
	store_close(&store, &h);
}

/* ---- names ---- */

STORE_TEST(who_has_a_file_open_keeps_it_without_its_name)
{
	int h = opened("a", O_RDWR | O_CREAT);
	struct stat st;
	char c;

	cr_assert_eq(store.ops->pwrite(&store, h, "x", 1, 0), 1);
	cr_assert_eq(store.ops->unlink(&store, "a"), 0);
	cr_assert_eq(store.ops->unlink(&store, "a"), -ENOENT);
	cr_assert_eq(stat_of("a"), -ENOENT);
	cr_assert_eq(store.ops->fstat(&store, h, &st), 0);
	cr_assert_eq(st.st_nlink, 0);
	cr_assert_eq(store.ops->pread(&store, h, &c, 1, 0), 1);
	cr_assert_eq(c, 'x');
	put_text("a", "new");
	cr_assert_eq(size_of(h), 1, "another file by now");
	store_close(&store, &h);
	cr_assert_str_eq(text_of("a"), "new");
}

STORE_TEST(a_directory_is_made_once_and_in_another)
{
	cr_assert_eq(store.ops->mkdir(&store, "a/b", 0755), -ENOENT);
	cr_assert_eq(store.ops->mkdir(&store, "a", 0755), 0);
	cr_assert_eq(store.ops->mkdir(&store, "a", 0755), -EEXIST);
	cr_assert_eq(store.ops->mkdir(&store, "a/b", 0755), 0);
	cr_assert_eq(store.ops->unlink(&store, "a/b"), -EISDIR);
	put_text("a/f", "");
	cr_assert_eq(store.ops->mkdir(&store, "a/f", 0755), -EEXIST);
	cr_assert_eq(store.ops->mkdir(&store, "a/f/x", 0755), -ENOTDIR);
}

STORE_TEST(only_an_empty_directory_is_removed)
{
	cr_assert_eq(store.ops->mkdir(&store, "a", 0755), 0);
	put_text("a/f", "");
	put_text("ab", "no part of a");
	cr_assert_eq(store_rmdir(&store, "a"), -ENOTEMPTY);
	cr_assert_eq(store_rmdir(&store, "a/f"), -ENOTDIR);
	cr_assert_eq(store.ops->unlink(&store, "a/f"), 0);
	cr_assert_eq(store_rmdir(&store, "a"), 0);
	cr_assert_eq(stat_of("a"), -ENOENT);
	cr_assert_eq(store_rmdir(&store, "a"), -ENOENT);
}

STORE_TEST(a_renamed_file_takes_the_place_of_another)
{
	int h;

	put_text("a", "one");
	put_text("b", "two");
	h = opened("b", O_RDONLY);
	cr_assert_eq(store.ops->rename(&store, "a", "b"), 0);
	cr_assert_eq(stat_of("a"), -ENOENT);
	cr_assert_str_eq(text_of("b"), "one");
	cr_assert_eq(size_of(h), 3);
	store_close(&store, &h);
	cr_assert_eq(store.ops->rename(&store, "a", "b"), -ENOENT);
	cr_assert_eq(store.ops->rename(&store, "b", "b"), 0);
	cr_assert_str_eq(text_of("b"), "one");
}

STORE_TEST(a_renamed_directory_keeps_what_is_in_it)
{
	cr_assert_eq(store.ops->mkdir(&store, "d", 0755), 0);
	cr_assert_eq(store.ops->mkdir(&store, "d/in", 0755), 0);
	put_text("d/in/f", "x");
	cr_assert_eq(store.ops->rename(&store, "d", "e"), 0);
	cr_assert_eq(stat_of("d/in/f"), -ENOENT);
	cr_assert_str_eq(text_of("e/in/f"), "x");
	put_text("f", "y");
	cr_assert_eq(store.ops->rename(&store, "f", "e"), -EISDIR);
	cr_assert_eq(store.ops->rename(&store, "e", "f"), -ENOTDIR);
}

struct names {
	char all[4096];
	int nr, stop_at;
};

static int add_name(void *arg, const char *name)
{
	struct names *n = arg;

	strcat(strcat(n->all, name), "/");
	return ++n->nr == n->stop_at ? 7 : 0;
}

STORE_TEST(each_name_is_listed_once)
{
	struct names n = { .nr = 0 };
	char name[32];

	cr_assert_eq(store.ops->mkdir(&store, "d", 0755), 0);
	cr_assert_eq(store.ops->list(&store, "d", add_name, &n), 0);
	cr_assert_eq(n.nr, 0);
	cr_assert_eq(store.ops->mkdir(&store, "d/sub", 0755), 0);
	put_text("d/sub/below", "");
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "d/file.%d.", i);
		put_text(name, "");
	}
	cr_assert_eq(store.ops->list(&store, "d", add_name, &n), 0);
	cr_assert_eq(n.nr, 101);
	cr_assert_null(strstr(n.all, "below"));
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "file.%d./", i);
		cr_assert_not_null(strstr(n.all, name), "%s", name);
	}
}

STORE_TEST(a_listing_stops_where_it_is_told_to)
{
	struct names n = { .stop_at = 2 };

	msg_is_muted = true;
	put_text("a", "");
	put_text("b", "");
	put_text("c", "");
	cr_assert_eq(store.ops->list(&store, ".", add_name, &n), 7);
	cr_assert_eq(n.nr, 2);
	cr_assert_eq(store.ops->list(&store, "none", add_name, &n), -ENOENT);
	cr_assert_eq(store.ops->list(&store, "a", add_name, &n), -EIO);
}

static bool known(const char *name, int depth, bool dir)
{
	return depth < 2 && *name != (dir ? 'f' : 'a');
}

/* What a killed process has left, in the place that the directory is put aside to. */
STORE_TEST(a_tree_is_removed_whole)
{
	cr_assert_eq(store.ops->mkdir(&store, "t", 0755), 0);
	cr_assert_eq(store.ops->mkdir(&store, "t/a", 0755), 0);
	cr_assert_eq(store.ops->mkdir(&store, "t" STORE_GONE, 0755), 0);
	put_text("t" STORE_GONE "/old", "");
	put_text("t/f", "");
	put_text("t/a/f", "");
	put_text("tt", "stays");
	cr_assert_eq(store_remove_tree(&store, "t", known), 0);
	cr_assert_eq(stat_of("t"), -ENOENT);
	cr_assert_eq(stat_of("t/a/f"), -ENOENT);
	cr_assert_eq(stat_of("tt"), 0);
	cr_assert_eq(store_remove_tree(&store, "t", known), -ENOENT);
}

/* ---- stable storage ---- */

STORE_TEST(files_and_directories_can_be_synced)
{
	int h = opened("a", O_RDWR | O_CREAT);

	msg_is_muted = true;
	cr_assert_eq(store.ops->mkdir(&store, "d", 0755), 0);
	cr_assert_eq(store.ops->sync(&store, h, false), 0);
	cr_assert_eq(store_sync_path(&store, "d", true), 0);
	cr_assert_eq(store_sync_path(&store, ".", true), 0);
	cr_assert_eq(store_sync_path(&store, "a", false), 0);
	cr_assert_eq(store_sync_path(&store, "none", true), -ENOENT);
	cr_assert_eq(store_sync_path(&store, "a", true), -EIO);
	store_close(&store, &h);
}

/* ---- locks ---- */

STORE_TEST(one_handle_has_the_lock)
{
	int a = opened("f", O_RDWR | O_CREAT), b = opened("f", O_RDWR);

	if (store.ops->lock) {
		cr_assert(!store_locked(&store, a) && !store_locked(&store, b));
		cr_assert_eq(store_lock(&store, a), 0);
		cr_assert_eq(store_try_lock(&store, b), -EBUSY);
		cr_assert_eq(store_try_lock(&store, a), 0);
		cr_assert(store_locked(&store, b) && !store_locked(&store, a));
		cr_assert_eq(store_unlock(&store, a), 0);
		cr_assert_eq(store_try_lock(&store, b), 0);
		store_close(&store, &b);
		cr_assert_eq(store_try_lock(&store, a), 0, "it goes with its handle");
	} else {
		cr_assert_eq(store_lock(&store, a), -EOPNOTSUPP);
		cr_assert_eq(store_try_lock(&store, a), -EOPNOTSUPP);
		cr_assert(store_locked(&store, a), "it is not known");
	}
	store_close(&store, &a);
	store_close(&store, &b);
}

/* As it is where a process that only reads the file holds one. */
STORE_TEST(shared_locks_keep_out_the_exclusive_one_alone)
{
	int a = opened("f", O_RDWR | O_CREAT), b = opened("f", O_RDWR);

	if (store.ops->lock_shared) {
		cr_assert_eq(store_lock_shared(&store, a), 0);
		cr_assert_eq(store_lock_shared(&store, b), 0);
		cr_assert_eq(store_try_lock(&store, a), -EBUSY);
		cr_assert(!store_locked(&store, a));
		store_close(&store, &b);
		cr_assert_eq(store_try_lock(&store, a), 0, "a shared one becomes exclusive");
	} else if (store.ops->lock) {
		cr_assert_eq(store_lock_shared(&store, a), 0);
		cr_assert_eq(store_try_lock(&store, b), -EBUSY);
	}
	store_close(&store, &a);
	store_close(&store, &b);
}

STORE_TEST(what_is_appended_comes_behind_what_others_have)
{
	int a = opened("f", O_RDWR | O_CREAT), b = opened("f", O_RDWR);
	uint64_t at = 7;

	if (store.ops->append) {
		cr_assert_eq(store_append(&store, a, "abc", 3, &at), 3);
		cr_assert_eq(at, 0);
		cr_assert_eq(store_append(&store, b, "defg", 4, &at), 4);
		cr_assert_eq(at, 3);
		cr_assert_eq(store_append(&store, a, "h", 1, &at), 1);
		cr_assert_eq(at, 7);
		cr_assert_eq(size_of(a), 8);
	} else {
		cr_assert_eq(store_append(&store, a, "abc", 3, &at), -EOPNOTSUPP);
	}
	store_close(&store, &a);
	store_close(&store, &b);
}

static void *unlock_later(void *arg)
{
	usleep(20000);
	cr_assert_eq(store.ops->pwrite(&store, *(int *)arg, "x", 1, 0), 1);
	store_unlock(&store, *(int *)arg);
	return NULL;
}

STORE_TEST(who_asks_for_the_lock_waits_for_it)
{
	int a = opened("f", O_RDWR | O_CREAT), b = opened("f", O_RDWR);
	pthread_t thread;

	if (store.ops->lock) {
		cr_assert_eq(store_lock(&store, a), 0);
		cr_assert_eq(pthread_create(&thread, NULL, unlock_later, &a), 0);
		cr_assert_eq(store_lock(&store, b), 0);
		cr_assert_eq(size_of(b), 1, "what came before the lock was given up is there");
		pthread_join(thread, NULL);
	}
	store_close(&store, &a);
	store_close(&store, &b);
}

/* ---- permissions ---- */

STORE_TEST(modes_are_changed_or_there_are_none)
{
	const struct store_grant g = { .uid = geteuid(), .gid = getegid(), .mode = 0750 };
	struct stat st;
	int h, dir;

	put_text("f", "");
	cr_assert_eq(store.ops->mkdir(&store, "d", 0700), 0);
	h = opened("f", O_RDWR);
	cr_assert_eq(store_chmod(&store, h, 0600), 0);
	cr_assert_eq(store_chown(&store, h, geteuid(), getegid()), 0);
	dir = opened("d", O_RDONLY | O_DIRECTORY);
	cr_assert_eq(store.ops->fstat(&store, dir, &st), 0);
	cr_assert_eq(store_grant(&store, dir, &st, &g), 0);
	store_close(&store, &dir);
	store_give(&store, h, geteuid());
	store_close(&store, &h);
	cr_assert_eq(store.ops->stat(&store, "f", &st), 0);
	cr_assert_eq(st.st_mode & 0777, store.ops->chmod ? 0600 : 0644);
	cr_assert_eq(store.ops->stat(&store, "d", &st), 0);
	cr_assert_eq(st.st_mode & 0777, store.ops->grant ? 0750 : 0700);
}

/* ---- on any store ---- */

STORE_TEST(a_file_is_replaced_whole)
{
	struct names n = { .nr = 0 };
	char c[3];
	void *buf;
	size_t len;
	int h;

	put_text("f", "old and long");
	h = store_replace_file(&store, "f", 0644, "a", 1, "bc", 2);
	cr_assert_geq(h, 0);
	cr_assert_eq(store.ops->pread(&store, h, c, 3, 0), 3);
	store_close(&store, &h);
	cr_assert_str_eq(text_of("f"), "abc");
	cr_assert_eq(store_write_file(&store, "g", 0644, "hello", 5, NULL, 0), 0);
	cr_assert_eq(store_read_file(&store, "g", 5, &buf, &len), 0);
	cr_assert(len == 5 && !memcmp(buf, "hello", 5));
	mem_free(buf);
	cr_assert_eq(store_read_file(&store, "g", 4, &buf, &len), -EFBIG);
	cr_assert_eq(store_read_file(&store, "none", 4, &buf, &len), -ENOENT);
	cr_assert_eq(store_replace_durably(&store, "g", 0644, STORE_NOBODY, "hi", 2), 0);
	cr_assert_str_eq(text_of("g"), "hi");
	cr_assert_eq(store_replace_durably(&store, "none/g", 0644, STORE_NOBODY, "hi", 2), -ENOENT);
	cr_assert_eq(store.ops->list(&store, ".", add_name, &n), 0);
	cr_assert_eq(n.nr, 2, "%s", n.all);
}
