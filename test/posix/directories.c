/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories: streams and their entries, working directories, names relative to one, real paths. */
#include "posix.h"
#include <limits.h>
#include <pthread.h>

CASE(directory_streams)
{
	struct dirent *e;
	char name[32], seen[300] = "";
	DIR *d;
	long pos = 0;
	int n = 0, again = 0;

	T(mkdir(at("d"), 0755));
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof name, "d/name%d", i);
		close(rw(name));
	}
	d = opendir(at("d"));
	while ((e = readdir(d))) {
		if (sscanf(e->d_name, "name%d", &again) == 1)
			seen[again]++;
		if (++n == 100)
			pos = telldir(d);
	}
	say("%d entries\n", n);
	for (int i = 0; i < 200; i++)
		if (seen[i] != 1)
			say("name%d seen %d times\n", i, seen[i]);
	seekdir(d, pos);
	for (n = 0; readdir(d); n++)
		;
	say("%d after seekdir\n", n);
	rewinddir(d);
	for (n = 0; readdir(d); n++)
		;
	say("%d after rewinddir\n", n);
	rewinddir(d);
	while ((e = readdir(d)))
		if (*e->d_name != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	T(closedir(d));
	list_dir("d");
	T((long)opendir(at("none")) == 0);
	T((long)opendir(at("d/none")) == 0);
	T((long)fdopendir(77) == 0);
	d = fdopendir(open(at("d"), O_RDONLY));
	T(d != NULL);
	close(rw("d/x"));
	rewinddir(d);
	for (n = 0; readdir(d); n++)
		;
	say("%d through fdopendir\n", n);
}

CASE(directory_entries_tell_types)
{
	make("f", "x");
	T(mkdir(at("d"), 0755));
	T(symlink("f", at("l")));
	T(mkfifo(at("p"), 0644));
	list_dir("");
}

CASE(container_directory_is_hidden)
{
	char path[PATH_MAX];
	struct stat st;

	make("f", "x");
	snprintf(path, sizeof path, "%s/../.plfs", getenv("P"));
	T(stat(path, &st));
	T(access(path, F_OK));
	T(open(path, O_RDONLY));
	snprintf(path, sizeof path, "%s/../.plfs/format", getenv("P"));
	T(open(path, O_RDONLY));
	T(unlink(path));
	T(system("ls -a $P/.. | grep plfs; find $P/.. -name '*plfs*' | grep -v plfs-test; echo done"));
	snprintf(path, sizeof path, "%s/..", getenv("P"));
	T(chdir(path));
	T(stat(".plfs", &st));
	T(open(".plfs/format", O_RDONLY));
	T(system("ls -a | grep plfs; echo done"));
}

CASE(working_directory)
{
	char buf[PATH_MAX], *p;
	struct stat a, b;
	int fd;

	T(mkdir(at("d"), 0755));
	T(mkdir(at("d/e"), 0755));
	fd = T(open(at("d"), O_RDONLY | O_DIRECTORY));
	T(chdir(at("d/e")));
	say("%s\n", getcwd(buf, sizeof buf));
	close(open("f", O_RDWR | O_CREAT, 0644));
	T(stat("../e/f", &a));
	T(stat("./f", &b));
	T(a.st_ino == b.st_ino);
	T(chdir(".."));
	say("%s\n", getcwd(NULL, 0));
	T(fchdir(fd));
	say("%s\n", p = get_current_dir_name());
	free(p);
	T(getcwd(buf, 3) == NULL);
	say("%s\n", strerrorname_np(errno));
	T(chdir("none"));
	T(chdir("e/f"));
	T(rename("e", "moved"));
	T(chdir("moved"));
	say("%s\n", getcwd(buf, sizeof buf));
	T(system("pwd; /bin/pwd -P; ls; echo from child >child"));
	T(system("cat child"));
	T(chdir("/"));
	say("%s\n", getcwd(buf, sizeof buf));
	T(rmdir(getenv("P")));
	T(openat(fd, "moved/child", O_RDONLY));
}

CASE(removed_working_directory)
{
	char buf[PATH_MAX];

	T(mkdir(at("d"), 0755));
	T(chdir(at("d")));
	T(system("rmdir \"$P/d\""));
	T(getcwd(buf, sizeof buf) == NULL);
	say("%s\n", strerrorname_np(errno));
	T(open("f", O_RDWR | O_CREAT, 0644));
	T(chdir(getenv("P")));
	say("%s\n", getcwd(buf, sizeof buf));
}

static volatile int goes_round = 1;

/* Into @dir and out of it. */
static void *go_round(void *dir)
{
	while (goes_round)
		if (chdir(dir) || chdir("/"))
			return dir;
	return NULL;
}

/* What the child's name leads to depends on where it is; wherever that is, it can leave. */
static int reads_there(const char *dir)
{
	char cwd[PATH_MAX], buf[8] = "";
	int fd, inside;

	alarm(20);
	inside = getcwd(cwd, sizeof cwd) && !strcmp(cwd, dir);
	fd = open("f", O_RDONLY);
	if (inside && (read(fd, buf, sizeof buf) != 4 || strcmp(buf, "abcd")))
		return 1;
	close(fd);
	if (chdir("/") || chdir(dir))
		return 2;
	fd = open("f", O_RDONLY);
	return read(fd, buf, sizeof buf) != 4 || strcmp(buf, "abcd") ? 3 : 0;
}

CASE(forks_while_a_thread_changes_the_directory)
{
	char dir[PATH_MAX];
	pthread_t thread;
	pid_t pid;
	void *ret;
	int status = 0;

	make("f", "abcd");
	snprintf(dir, sizeof dir, "%s", getenv("P"));
	pthread_create(&thread, NULL, go_round, dir);
	for (int i = 0; i < 200 && !status; i++) {
		if ((pid = fork()) == 0)
			_exit(reads_there(dir));
		waitpid(pid, &status, 0);
	}
	say("status %#x\n", status);
	goes_round = 0;
	pthread_join(thread, &ret);
	T(ret == NULL);
}

CASE(names_relative_to_a_directory)
{
	struct stat st;
	char buf[8], path[PATH_MAX];
	int d, fd;

	T(mkdir(at("d"), 0755));
	d = T(open(at("d"), O_RDONLY | O_DIRECTORY));
	fd = T(openat(d, "f", O_RDWR | O_CREAT, 0644));
	T(write(fd, "hello", 5));
	T(fstatat(d, "f", &st, 0));
	say("%ld\n", (long)st.st_size);
	T(mkdirat(d, "e", 0755));
	T(linkat(d, "f", d, "e/g", 0));
	T(renameat(d, "f", d, "e/h"));
	T(symlinkat("e/h", d, "l"));
	T(readlinkat(d, "l", buf, 8));
	T(faccessat(d, "l", R_OK, 0));
	T(faccessat(d, "none", R_OK, 0));
	T(fchmodat(d, "e/g", 0600, 0));
	T(fchownat(d, "e/g", -1, -1, 0));
	T(utimensat(d, "e/g", (struct timespec[]){{1, 0}, {2, 0}}, 0));
	T(unlinkat(d, "l", 0));
	T(openat(d, "../d/e/g", O_RDONLY));
	snprintf(path, sizeof path, "%s/d/e/g", getenv("P"));
	T(openat(d, path, O_RDONLY));
	T(openat(fd, "x", O_RDONLY));
	T(openat(d, "", O_RDONLY));
	T(openat(d, "e/../e/./g", O_RDWR | O_APPEND));
	T(renameat(d, "e", AT_FDCWD, at("moved")));
	T(unlinkat(d, "none", 0));
	T(mkfifoat(d, "fifo", 0600));
	T(mknodat(d, "node", S_IFREG | 0640, 0));
	fd = T(openat(d, "node", O_RDWR));
	T(write(fd, "into the node", 13));
	T(openat(d, "../../../../../../../../etc/passwd", O_RDONLY));
}

CASE(paths_with_dots)
{
	char path[PATH_MAX];
	const char *base = strrchr(getenv("P"), '/') + 1;

	make("f", "x");
	T(mkdir(at("d"), 0755));
	show("d/../f");
	show("./d/.././f");
	show("d//..//f");
	show("none/../f");
	show("f/../f");
	snprintf(path, sizeof path, "%s/../%s/f", getenv("P"), base);
	T(access(path, R_OK));
	snprintf(path, sizeof path, "/proc/..%s/f", getenv("P"));
	T(access(path, R_OK));
	snprintf(path, sizeof path, "/%s//f", getenv("P"));
	T(access(path, R_OK));
	snprintf(path, sizeof path, "%sx", getenv("P"));
	T(access(path, R_OK));
	T(symlink("d", at("l")));
	make("d/g", "through a link");
	show("l/g");
	show("l/../f");
	T(symlink("..", at("d/up")));
	show("d/up/f");
}

CASE(real_paths)
{
	char buf[PATH_MAX], *p;

	make("f", "x");
	T(mkdir(at("d"), 0755));
	T(symlink("../f", at("d/l")));
	say("%s\n", realpath(at("d/l"), buf));
	say("%s\n", p = realpath(at("d/../d/./l"), NULL));
	free(p);
	p = realpath(at("none"), NULL);
	say("%s %s\n", p ? p : "none", strerrorname_np(errno));
	say("%s\n", p = canonicalize_file_name(at("d")));
	free(p);
	T(chdir(at("d")));
	say("%s\n", p = realpath("l", NULL));
	say("%s\n", p = realpath(".", NULL));
	say("%s\n", p = realpath("..", NULL));
}
