/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process has a file open; another maps it shared, and stores through the map. The library moves the file
 * into its stub for that. Each call of the first process does afterwards what it does to a plain file,
 * however it had used the file before.
 */
#include "posix.h"
#include <sys/sendfile.h>

#define PAGE 4096L

/* ---- what the first process does afterwards; each begins without an acquire ---- */

static void look(int fd, off_t off)
{
	char buf[9] = "";

	T(pread(fd, buf, 8, off));
	say("at %ld: %s\n", (long)off, buf);
}

static void reads(int fd)
{
	look(fd, 10);
	look(fd, PAGE);
	look(fd, 2 * PAGE - 4);
}

static void reads_on(int fd)
{
	char buf[9] = "";

	T(lseek(fd, PAGE + 4, SEEK_SET));
	T(read(fd, buf, 8));
	say("%s\n", buf);
}

static void stats(int fd)
{
	struct stat st;

	T(fstat(fd, &st));
	say("size %ld\n", (long)st.st_size);
}

static void seeks(int fd)
{
	T(lseek(fd, 0, SEEK_END));
	T(lseek(fd, 0, SEEK_DATA));
	T(lseek(fd, 4 * PAGE, SEEK_HOLE));
}

static void syncs(int fd) { T(fsync(fd)); }
static void syncs_data(int fd) { T(fdatasync(fd)); }
static void syncs_all(int fd) { T(syncfs(fd)); }
static void syncs_range(int fd) { T(sync_file_range(fd, 0, PAGE, SYNC_FILE_RANGE_WRITE)); }
static void syncs_twice(int fd)
{
	T(fsync(fd));
	T(pwrite(fd, "between", 7, 100));
	T(fdatasync(fd));
}
static void grows(int fd) { T(ftruncate(fd, 5 * PAGE)); }
static void shrinks(int fd) { T(ftruncate(fd, PAGE + 3)); }
static void empties(int fd)
{
	T(ftruncate(fd, 0));
	T(pwrite(fd, "anew", 4, 10));
}
static void writes(int fd) { T(pwrite(fd, "patched", 7, PAGE + 2)); }
static void writes_on(int fd) { T(write(fd, "on", 2)); }
static void writes_synced(int fd)
{
	struct iovec iov = {"synced", 6};

	T(pwritev2(fd, &iov, 1, 200, RWF_DSYNC));
}
static void appends(int fd)
{
	T(fcntl(fd, F_SETFL, O_APPEND));
	T(write(fd, "appended", 8));
	T(lseek(fd, 0, SEEK_CUR));
}
static void allocates(int fd)
{
	T(fallocate(fd, 0, 3 * PAGE, 3 * PAGE));
	T(posix_fallocate(fd, 6 * PAGE, 10));
}
static void punches(int fd) { T(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE)); }
static void advises(int fd) { T(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)); }
static void locks(int fd)
{
	T(flock(fd, LOCK_EX));
	T(flock(fd, LOCK_UN));
	T(lockf(fd, F_LOCK, 10));
}
static void chmods(int fd)
{
	T(fchmod(fd, 0600));
	T(fchown(fd, getuid(), getgid()));
}
static void sets_times(int fd)
{
	struct stat st;

	T(futimens(fd, (struct timespec[]){{100, 0}, {200, 0}}));
	T(fstat(fd, &st));
	say("%ld\n", (long)st.st_mtim.tv_sec);
}
static void duplicates(int fd)
{
	int other = dup(fd);

	look(other, PAGE);
	T(pwrite(other, "dup", 3, 0));
	T(close(other));
}
static void maps(int fd)
{
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);

	if (p == MAP_FAILED) {
		say("mmap: %s\n", strerrorname_np(errno));
		return;
	}
	say("map: %.8s\n", p);
	memcpy(p + 100, "mapped", 6);
	T(msync(p, PAGE, MS_SYNC));
	T(fsync(fd));
	T(munmap(p, PAGE));
}
static void maps_a_copy(int fd)
{
	char *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, PAGE);

	if (p != MAP_FAILED)
		say("map: %.8s\n", p);
	look(fd, PAGE);
}
static void copies(int fd)
{
	int out = open(at("copy"), O_RDWR | O_CREAT | O_TRUNC, 0644);
	off_t off = PAGE, off2 = PAGE + 4;

	T(sendfile(out, fd, &off, 8));
	T(copy_file_range(fd, &off2, out, NULL, 4, 0));
	T(close(out));
	show("copy");
}
static void opens_again(int fd)
{
	char link[32];
	int other;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	other = open(link, O_RDONLY);
	look(other, PAGE);
	close(other);
	look(fd, PAGE);
}
static void forks(int fd) { IN_CHILD(reads(fd); T(fsync(fd)); T(close(fd))); }
static void runs_a_program(int fd)
{
	IN_CHILD(dup2(fd, 0); lseek(0, PAGE, SEEK_SET);
		 execl("/bin/sh", "sh", "-c", "head -c 8; echo", NULL));
}
static void unlinks(int fd)
{
	T(unlink(at("f")));
	look(fd, PAGE);
	T(fsync(fd));
}
static void renames(int fd)
{
	T(rename(at("f"), at("g")));
	look(fd, PAGE);
	T(rename(at("g"), at("f")));
}
static void only_closes(int fd) { (void)fd; }

static const struct {
	const char *name;
	void (*run)(int fd);
} calls[] = {
#define CALL(fn) {#fn, fn}
	CALL(reads),	  CALL(reads_on),    CALL(stats),	CALL(seeks),	      CALL(syncs),
	CALL(syncs_data), CALL(syncs_all),   CALL(syncs_range), CALL(syncs_twice),    CALL(grows),
	CALL(shrinks),	  CALL(empties),     CALL(writes),	CALL(writes_on),      CALL(writes_synced),
	CALL(appends),	  CALL(allocates),   CALL(punches),	CALL(advises),	      CALL(locks),
	CALL(chmods),	  CALL(sets_times),  CALL(duplicates),	CALL(maps),	      CALL(maps_a_copy),
	CALL(copies),	  CALL(opens_again), CALL(forks),	CALL(runs_a_program), CALL(unlinks),
	CALL(renames),	  CALL(only_closes),
};

/* ---- how it had used the file before: each returns a descriptor ---- */

static int only_opened(void) { return open(at("f"), O_RDWR); }
static int only_to_read(void) { return open(at("f"), O_RDONLY); }

static int has_read(int fd)
{
	char buf[8];

	pread(fd, buf, 8, PAGE);
	return fd;
}
static int read_only(void) { return has_read(only_to_read()); }
static int read_first(void) { return has_read(only_opened()); }

static int has_written(int fd)
{
	pwrite(fd, "written", 7, PAGE);
	return fd;
}
static int written(void) { return has_written(only_opened()); }
static int written_and_read(void) { return has_read(written()); }
static int written_and_synced(void)
{
	int fd = written();

	fsync(fd);
	return fd;
}
static int appended(void)
{
	int fd = open(at("f"), O_RDWR | O_APPEND);

	write(fd, "tail", 4);
	return fd;
}

/* ---- the other ---- */

static void make_file(void)
{
	int fd = open(at("f"), O_RDWR | O_CREAT | O_TRUNC, 0644);
	char buf[PAGE];

	for (int i = 0; i < 4; i++) {
		memset(buf, 'a' + i, sizeof buf);
		pwrite(fd, buf, sizeof buf, i * PAGE);
	}
	close(fd);
}

/* With @told a byte comes when the other has stored; @ready gets one when the file may be mapped. */
static void be_the_first(unsigned no, int (*begin)(void), bool inherited, int told, int ready)
{
	int fd = begin();
	char c = 0;

	if (inherited && fork()) {
		wait(NULL);
		_exit(0);
	}
	write(ready, &c, 1);
	read(told, &c, 1);
	calls[no].run(fd);
	T(close(fd));
	_exit(0);
}

static void store_between(unsigned no, int (*begin)(void), bool inherited)
{
	int to[2], from[2], fd;
	pid_t pid;
	char *p, c = 0;

	say("-- %s\n", calls[no].name);
	make_file();
	pipe2(to, O_CLOEXEC);
	pipe2(from, O_CLOEXEC);
	pid = fork();
	if (!pid)
		be_the_first(no, begin, inherited, to[0], from[1]);
	read(from[0], &c, 1);
	fd = open(at("f"), O_RDWR);
	p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memcpy(p + PAGE + 4, "stored", 6);
	memcpy(p + 12, "stored", 6);
	write(to[1], &c, 1);
	say_child(pid);
	show("f");
	munmap(p, 4 * PAGE);
	close(fd);
	unlink(at("f"));
	unlink(at("copy"));
	for (int i = 0; i < 2; i++) {
		close(to[i]);
		close(from[i]);
	}
}

static void store_before_each(int (*begin)(void), bool inherited)
{
	for (unsigned no = 0; no < sizeof calls / sizeof *calls; no++)
		store_between(no, begin, inherited);
}

CASE(of_a_file_that_was_only_opened) { store_before_each(only_opened, false); }
CASE(of_a_file_that_was_opened_to_read) { store_before_each(only_to_read, false); }
CASE(of_a_file_that_was_read) { store_before_each(read_first, false); }
CASE(of_a_file_that_was_opened_to_read_and_read) { store_before_each(read_only, false); }
CASE(of_a_file_that_was_written) { store_before_each(written, false); }
CASE(of_a_file_that_was_written_and_read) { store_before_each(written_and_read, false); }
CASE(of_a_file_that_was_synced) { store_before_each(written_and_synced, false); }
CASE(of_a_file_that_was_appended_to) { store_before_each(appended, false); }
CASE(of_an_inherited_file_that_was_read) { store_before_each(read_first, true); }
CASE(of_an_inherited_file_that_was_written) { store_before_each(written, true); }
CASE(of_an_inherited_file_that_was_synced) { store_before_each(written_and_synced, true); }
CASE(of_an_inherited_file_that_was_appended_to) { store_before_each(appended, true); }
