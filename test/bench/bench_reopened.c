/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that opens its text log for each line, appends that, and closes it. The lines have various
 * lengths. Prints one JSON object: the seconds that the second eighth of the lines took, and the last.
 *
 *     bench_reopened [-n LINES] [-p] FILE
 *
 * -p: a new process appends each line, as in a script's loop. -l NO: this is one, for that line.
 */
#include <spawn.h>
#include <sys/wait.h>

#include "bench.h"

extern char **environ;

static long nr_lines = 16384;
static const char *path;

static int make_line(char *line, size_t size, long i)
{
	return snprintf(line, size, "step %ld: energy %.*f, temperature %.6f\n", i, (int)(i % 13),
			-76.0 / (double)(i + 1), 300.0 + (double)i);
}

static void append(long i)
{
	FILE *f = fopen(path, "a");
	char line[256];

	if (!f)
		die("%s: fopen", path);
	make_line(line, sizeof(line), i);
	if (fputs(line, f) == EOF || fclose(f))
		die("%s: fputs", path);
}

static void append_elsewhere(long i)
{
	char number[24];
	char *const args[] = { "bench_reopened", "-l", number, (char *)path, NULL };
	int status;
	pid_t pid;

	snprintf(number, sizeof(number), "%ld", i);
	if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ) ||
	    waitpid(pid, &status, 0) != pid || status)
		die("%s: a process for line %ld", path, i);
}

static bool is_good(void)
{
	FILE *f = fopen(path, "r");
	char line[256], want[256];
	long i = 0;

	if (!f)
		die("%s: fopen", path);
	while (fgets(line, sizeof(line), f)) {
		make_line(want, sizeof(want), i++);
		if (strcmp(line, want))
			break;
	}
	fclose(f);
	return i == nr_lines;
}

int main(int argc, char **argv)
{
	double begin_s = 0, seconds[8] = { 0 };
	void (*how)(long i) = append;
	long line = -1;
	int c;

	while ((c = getopt(argc, argv, "n:pl:")) != -1)
		switch (c) {
		case 'n': nr_lines = atol(optarg) / 8 * 8; break;
		case 'p': how = append_elsewhere; break;
		case 'l': line = atol(optarg); break;
		default: nr_lines = 0;
		}
	if (optind != argc - 1 || nr_lines < 8) {
		fprintf(stderr, "usage: bench_reopened [-n LINES] [-p] FILE\n");
		return 2;
	}
	path = argv[optind];
	if (line >= 0) {
		append(line);
		return 0;
	}
	for (int eighth = 0; eighth < 8; eighth++) {
		begin_s = now_s();
		for (long i = 0; i < nr_lines / 8; i++)
			how(eighth * (nr_lines / 8) + i);
		seconds[eighth] = now_s() - begin_s;
	}
	printf("{\"early\": %.9f, \"late\": %.9f, \"good\": %s}\n", seconds[1], seconds[7],
	       is_good() ? "true" : "false");
	return 0;
}
