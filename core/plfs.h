/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core as preload/ and tools/ see it; what the plfs command alone needs is in plfs_admin.h. Functions
 * return 0, a count or a descriptor on success and -errno on failure; none touches errno on
 * success. Everything is thread-safe unless it says otherwise.
 */
#ifndef PLFS_H
#define PLFS_H

#include "core/base/alloc.h"
#include "core/base/base.h"
#include "core/base/critical.h"
#include "core/base/msg.h"
#include "core/base/guard.h"
#include "core/base/io.h"
#include "core/base/reach.h"
#include "core/base/script.h"
#include "core/base/sys.h"
#include "core/base/usermem.h"

struct plfs_mount; /* one mapping: a prefix and the backend directory behind it */
struct plfs_file;  /* an open file description of a logical file */

/* ---- start ---- */

/*
 * Fill the sys table, read PLFS_MAP, PLFSRC, PLFS_DEBUG, PLFS_CONSISTENCY, PLFS_VERIFY. Bad settings, or a
 * backend that is missing or no directory: one line on standard error and exit code 78. Once per process; not
 * thread-safe. Returns the number of mounts. @map replaces PLFS_MAP unless NULL. Relative paths in either are
 * below the current directory.
 */
int plfs_setup(const char *map);

/* What the line about bad mappings calls their source; the command sets it to its option. */
extern const char *plfs_map_source;

/*
 * Count calls on files from here on, if PLFS_STATS or PLFS_TRACE say so: true. Behind plfs_setup(), in the
 * library alone. Entries of the sys table are others then.
 */
bool plfs_observe(void);

/*
 * Start helpers that move node-local logs (near=) to the backend from here on, where the mapping has
 * drain=helper. In the library alone.
 */
void plfs_enable_helpers(void);

/*
 * A map, or a path, that means the same in every directory: @text with its relative paths made absolute,
 * mem_alloc()ed. NULL: there are none, or no memory, or no current directory.
 */
char *plfs_map_absolute(const char *text);
char *plfs_path_absolute(const char *text);
/* The value of the setting @name, as PLFS_MAP; NULL also if it has no paths. */
char *plfs_setting_absolute(const char *name, const char *text);

/* ---- paths ---- */

/*
 * Where an absolute path leads. 1: below a prefix, or spelled with the backend's own name; @out (PATH_MAX
 * bytes) gets the backend path, *@m its mount. 0: not ours (any ".." that climbs out of the prefix is
 * followed lexically; @out is untouched). -ENOENT: inside the container directory, which programs do not see.
 * -ENAMETOOLONG. Makes no system call.
 */
int plfs_path_map(const char *path, char *out, struct plfs_mount **m);

/*
 * A spelling of a place that belongs to a mount: its prefix, its backend as given, its backend as the kernel
 * says it. All of them are known once plfs_setup() is through; the longest come first.
 */
struct plfs_root {
	const char *path;
	unsigned len;
	char letter; /* path[1] */
	int dirfd;   /* hidden: the backend's directory */
	struct plfs_mount *m;
};

extern struct plfs_root plfs_roots[];
extern int plfs_nr_roots;

/*
 * Whether the absolute @path of @len bytes may be one that plfs_path_map() takes, if there is no ".", ".." or
 * double slash in it: false is certain. Two bytes decide most of it.
 */
static inline bool plfs_path_near(const char *path, size_t len)
{
	for (int i = 0; i < plfs_nr_roots; i++) {
		const struct plfs_root *r = &plfs_roots[i];

		if (path[1] == r->letter && len >= r->len && (path[r->len] == '/' || !path[r->len]))
			return true;
	}
	return false;
}

/*
 * The way back: a canonical absolute path, as getcwd() or readlink() return it, below a backend becomes the
 * path below its prefix. 1 and @out, or 0: not below a backend. -ENAMETOOLONG.
 */
int plfs_path_unmap(const char *path, char *out);

/*
 * Whether a relative path, looked up from the canonical real directory @cwd, could lead into a mount without
 * containing "..": the mount of @cwd itself if it is inside a backend (*@m), else whether some prefix or
 * backend is below @cwd. Returns 1 inside, 2 above, 0 neither.
 */
int plfs_cwd_class(const char *cwd, struct plfs_mount **m);

/* Whether the directory (dev, ino) is the root of a backend: its listing hides PLFS_DIR_NAME. */
bool plfs_is_root(dev_t dev, ino_t ino);

/* ---- open files ---- */

/*
 * open(2) in @m: @dirfd and @path are a real directory descriptor (or AT_FDCWD) and a backend path. Returns
 * the descriptor for the program, a real one; *@out is NULL if the path is no logical file (a plain file, a
 * directory, a fifo, O_PATH, O_TMPFILE ...), and the descriptor then is all there is. For a logical file the
 * kernel descriptor is opened for reading too even if @flags say O_WRONLY: callers check the access mode in
 * @flags themselves. Its kernel offset is PLFS_BODY_OFF. O_CREAT makes a logical file unless the mount's
 * options say otherwise; O_TRUNC is a truncation, done here.
 */
int plfs_open(struct plfs_mount *m, int dirfd, const char *path, int flags, mode_t mode,
	      struct plfs_file **out);

/*
 * A descriptor that came from elsewhere (inherited, received): *@out is a new description if it is a logical
 * file below one of our backends, else NULL. Moves no offset. Returns 0 or -errno (e.g. a damaged stub).
 */
int plfs_adopt(int fd, struct plfs_file **out);

/*
 * Whether the kernel's description can write: also that of a program's descriptor that only reads, if its
 * open emptied the file.
 */
bool plfs_can_write(const struct plfs_file *f);

/* Whether O_APPEND was taken off the program's description: it stays off, whoever has the description. */
bool plfs_lifts_append(const struct plfs_file *f);

/*
 * The number of a logical file that plfs_adopt() cannot open: from now on reads and writes of it are EBADF.
 * Else they would be those of the stub. It needs no descriptor and no memory.
 */
void plfs_disable(int fd);

/*
 * End of the description, when its last descriptor in this process is closed: after the kernel's close, or an
 * unlinked file would seem to be in use still. At the last description of the file here, its log is closed.
 * Data that could not be moved to the log stays readable where it is; returns -errno only if acknowledged
 * bytes could not be kept: -EIO, or with which error the file system closed the log (-ENOSPC, -EDQUOT).
 */
int plfs_close(struct plfs_file *f);

/*
 * Bytes read, 0 at or past the end; holes are zeros. -EIO: a log is missing, cut or damaged, or its bytes are
 * not those that were written (one line names it).
 */
ssize_t plfs_pread(struct plfs_file *f, void *buf, size_t len, off_t logical_off);
ssize_t plfs_preadv(struct plfs_file *f, const struct iovec *iov, int cnt, off_t logical_off);

/*
 * Where bytes of a file that is not in its body lie: returns how many from @logical_off on, at most @len, lie
 * together in one log, *@fd gets a descriptor of that, which the caller closes, and *@fd_off where they begin
 * there; *@fd -1: they have to be read. Bytes in a log never change. Positions at or behind the end of the
 * file are none of its business. -errno.
 */
ssize_t plfs_extent(struct plfs_file *f, off_t logical_off, size_t len, int *fd, off_t *fd_off);

/*
 * How many bytes @iov asks for, or -EINVAL: too many entries, or bytes. The memory that they are in is judged
 * when it is used.
 */
ssize_t plfs_iov_total(const struct iovec *iov, int cnt);

/*
 * Compare each read of this process from here on with its checksums, whatever PLFS_VERIFY says; or, without
 * @verify, nothing.
 */
void plfs_set_verify(struct plfs_file *f, bool verify);

/* Bytes written, all of them or, if the disk fills up within, fewer; -ENOSPC, -EFBIG, -EDQUOT, -EIO ... */
ssize_t plfs_pwrite(struct plfs_file *f, const void *buf, size_t len, off_t logical_off);
ssize_t plfs_pwritev(struct plfs_file *f, const struct iovec *iov, int cnt, off_t logical_off);

/* Write at the true end, found under a lock that all appenders take; *@end_out is the offset after it. */
ssize_t plfs_appendv(struct plfs_file *f, const struct iovec *iov, int cnt, off_t *end_out);

/* The logical size now, or -errno: what this process wrote and what others made visible. */
off_t plfs_size(struct plfs_file *f);

/* ftruncate(2), both ways. -EINVAL for a negative size, -EFBIG. */
int plfs_truncate(struct plfs_file *f, off_t size);

/*
 * truncate(2) of what (dirfd, path) below @m names, logical or not. The record locks that this process has on
 * the file stay, if it has it open to write.
 */
int plfs_truncate_at(struct plfs_mount *m, int dirfd, const char *path, off_t size);

/*
 * fallocate(2): modes 0 and FALLOC_FL_KEEP_SIZE (space is not reserved), PUNCH_HOLE|KEEP_SIZE and ZERO_RANGE
 * (written zeros); COLLAPSE_RANGE and INSERT_RANGE have the file moved into its body. Of that the kernel does
 * what it can; others -EOPNOTSUPP.
 */
int plfs_fallocate(struct plfs_file *f, int mode, off_t logical_off, off_t len);

/* lseek(2) for SEEK_DATA and SEEK_HOLE: the whole file is data. -ENXIO past the end. */
off_t plfs_seek_hole(struct plfs_file *f, off_t logical_off, int whence);

/*
 * Whether the file is *in its body*: all bytes in the stub, [off, off + len) of the file being [PLFS_BODY_OFF
 * + off, ...) of the descriptor, now and for ever, for reading, writing, mapping, locking and size as well.
 * What does not stand like this is moved there, which takes as long as copying the file: under PLFS_MAP_WRITE
 * always, under PLFS_MAP_READ if somebody may be writing the file. Returns 1, it is; 0, it is not; or, where
 * it could not be moved:
 * -EACCES, -EROFS, -ENOSPC; -EBUSY: another host is writing it.
 */
enum plfs_map_use { PLFS_MAP_COPY, PLFS_MAP_READ, PLFS_MAP_WRITE };
int plfs_in_body(struct plfs_file *f, enum plfs_map_use use);

/*
 * This process, root's, is about to become @uid's, with its groups as they are now. A file that has logs, and
 * that this user could not open as it is open here, by its mode or behind a directory of the backend, is
 * moved into its body, where a descriptor is enough. So is one without logs, open for writing, if this user
 * could not make any.
 * 0; -errno: it could not be moved.
 */
int plfs_before_user(struct plfs_file *f, uid_t uid);

/*
 * The program has taken a record lock (fcntl, lockf) on the file, which is lost when any descriptor of it is
 * closed here.
 */
void plfs_note_record_lock(struct plfs_file *f);

/*
 * The library's own flock(2) of the description @fd, for files whose file system would lock bytes that the
 * library needs: those of which plfs_has_own_flock() is true. 0; -EOPNOTSUPP: locks of bytes do not work
 * there, use the file system's; -errno, as of flock(2).
 */
bool plfs_has_own_flock(const struct plfs_file *f);
int plfs_flock(int fd, int op);

/*
 * Release: what this process wrote is visible to everybody who acquires afterwards. (Unlock, close, fork,
 * before utimes.)
 */
int plfs_commit(struct plfs_file *f);

/*
 * The same before another process is given the description: from here on its lock tells no more whether
 * somebody else has the file open.
 */
int plfs_share(struct plfs_file *f);

/* Acquire: what others released is visible to this description from here on. (Lock.) */
int plfs_refresh(struct plfs_file *f);

/*
 * Release, and on stable storage. Who else on this host is at it is waited for so long, and then not any
 * more.
 */
int plfs_sync(struct plfs_file *f);
extern unsigned plfs_sync_patience_ms;

/* Release and sync everything this process has open. For sync(2). */
void plfs_sync_all(void);

/* ---- metadata ---- */

/*
 * Turn what the kernel says of a stub into what the program should see of the logical file: size, blocks,
 * mode without the mark. Anything but a stub below one of our backends is left alone; a backend's root
 * loses the link that its container directory adds. Costs nothing unless the mark is set.
 *
 * @name: what was asked for, as the kernel was given it; then a file that other processes of this host are
 * writing, or were when they were killed, is as long as what they wrote. NULL: its size may be that of 50 ms
 * ago.
 *
 * False: the name has led elsewhere before the size was known, and the kernel is to be asked again. Never of
 * a NULL @name.
 */
struct plfs_name {
	int dirfd;
	const char *path;
	int at_flags;
	uint64_t ended; /* plfs_before_stat() before the kernel was asked, or UINT64_MAX */
};
uint64_t plfs_before_stat(void);
bool plfs_fix_stat(struct stat *st, const struct plfs_name *name);
bool plfs_fix_statx(struct statx *stx, const struct plfs_name *name);

/*
 * The mark that tells a stub from a plain file: to tell, before calling plfs_fix_stat(), that there is
 * nothing to do.
 */
static inline bool plfs_maybe_stub(mode_t mode) { return (mode & (S_IFMT | S_ISVTX)) == (S_IFREG | S_ISVTX); }

/*
 * Whether a file without the mark may be a stub that has lost it, for plfs_fix_stat() to find out: @near, it
 * was reached by a name below a mapping. Otherwise only files with holes are looked at, as others are
 * everywhere. One without blocks has no header; or its bytes are on a tape, and a look would bring them back
 * (Lustre says one block then).
 */
static inline bool plfs_maybe_unmarked(const struct stat *st, bool near)
{
	return S_ISREG(st->st_mode) && st->st_size >= PLFS_BODY_OFF - 8 && st->st_blocks > 1 &&
	       (near || (uint64_t)st->st_blocks * 512 < (uint64_t)st->st_size);
}

/*
 * Whether (dirfd, path), below a mapping and with the attributes @st, is a stub. Its header is looked at
 * where the mark may be wrong; the mark in @st then is right.
 */
bool plfs_is_stub(struct stat *st, int dirfd, const char *path, int at_flags);

/*
 * Whether an open() that makes files would make a logical one of (dirfd, path), below @m. False also: there
 * is something of that name, a dangling link say, or no directory for it.
 */
bool plfs_would_make(const struct plfs_mount *m, int dirfd, const char *path);

/* The program takes a record lock on a file that is no logical one. */
void plfs_note_plain_lock(void);

/* chmod(2) and chown(2) on a path below a backend or a descriptor (path NULL): stub and container. */
int plfs_chmod(int dirfd, const char *path, mode_t mode, int at_flags);
int plfs_chown(int dirfd, const char *path, uid_t uid, gid_t gid, int at_flags);

/*
 * Before a path's times are set, or those of a descriptor (path NULL): commits the file if this process has
 * it open, so that the times stay set. The next overwrite sets them anew.
 */
void plfs_before_utimes(int dirfd, const char *path, int at_flags);

/* ---- names: backend paths, each with its real dirfd ---- */

/* unlink(2) (not of directories); removes the container with the last link once nobody has it open. */
int plfs_unlink(struct plfs_mount *m, int dirfd, const char *path);

/*
 * renameat2(2) inside one mount; the container of a replaced file goes the same way. -EXDEV: out of a backend
 * below the mount's (nested.h). Across mounts callers answer EXDEV.
 */
int plfs_rename(struct plfs_mount *m, int fromfd, const char *from, int tofd, const char *to, unsigned flags);

/* linkat(2) inside one mount. @from is not empty. */
int plfs_link(struct plfs_mount *m, int fromfd, const char *from, int tofd, const char *to, int flags);

/* ---- processes ---- */

/*
 * Give the library's own descriptor @fd another number. @fd then is a spare descriptor of the same file, for
 * the caller to replace or close. Only while the process has one thread, which is in no other call of the
 * library. 0; -EBUSY: it has to stay;
 * -EMFILE.
 */
int plfs_free_number(int fd);

/* Whether this process has one thread. May take a system call. */
bool plfs_is_single_threaded(void);

/*
 * Around fork(): commit and lock everything; unlock; and in the child: give the parent's logs back, unlock.
 */
void plfs_fork_prepare(void);
void plfs_fork_parent(void);
void plfs_fork_child(void);

/*
 * Before exec (or any call that ends this image, or may): close all logs. If exec fails they are reopened by
 * the next write.
 */
void plfs_exec_prepare(void);

/*
 * Before the end of the process: close all logs; from here on every write is closed as soon as it is made,
 * because stdio is flushed after us and nobody comes later.
 */
void plfs_exit_prepare(void);

/* ---- plain files ---- */

/* Who watches a file being copied; members may be NULL. */
struct plfs_progress {
	void (*progress)(void *arg, uint64_t done);  /* bytes of the file */
	/* the temporary file that is about to be made; NULL: it is gone */
	void (*temp)(void *arg, const char *path);
	/*
	 * Go on where bytes cannot be read or are not those that were written; then each such range, in
	 * order. @as_they_are: they were copied all the same, else they are zeros. A copy that had to begin
	 * again begins again with its ranges. @why: in words.
	 */
	bool partial;
	void (*lost)(void *arg, uint64_t off, uint64_t len, bool as_they_are, const char *why);
	void *arg;
	char why[640]; /* "" before; after an error what went wrong, in words */
};

/*
 * Make a plain file of a logical one in its place: another inode with the same name, bytes, mode, owner,
 * times and extended attributes; the container is removed. What has the name already is whole at any moment.
 * Follows symbolic links. 0 also if it is a plain file already. Whoever else opens or flattens it meanwhile
 * waits. -EBUSY: this or another process has it open; -EMLINK: it has several names; -EACCES and the like:
 * the directory cannot be written to; -EIO: bytes cannot be read, or are not those that were written: the
 * plain file would have no checksums that show it. @watch may be NULL.
 */
int plfs_flatten(int dirfd, const char *path, struct plfs_progress *watch);

/*
 * If (dirfd, path) is being flattened, wait. Returns whether it was, or has just been.
 */
bool plfs_wait_flattened(int dirfd, const char *path);

/*
 * Write @size bytes of the file @f, whose stub is open at @from, to the empty file @to; zeros become holes.
 * @alone: nobody else in this process uses @f meanwhile. @f NULL: of the plain file @from. All bytes are
 * compared with their checksums; of @watch->partial only with @alone. 0 or -errno.
 */
int plfs_copy_out(struct plfs_file *f, int from, int to, uint64_t size, bool alone,
		  struct plfs_progress *watch);

#endif
