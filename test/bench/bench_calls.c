/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What calls cost that have nothing to do with a mapped file: on a plain file in the page cache, by its
 * absolute path and by its name in the working directory. Prints nanoseconds per call, of each the least of
 * many short stretches, which take turns.
 *
 *     bench_calls FILE
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "../lib/job.h"

enum { CALLS = 200, STRETCHES = 40 };

static char absolute[4096], name[256], dir[4096], link_path[4110], link_name[270];
static const char *path; /* one of the two */
static int fd, dirfd_of_file;

static void must(bool good, const char *call)
{
	if (!good)
		die("%s: %s", path, call);
}

static void call_stat(void)
{
	struct stat st;

	must(!stat(path, &st), "stat");
}

static void call_open(void)
{
	int new_fd = open(path, O_RDONLY);

	must(new_fd >= 0 && !close(new_fd), "open and close");
}

static void call_create(void)
{
	int new_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	must(new_fd >= 0 && !close(new_fd), "open with O_CREAT | O_TRUNC, and close");
}

static void call_openat(void)
{
	int new_fd = openat(dirfd_of_file, name, O_RDONLY);

	must(new_fd >= 0 && !close(new_fd), "openat and close");
}

static void call_open_link(void)
{
	int new_fd = open(path == name ? link_name : link_path, O_RDONLY);

	must(new_fd >= 0 && !close(new_fd), "open by a link, and close");
}

static void call_fopen(void)
{
	FILE *fp = fopen(path, "r");

	must(fp && !fclose(fp), "fopen and fclose");
}

static void call_access(void) { must(!access(path, R_OK), "access"); }

static void call_readlink(void)
{
	char text[256];

	must(readlink(path == name ? link_name : link_path, text, sizeof(text)) > 0, "readlink");
}

static void call_opendir(void)
{
	DIR *d = opendir(path == name ? "." : dir);

	must(d, "opendir");
	while (readdir(d))
		;
	must(!closedir(d), "closedir");
}

static char byte;

static void call_pread(void) { must(pread(fd, &byte, 1, 0) == 1, "pread"); }
static void call_pwrite(void) { must(pwrite(fd, &byte, 1, 0) == 1, "pwrite"); }
static void call_read(void) { must(read(fd, &byte, 0) == 0, "read"); }
static void call_write(void) { must(write(fd, &byte, 0) == 0, "write"); }
static void call_lseek(void) { must(lseek(fd, 0, SEEK_SET) == 0, "lseek"); }
static void call_fcntl(void) { must(fcntl(fd, F_GETFD) >= 0, "fcntl"); }
static void call_dup2(void) { must(dup2(fd, fd + 100) == fd + 100, "dup2"); }

static void call_fstat(void)
{
	struct stat st;

	must(!fstat(fd, &st), "fstat");
}

static void call_dup(void)
{
	int new_fd = dup(fd);

	must(new_fd >= 0 && !close(new_fd), "dup and close");
}

static struct {
	const char *name;
	void (*call)(void);
	bool relative;
	double least_ns;
} calls[] = {
	{ "stat", call_stat, false, 0 },
	{ "stat, relative", call_stat, true, 0 },
	{ "open+close", call_open, false, 0 },
	{ "open+close, relative", call_open, true, 0 },
	{ "open O_TRUNC+close", call_create, false, 0 },
	{ "openat+close", call_openat, false, 0 },
	{ "open a link+close", call_open_link, false, 0 },
	{ "fopen+fclose", call_fopen, false, 0 },
	{ "access", call_access, false, 0 },
	{ "access, relative", call_access, true, 0 },
	{ "readlink", call_readlink, false, 0 },
	{ "opendir+readdir", call_opendir, false, 0 },
	{ "pread, 1 byte", call_pread, false, 0 },
	{ "pwrite, 1 byte", call_pwrite, false, 0 },
	{ "read, nothing", call_read, false, 0 },
	{ "write, nothing", call_write, false, 0 },
	{ "lseek", call_lseek, false, 0 },
	{ "fstat", call_fstat, false, 0 },
	{ "fcntl", call_fcntl, false, 0 },
	{ "dup2", call_dup2, false, 0 },
	{ "dup+close", call_dup, false, 0 },
};

enum { NR_CALLS = sizeof(calls) / sizeof(calls[0]) };

static void measure(int i)
{
	double start_s, ns;

	path = calls[i].relative ? name : absolute;
	calls[i].call();
	start_s = now_s();
	for (int n = 0; n < CALLS; n++)
		calls[i].call();
	ns = (now_s() - start_s) * 1e9 / CALLS;
	if (calls[i].least_ns == 0 || ns < calls[i].least_ns)
		calls[i].least_ns = ns;
}

int main(int argc, char **argv)
{
	const char *slash = argc == 2 ? strrchr(argv[1], '/') : NULL;

	if (!slash || slash == argv[1] || strlen(argv[1]) >= sizeof(absolute) ||
	    strlen(slash) >= sizeof(name)) {
		fprintf(stderr, "usage: bench_calls /DIRECTORY/FILE\n");
		return 2;
	}
	strcpy(absolute, argv[1]);
	strcpy(name, slash + 1);
	memcpy(dir, argv[1], (size_t)(slash - argv[1]));
	snprintf(link_path, sizeof(link_path), "%s.link", absolute);
	snprintf(link_name, sizeof(link_name), "%s.link", name);
	path = absolute;
	must(!chdir(dir), "chdir");
	fd = open(path, O_RDWR | O_CREAT, 0644);
	dirfd_of_file = open(dir, O_RDONLY | O_DIRECTORY);
	must(fd >= 0 && dirfd_of_file >= 0 && (!symlink(name, link_path) || errno == EEXIST), "open");
	for (int s = 0; s < STRETCHES; s++)
		for (int i = 0; i < NR_CALLS; i++) {
			if (calls[i].call == call_pread)
				write_all(fd, "x", 1, 0, path); /* it was truncated */
			measure(i);
		}
	for (int i = 0; i < NR_CALLS; i++)
		printf("%s\"%s\": %.2f", i ? ", " : "{", calls[i].name, calls[i].least_ns);
	printf("}\n");
	return 0;
}
