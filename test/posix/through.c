/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Roads into a mapped directory that do not look so: symbolic links somewhere else, spellings with more than
 * names in them, descriptors of directories, paths that end where memory does. Needs glibc 2.34: close_range.
 */
#include "posix.h"
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

static char far_dir[64] = "/tmp/plfs-far.XXXXXX";

static void remove_far(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", far_dir);
	if (system(command))
		say("%s failed\n", command);
}

/* A name in the directory elsewhere. */
static char *far_at(const char *name)
{
	static char ring[8][512];
	static int next;
	char *out = ring[next++ % 8];

	snprintf(out, sizeof ring[0], "%s/%s", far_dir, name);
	return out;
}

static void link_far(const char *name, const char *target)
{
	char path[512];

	snprintf(path, sizeof path, "%s/%s", getenv("P"), target);
	T(symlink(path, far_at(name)));
}

/* Elsewhere: links to a file, to the directory, to these links, to nothing, and all that behind a dot. */
static void far_begin(void)
{
	if (!mkdtemp(far_dir))
		exit(3);
	atexit(remove_far);
	link_far("l", "f");
	link_far("d", "");
	link_far("n", "new");
	T(symlink("l", far_at("ll")));
	T(symlink("d", far_at("ld")));
	T(symlink("d/f", far_at("lf")));
	T(mkdir(far_at("plain"), 0755));
	T(mkdir(far_at(".dots"), 0755));
	T(symlink("../d", far_at(".dots/d")));
	T(mkdir(at("sub"), 0755));
	make("f", "0123456789");
}

static const char *const roads[] = {
	"l",	      "ll",	   "lf",	 "d/f",		 "ld/f", "d//f", "d/./f",
	"d/sub/../f", ".dots/d/f", "plain/../l", "plain/../d/f", "d/f/", "l/",	 "d/none",
	"d/none/x",   "n",	   "d/sub/new",	 "d/.",		 "d",	 "ld/",
};

static const struct {
	const char *name;
	int flags;
} ways[] = {
	{ "rdonly", O_RDONLY },
	{ "wronly", O_WRONLY },
	{ "rdwr trunc", O_RDWR | O_TRUNC },
	{ "creat", O_WRONLY | O_CREAT },
	{ "creat trunc", O_WRONLY | O_CREAT | O_TRUNC },
	{ "creat excl", O_RDWR | O_CREAT | O_EXCL },
	{ "append", O_WRONLY | O_APPEND },
	{ "nofollow", O_RDWR | O_NOFOLLOW },
	{ "path", O_PATH },
	{ "path nofollow", O_PATH | O_NOFOLLOW },
	{ "directory", O_RDONLY | O_DIRECTORY },
	{ "cloexec", O_RDWR | O_CLOEXEC },
	{ "rdonly trunc", O_RDONLY | O_TRUNC },
	{ "a flag of nobody's", O_RDWR | 0x10000000 },
};

static void try_road(int (*opener)(const char *path, int flags), const char *road)
{
	char buf[64];
	struct stat st;
	ssize_t n;

	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		int fd;

		errno = 0;
		fd = opener(road, ways[i].flags);
		if (fd < 0) {
			say("%s, %s: %s\n", road, ways[i].name, strerrorname_np(errno));
			continue;
		}
		n = write(fd, "AB", 2);
		say("%s, %s: write %zd", road, ways[i].name, n);
		n = pread(fd, buf, sizeof buf, 0);
		say(" read %zd %.*s", n, n > 0 ? (int)n : 0, buf);
		if (!fstat(fd, &st) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
			say(" size %ld mode %o", (long)st.st_size, st.st_mode);
		close(fd);
		say("\n");
		make("f", "0123456789");
		unlink(at("new"));
		unlink(at("none"));
		unlink(at("sub/new"));
	}
}

static int open_far(const char *road, int flags) { return open(far_at(road), flags, 0640); }

CASE(opens_through_links_elsewhere)
{
	far_begin();
	for (size_t i = 0; i < sizeof roads / sizeof roads[0]; i++)
		try_road(open_far, roads[i]);
}

static int far_fd;

static int openat_far(const char *road, int flags) { return openat(far_fd, road, flags, 0640); }

CASE(opens_from_a_descriptor_elsewhere)
{
	far_begin();
	far_fd = T(open(far_dir, O_RDONLY | O_DIRECTORY)) < 0 ? -1 : open(far_dir, O_PATH);
	for (size_t i = 0; i < sizeof roads / sizeof roads[0]; i++)
		try_road(openat_far, roads[i]);
}

static int open_near(const char *road, int flags) { return open(road, flags, 0640); }

CASE(opens_relative_to_elsewhere)
{
	far_begin();
	T(chdir(far_dir));
	setenv("CASE_INSIDE", "", 1);
	for (size_t i = 0; i < sizeof roads / sizeof roads[0]; i++)
		try_road(open_near, roads[i]);
	try_road(open_near, "./l");
	try_road(open_near, "./plain/../ld/./f");
}

static int open_syscall_names(const char *road, int flags)
{
	char path[600];

	snprintf(path, sizeof path, "%s/%s", getenv("P"), road);
	return open(path, flags, 0640);
}

CASE(spellings_of_a_name)
{
	static const char *const spellings[] = {
		"f",	      "/f",  "//f", "./f",  ".//./f",	 "sub/../f", "sub/.././f",
		"sub//..//f", "f/",  "f/.", "sub/", "sub/.",	 "sub/..",   "sub/../none",
		".",	      "..f", ".f",  "...",  "none/../f", "f/../f",
	};

	T(mkdir(at("sub"), 0755));
	make("f", "0123456789");
	for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++)
		try_road(open_syscall_names, spellings[i]);
}

CASE(detours_before_the_prefix)
{
	static const char *const before[] = {
		"/", "//", "/./", "/tmp/..", "/tmp/../", "/usr/bin/../..", "/proc/self/../.."
	};
	char path[600];
	struct stat st;

	make("f", "hello");
	for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
		int fd;

		snprintf(path, sizeof path, "%s%s/f", before[i], getenv("P"));
		fd = open(path, O_RDONLY);
		say("%s: %d %d %d\n", before[i], fd >= 0, stat(path, &st), access(path, R_OK));
		say("%ld %o\n", (long)st.st_size, st.st_mode);
		T(read(fd, path, 3));
		T(close(fd));
	}
}

CASE(other_calls_through_links_elsewhere)
{
	struct timespec ts[2] = {{1000000000, 0}, {1100000000, 0}};
	struct statx sx;
	struct stat st;
	char buf[600];

	far_begin();
	for (size_t i = 0; i < sizeof roads / sizeof roads[0]; i++) {
		say("%s:\n", roads[i]);
		if (!T(stat(far_at(roads[i]), &st)) && S_ISREG(st.st_mode))
			say("size %ld mode %o blocks %d\n", (long)st.st_size, st.st_mode, st.st_blocks > 0);
		if (!T(lstat(far_at(roads[i]), &st)) && S_ISREG(st.st_mode))
			say("size %ld mode %o\n", (long)st.st_size, st.st_mode);
		if (!T(statx(AT_FDCWD, far_at(roads[i]), 0, STATX_SIZE, &sx)) && S_ISREG(sx.stx_mode))
			say("size %ld mode %o\n", (long)sx.stx_size, sx.stx_mode);
		T(access(far_at(roads[i]), W_OK));
		T(readlink(far_at(roads[i]), buf, 5));
		if (!T(chmod(far_at(roads[i]), 0700)) && !T(stat(far_at(roads[i]), &st)))
			say("mode %o\n", st.st_mode);
		T(chmod(at("f"), 0644));
		T(chown(far_at(roads[i]), getuid(), -1));
		T(truncate(far_at(roads[i]), 4));
		T(utimensat(AT_FDCWD, far_at(roads[i]), ts, 0));
		show("f");
		make("f", "0123456789");
	}
	T(rename(far_at("d/f"), far_at("d/g")));
	show("g");
	T(link(far_at("d/g"), far_at("d/f")));
	T(rename(far_at("ld/g"), at("h")));
	show("h");
	T(rename(far_at("plain"), far_at("simple")));
	T(unlink(far_at("l")));
	T(unlink(far_at("d/f")));
	T(unlink(far_at("ll")));
	T(rmdir(far_at("d/sub")));
	T(remove(far_at("d/h")));
	show("f");
	show("h");
}

CASE(streams_through_links_elsewhere)
{
	static const char *const modes[] = {"r", "r+", "a", "a+", "w", "w+", "rb", "re", "wx", "q"};
	char buf[64];

	far_begin();
	for (size_t i = 0; i < sizeof roads / sizeof roads[0]; i++)
		for (size_t j = 0; j < sizeof modes / sizeof modes[0]; j++) {
			FILE *fp = fopen(far_at(roads[i]), modes[j]);
			size_t n;

			if (!fp) {
				say("%s, %s: %s\n", roads[i], modes[j], strerrorname_np(errno));
				continue;
			}
			say("%s, %s: ", roads[i], modes[j]);
			n = modes[j][0] == 'r' ? fread(buf, 1, 4, fp) : 0;
			say("read %zu %.*s, ", n, (int)n, buf);
			fflush(fp);
			fseek(fp, 0, SEEK_CUR);
			say("write %d, ", fputs("xyz", fp) >= 0);
			say("close %d\n", fclose(fp));
			show("f");
			show("new");
			make("f", "0123456789");
			unlink(at("new"));
			unlink(at("none"));
			unlink(at("sub/new"));
		}
}

CASE(streams_elsewhere_begin_where_they_should)
{
	static const char *const modes[] = {"w", "r", "r+", "a", "a+"};

	far_begin();
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		FILE *fp = fopen(far_at("own"), modes[i]);

		say("%s: at %ld, ", modes[i], ftell(fp));
		say("write %d, ", fputs("0123456789", fp) >= 0);
		say("at %ld\n", ftell(fp));
		fclose(fp);
	}
}

CASE(links_of_descriptors)
{
	char path[64];
	int fd;

	make("f", "0123456789");
	fd = T(open(at("f"), O_RDWR));
	for (size_t i = 0; i < 5; i++) {
		static const char *const formats[] = { "/dev/fd/%d", "/proc/self/fd/%d", "//dev//fd/%d",
						       "/proc/./self/fd/%d", "/proc/thread-self/fd/%d" };
		struct stat st;
		FILE *fp;

		snprintf(path, sizeof path, formats[i], fd);
		T(stat(path, &st));
		say("%ld %o\n", (long)st.st_size, st.st_mode);
		T(truncate(path, 8 - (off_t)i));
		T(chmod(path, 0600 + i));
		T(access(path, R_OK));
		fp = fopen(path, "r+");
		say("stream %d\n", fp && fputs("ab", fp) >= 0 && !fclose(fp));
		show("f");
	}
	T(fcntl(fd, F_GETFL) & O_ACCMODE);
}

CASE(a_directory_descriptor_changes_its_meaning)
{
	int fd = T(open("/usr", O_RDONLY | O_DIRECTORY)), again;
	struct stat st;
	char path[512];

	make("f", "hello");
	T(fstatat(fd, "bin", &st, 0));
	T(syscall(SYS_close_range, 1000, 1000, 0));
	T(close_range(fd, fd, 0));
	again = open("/", O_RDONLY | O_DIRECTORY);
	T(again == fd);
	snprintf(path, sizeof path, "%s/f", getenv("P") + 1);
	T(fstatat(again, path, &st, 0));
	again = openat(again, path, O_RDONLY);
	T(read(again, path, 10));
}

/* Paths that end where a page does: whoever looks at more than the path dies. */
CASE(paths_before_unmapped_memory)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *path;
	char name[600], want[600];
	int nr_good = 0;
	struct stat st;

	munmap(page + 4096, 4096);
	for (int n = 1; n < 70; n++) {
		snprintf(name, sizeof name, "%s/%0*d", getenv("P"), n, 7);
		path = strcpy(page + 4096 - strlen(name) - 1, name);
		if (close(open(path, O_CREAT | O_RDWR, 0600)) || stat(path, &st) || access(path, R_OK) ||
		    unlink(path))
			say("%d: %s\n", n, strerrorname_np(errno));
		snprintf(want, sizeof want, "/usr/%0*d", n, 7);
		path = strcpy(page + 4096 - strlen(want) - 1, want);
		nr_good +=
			open(path, O_RDONLY) < 0 && errno == ENOENT && stat(path, &st) < 0 && errno == ENOENT;
		path = strcpy(page + 4096 - strlen(want), want + 1);
		nr_good +=
			open(path, O_RDONLY) < 0 && errno == ENOENT && stat(path, &st) < 0 && errno == ENOENT;
	}
	say("%d\n", nr_good);
}

static void *open_fifo(void *path) { return (void *)(intptr_t)open(path, O_RDONLY); }

CASE(cancelled_open_of_a_fifo)
{
	pthread_t thread;
	void *ret;

	far_begin();
	T(mkfifo(at("fifo"), 0644));
	T(mkfifo(far_at("fifo"), 0644));
	for (int i = 0; i < 2; i++) {
		V(pthread_create(&thread, NULL, open_fifo, i ? far_at("fifo") : at("fifo")));
		usleep(50000);
		V(pthread_cancel(thread));
		V(pthread_join(thread, &ret));
		T(ret == PTHREAD_CANCELED);
	}
}
