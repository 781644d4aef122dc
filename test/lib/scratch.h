/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What most tests share: a directory of their own, mapped to /p; logical files in it; child processes; counts
 * of files and descriptors. It stands on core alone: no wrapper of preload/ is involved. A function that
 * cannot do its work ends the process with one line.
 */
#ifndef TEST_SCRATCH_H
#define TEST_SCRATCH_H

#include "core/plfs_admin.h"

#include "core/base/newer.h"
#include "core/base/single.h"

#include "test/lib/job.h"

#include <fts.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* ---- the directory ---- */

extern char scratch[64]; /* its path; empty: there is none */

/*
 * Set before the directory is made: in /dev/shm, where fsync() costs nothing. For tests that make many files.
 */
extern bool scratch_in_memory;

/* Make a directory, and write its path into @path of @len bytes. */
void new_dir(char *path, size_t len);

/* Make the scratch directory without a mapping, for tests that have a store and no file. */
void scratch_dir(void);

/* Make it and map it to /p. @options: "" or "{...}". */
void scratch_map(const char *options);

/* The same with "{small=0}": every file has logs. Most tests are about logs. */
void scratch_setup(void);

/* The same with "": small files stay in their stubs. */
void scratch_setup_small(void);

/* Remove all that is in it; it itself, too. */
void scratch_clear(void);
void scratch_remove(void);

/* The number of files in it whose names begin with @prefix. */
int count_files(const char *prefix);

/* The number of logs with anything in them. One that was only made when its process ended takes no space. */
int count_logs(void);

/* Write the path of one such file or directory into @path of PATH_MAX bytes. false: there is none. */
bool find_file(const char *prefix, char *path);

/* ---- logical files ---- */

/*
 * An open file as a program holds it: the kernel's descriptor, and the description. f is NULL for a plain
 * file.
 */
struct lfile {
	int fd;
	struct plfs_file *f;
};

/* The mount of "/p/NAME"; its path in the backend goes into @path of PATH_MAX bytes. */
struct plfs_mount *lpath(const char *name, char *path);

/* open(2). 0; -errno. */
int ltry(struct lfile *l, const char *name, int flags);

/* open(2) that must succeed; made(): with O_RDWR | O_CREAT. */
struct lfile lopen(const char *name, int flags);
struct lfile made(const char *name);

/* plfs_compact() of it; plfs_check(), which @repair lets mend it, without a word; plfs_drain_file(). */
int lcompact(const char *name);
int lexamine(const char *name, bool repair);
int ldrain(const char *name, struct plfs_drain *d);

/* close(2) as preload/ does it: the kernel's descriptor first. 0; -errno. */
int lclose(struct lfile *l);

/* The size by stat(2), as preload/ gets it; -errno. */
off_t stat_size(const char *name);

/* unlink(2), rename(2). 0; -errno. */
int lunlink(const char *name);
int lrename(const char *from, const char *to);

/* A write with O_APPEND. @end: where it ended. The bytes written; -errno. */
ssize_t lappend(struct lfile *l, const void *buf, size_t len, off_t *end);

/* Write the pattern of @round (job.h). The bytes written; -errno. */
ssize_t lfill(struct lfile *l, off_t off, size_t len, unsigned round);

/* Read [off, off + len). 0: the pattern of @round; 1: something else, which one line names; -errno. */
int lcheck(struct lfile *l, off_t off, size_t len, unsigned round);

/* Read [off, off + len). true: all zeros. */
bool lzeros(struct lfile *l, off_t off, size_t len);

/* ---- processes ---- */

/* fork(2). The child dies with its parent, so that a failed assertion leaves no process behind. */
pid_t fork_child(void);

/* Run @fn in a child made as preload/ makes one; wait_child() ends it. */
pid_t start_child(int (*fn)(void *arg), void *arg);

/* Wait for @pid. Its exit code; 256 + its signal. */
int wait_child(pid_t pid);

/* start_child() and wait_child(). */
int in_child(int (*fn)(void *arg), void *arg);

/*
 * Let the C library believe that this process has one thread. The children of a test have one, but glibc goes
 * by their parent's threads, and a process with threads appends to small files in another way
 * (core/file/bare.h).
 */
void be_single_threaded(void);

/* The reverse: it counts as one with threads from here on. */
void be_threaded(void);

/* Run a command of the shell, which must succeed. */
void shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Put the file "f" back as it is in @saved, a copy of the scratch directory. The stub stays the same inode,
 * which its container knows.
 */
void scratch_put_back(const char *saved);

/* This process is on the host @name from here on. Before the library asks for the name: it does so once. */
void be_host(const char *name);

/* The clock of this process is @hours ahead from here on. */
void be_hours_ahead(int hours);

/* The number of open descriptors. */
int count_fds(void);

/* Whether the library opens by openat2(). Old kernels and emulators do not have it. */
bool has_openat2(void);

#endif
