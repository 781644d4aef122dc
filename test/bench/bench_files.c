/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What many small files cost: each is created, written once and closed; then all are looked at by stat(), one
 * of them again and again, and one whose writer was killed, all are read and removed, phase by phase. Prints
 * one JSON object: the seconds of each phase. Nothing is dirty at the beginning; between the phases nothing
 * is synced, since the disk would then take the time for giving up blocks again.
 *
 *     bench_files [-n FILES] [-s BYTES] DIR
 */
#include "bench.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { CALLS = 200, STRETCHES = 100, PASSES = 8, KILLED_BLOCKS = 200 };

static int nr_files = 10000;
static size_t len = 1024;
static char (*paths)[256]; /* made before the clock runs */
static char *data, *got;

static void must(bool good, int n, const char *call)
{
	if (!good)
		die("%s: %s", paths[n], call);
}

static void create(int n)
{
	int fd = open(paths[n], O_WRONLY | O_CREAT | O_TRUNC, 0644);

	must(fd >= 0, n, "open");
	must(write(fd, data + n % 64, len) == (ssize_t)len, n, "write");
	must(!close(fd), n, "close");
}

static void look(int n)
{
	struct stat st;

	must(!stat(paths[n], &st) && st.st_size == (off_t)len, n, "stat");
}

static void read_back(int n)
{
	int fd = open(paths[n], O_RDONLY);

	must(fd >= 0, n, "open");
	must(read(fd, got, len) == (ssize_t)len, n, "read");
	must(!close(fd), n, "close");
	errno = 0;
	must(!memcmp(got, data + n % 64, len), n, "wrong bytes");
}

static void take_away(int n) { must(!unlink(paths[n]), n, "unlink"); }

static const struct {
	const char *name;
	void (*call)(int n);
} phases[] = {
	{ "create", create },
	{ "read", read_back },
	{ "unlink", take_away },
};

enum { NR_PHASES_OF_FILES = sizeof(phases) / sizeof(phases[0]) };

/*
 * Looking at all files, or as often at one: seconds of the quickest of several times, when nobody else was in
 * the way.
 */
static double look_again(bool one)
{
	int times = one ? STRETCHES : PASSES, calls = one ? CALLS : nr_files;
	double least_s = 1e300;

	for (int i = 0; i < times; i++) {
		double start_s = now_s(), seconds;

		for (int n = 0; n < calls; n++)
			look(one ? nr_files / 2 : n);
		seconds = now_s() - start_s;
		least_s = seconds < least_s ? seconds : least_s;
	}
	return least_s / calls * nr_files;
}

/*
 * The same of a file in pieces that a process was writing when it was killed, with none of them told to the
 * stub.
 */
static double look_at_killed(const char *dir)
{
	char path[256];
	double least_s = 1e300;
	struct stat st;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/killed", dir);
	pid = fork();
	if (!pid) {
		int fd = bench_open(path, O_WRONLY | O_CREAT);

		for (int k = 0; k < KILLED_BLOCKS; k++)
			write_all(fd, data, len, (off_t)k * 2 * (off_t)len, path);
		kill(getpid(), SIGKILL);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		die("fork");
	for (int i = 0; i < STRETCHES; i++) {
		double start_s = now_s(), seconds;

		for (int n = 0; n < CALLS; n++)
			if (stat(path, &st) || st.st_size != (2 * KILLED_BLOCKS - 1) * (off_t)len)
				die("%s: stat", path);
		seconds = now_s() - start_s;
		least_s = seconds < least_s ? seconds : least_s;
	}
	if (unlink(path))
		die("%s: unlink", path);
	return least_s / CALLS * nr_files;
}

int main(int argc, char **argv)
{
	const char *dir;
	int c;

	while ((c = getopt(argc, argv, "n:s:")) != -1) {
		if (c == 'n')
			nr_files = atoi(optarg);
		else if (c == 's')
			len = strtoul(optarg, NULL, 0);
		else
			argc = 0;
	}
	if (optind != argc - 1 || nr_files < 1 || !len) {
		fprintf(stderr, "usage: bench_files [-n FILES] [-s BYTES] DIR\n");
		return 2;
	}
	dir = argv[optind];
	data = bench_buffer(len + 64);
	got = bench_buffer(len);
	pattern_fill(data, len + 64, 0, 0);
	paths = (char(*)[256])bench_buffer((size_t)nr_files * sizeof(*paths));
	for (int n = 0; n < nr_files; n++)
		snprintf(paths[n], sizeof(paths[n]), "%s/file.%d", dir, n);
	bench_settle(dir);
	for (int i = 0; i < NR_PHASES_OF_FILES; i++) {
		double start_s = now_s();

		for (int n = 0; n < nr_files; n++)
			phases[i].call(n);
		printf("%s\"%s\": %.9f", i ? ", " : "{", phases[i].name, now_s() - start_s);
		if (phases[i].call == create)
			printf(", \"stat\": %.9f, \"stat_one\": %.9f, \"stat_killed\": %.9f",
			       look_again(false), look_again(true), look_at_killed(dir));
	}
	printf("}\n");
	return 0;
}
