/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * acts HOW DIR STORY SEED RANKS: RANKS processes write and sync files in DIR, one file after the other, and
 * write down in STORY what they do, until that has come to its end. What overlaps is of one process, so that
 * there is an order. HOW is
 *
 *   strided    all write into one file, each its own parts, small and large, and sync it, close it and open
 *              it again
 *   small      the same, and the file is small at first
 *   killed     the same as strided, and one of them is killed and another goes on with its parts
 *   append     with O_APPEND
 *   replace    one writes a file, syncs it, renames it over "c" and syncs the directory
 *   truncate   one writes, cuts and empties
 *   mapped     one writes through shared maps as well, and has files made plain ($PLFS flatten)
 *   writeback  nothing is changed: pages of all that is in DIR, chosen at random, go to the disk, as the
 *              kernel may have it
 *
 * With COVER in the environment some files are synced when they are closed, and then get copies or parity
 * ($PLFS drain).
 */
#define _GNU_SOURCE
#include "story.h"

#include <ftw.h>
#include <signal.h>
#include <sys/wait.h>

static struct story *story;
static const char *how, *dir;
static int file, ranks, rank, fd = -1;
static uint64_t state;
static long part, file_len;
static char buf[STORY_FILE_MAX];

static uint64_t rnd(uint64_t below)
{
	state = mix64(state);
	return (state >> 8) % below;
}

static bool is(const char *which)
{
	return !strcmp(how, which);
}

static const char *path_of(int no)
{
	static char path[4096];

	snprintf(path, sizeof(path), no < 0 ? "%s/c" : "%s/f%d", dir, no);
	return path;
}

static struct action *begin(enum act act, long off, long len)
{
	int i = __atomic_fetch_add(&story->nr, 1, __ATOMIC_SEQ_CST);
	struct action *a = &story->actions[i];

	errno = 0;
	if (i == STORY_MAX)
		die("the story is too long");
	*a = (struct action){ .act = act, .file = file, .off = off, .len = len };
	a->begin = story_tick(story);
	return a;
}

static void done(struct action *a, bool ok)
{
	if (!ok)
		die("%s: action %d (%d at %ld, length %ld)", path_of(a->file), (int)(a - story->actions),
		    a->act, a->off, a->len);
	__atomic_store_n(&a->end, story_tick(story), __ATOMIC_SEQ_CST);
}

static const void *bytes_of(const struct action *a)
{
	pattern_fill(buf, (size_t)a->len, 0, (unsigned)(a - story->actions) % 65535 + 1);
	return buf;
}

/* ---- what is done ---- */

static void open_file(int flags)
{
	struct action *a = begin(flags & O_TRUNC ? TRUNCATE : CREATE, 0, 0);

	fd = open(path_of(file), O_RDWR | O_CREAT | flags, 0644);
	done(a, fd >= 0);
}

static void close_file(void)
{
	if (close(fd))
		die("close %s", path_of(file));
}

static void write_at(long off, long len, bool synced)
{
	struct action *a = begin(WRITE, off, len);
	const char *bytes = bytes_of(a);
	long n = 0, some = 0;

	a->synced = synced;
	for (; n < len && some >= 0; n += some)
		some = pwrite(fd, bytes + n, (size_t)(len - n), off + n);
	done(a, some > 0);
}

static void append(long len, bool synced)
{
	struct action *a = begin(APPEND, -1, len);
	ssize_t n = write(fd, bytes_of(a), (size_t)len);

	a->synced = synced;
	a->off = lseek(fd, 0, SEEK_CUR) - len;
	done(a, n == len);
}

static void sync_file(void)
{
	struct action *a = begin(SYNC, 0, 0);
	int which = (int)rnd(5);

	done(a, !(which == 0 ? syncfs(fd) : which < 3 ? fdatasync(fd) : fsync(fd)));
}

static void sync_dir(void)
{
	struct action *a = begin(SYNC_DIR, 0, 0);
	int h = open(dir, O_RDONLY | O_DIRECTORY);

	done(a, h >= 0 && !fsync(h));
	close(h);
}

static void cut(void)
{
	struct action *a = begin(TRUNCATE, 0, rnd(3) ? (long)rnd((uint64_t)file_len) : 0);

	done(a, !(rnd(2) ? ftruncate(fd, a->len) : truncate(path_of(file), a->len)));
}

static void unlink_file(int no)
{
	struct action *a;

	file = no;
	a = begin(UNLINK, 0, 0);
	done(a, !unlink(path_of(no)));
}

static long some_len(long most)
{
	long len = rnd(2) ? 1 + (long)rnd((uint64_t)most) : 1 + (long)rnd(2000);

	return len < most ? len : most;
}

/* In one of the own parts of the file. */
static void write_own(bool synced)
{
	long nr = file_len / part, at = (long)rnd((uint64_t)nr);
	long len = some_len(part);

	at -= at % ranks - rank;
	write_at(at * part + (long)rnd((uint64_t)(part - len + 1)), len, synced);
}

static void read_some(void)
{
	long at = (long)rnd((uint64_t)file_len);

	if (pread(fd, buf, (size_t)(file_len - at), at) < 0)
		die("read %s", path_of(file));
}

static void write_through_map(void)
{
	struct action *a = begin(TRUNCATE, 0, file_len);
	char *map;

	done(a, !ftruncate(fd, file_len));
	map = mmap(NULL, (size_t)file_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		die("mmap %s", path_of(file));
	for (int i = 0; i < 5; i++) {
		long len = some_len(part);

		a = begin(WRITE, (long)rnd((uint64_t)(file_len - len)), len);
		memcpy(map + a->off, bytes_of(a), (size_t)len);
		done(a, true);
	}
	if (rnd(2)) {
		a = begin(SYNC, 0, 0);
		done(a, !msync(map, (size_t)file_len, MS_SYNC));
	}
	munmap(map, (size_t)file_len);
}

static void plfs(const char *verb)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		execl(getenv("PLFS"), "plfs", verb, path_of(file), NULL);
		die("%s", getenv("PLFS"));
	}
	if (waitpid(pid, &status, 0) < 0 || status)
		die("%s %s", verb, path_of(file));
}

static void cover_file(void)
{
	struct action *a = begin(SYNC, 0, 0);

	fd = open(path_of(file), O_RDONLY);
	done(a, fd >= 0 && !fsync(fd));
	close_file();
	a = begin(COVER, 0, 0);
	plfs("drain");
	done(a, true);
}

/* ---- stories of one file ---- */

static void write_and_sync(void)
{
	bool synced = !rnd(6);
	int flags = (is("append") ? O_APPEND : 0) | (synced ? rnd(2) ? O_DSYNC : O_SYNC : 0);

	open_file(flags);
	if (!rnd(2))
		sync_dir();
	for (int i = 0, nr = 5 + (int)rnd(60); i < nr && !story_over(story); i++) {
		int what = (int)rnd(20);

		if (is("small") && i == nr / 2) {
			part = ranks == 1 ? 60000 : part;
			file_len = 300000 / part / ranks * part * ranks;
		}
		if (what < 12 && is("append"))
			append(some_len(part < 16000 ? part : 16000), synced);
		else if (what < 12)
			write_own(synced);
		else if (what < 15 && is("truncate"))
			cut();
		else if (what < 17)
			sync_file();
		else if (what < 18)
			read_some();
		else if (what < 19 && is("mapped"))
			write_through_map();
		else if (what < 19)
			usleep((useconds_t)rnd(3000));
		else {
			close_file();
			open_file(flags | (is("truncate") && rnd(2) ? O_TRUNC : 0));
		}
	}
	if (rnd(2))
		sync_file();
	close_file();
	if (is("mapped") && story->mapped && rnd(2))
		plfs("flatten");
}

/* All of it is synced before it gets the name. */
static void replace(void)
{
	struct action *a;
	char old[4096];

	open_file(0);
	for (int i = 0, nr = 1 + (int)rnd(20); i < nr; i++)
		write_own(false);
	sync_file();
	close_file();
	snprintf(old, sizeof(old), "%s", path_of(file));
	a = begin(RENAME, 0, 0);
	done(a, !rename(old, path_of(-1)));
	if (rnd(4))
		sync_dir();
}

static pid_t start(int no, int life)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	rank = no;
	state = mix64(state ^ (uint64_t)(rank * 100 + life + 1));
	if (is("replace"))
		replace();
	else
		write_and_sync();
	exit(0);
}

static void tell_one_file(void)
{
	static const long parts[] = { 640, 8192, 100000, 262144 };
	pid_t pid[16];
	int status;

	part = is("small") ? 640 : parts[rnd(4)];
	file_len = is("small")		     ? 640 * 30 :
		   part * 4 * ranks < 300000 ? 300000 / part / ranks * part * ranks :
					       part * 4 * ranks;
	state = mix64(state ^ (uint64_t)file);
	for (int i = 0; i < ranks; i++)
		pid[i] = start(i, 0);
	if (is("killed")) {
		int no = (int)rnd((uint64_t)ranks);

		usleep((useconds_t)rnd(30000));
		kill(pid[no], SIGKILL);
		waitpid(pid[no], &status, 0);
		pid[no] = start(no, 1);
	}
	for (int i = 0; i < ranks; i++)
		if (waitpid(pid[i], &status, 0) < 0 || status)
			story->enough = 2;
}

/* ---- what the kernel may do ---- */

static int write_back(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	int h;

	(void)ftw;
	if (type != FTW_F || rnd(3) || !st->st_size)
		return story_over(story);
	h = open(path, O_RDONLY | O_NOFOLLOW);
	if (h < 0) /* removed meanwhile */
		return 0;
	sync_file_range(h, (off_t)rnd((uint64_t)st->st_size) & -4096,
			rnd(2) ? 4096 : (off_t)rnd((uint64_t)st->st_size),
			SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
	if (!rnd(50))
		syncfs(h);
	close(h);
	return story_over(story);
}

int main(int argc, char **argv)
{
	if (argc != 6)
		die("usage: acts HOW DIR STORY SEED RANKS");
	how = argv[1];
	dir = argv[2];
	story = story_open(argv[3], false);
	state = mix64(strtoull(argv[4], NULL, 10));
	ranks = atoi(argv[5]);
	story->mapped |= getenv("LD_PRELOAD") != NULL;
	if (is("writeback")) {
		while (!story_over(story)) {
			nftw(dir, write_back, 16, FTW_PHYS);
			usleep((useconds_t)rnd(5000));
		}
		return 0;
	}
	for (int i = 0; !story_over(story); i++) {
		file = i;
		tell_one_file();
		if (getenv("COVER") && !is("replace") && !story->enough && rnd(3))
			cover_file();
		if (i > 2 && !is("replace"))
			unlink_file(i - 2);
	}
	return story->enough > 1;
}
