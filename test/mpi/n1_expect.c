/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Write, with one process and plain stdio, the files that n1_mpiio or n1_posix leave behind in a round:
 * what the other tools are to see. n1_expect DIR ROUND WAY...
 */
#include "layout.h"

static void expect(const struct part *p, const char *path, const char *how, unsigned round)
{
	size_t len = (size_t)part_size(p);
	void *buf = malloc(len);
	FILE *f = fopen(path, "w");

	(void)how;
	if (!f || !buf)
		die("%s", path);
	pattern_fill(buf, len, 0, round);
	if (fwrite(buf, 1, len, f) != len || fclose(f))
		die("%s", path);
	free(buf);
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: n1_expect DIR ROUND WAY...\n");
		return 2;
	}
	for (int i = 3; i < argc; i++)
		layout_each(argv[1], argv[i], 0, 1, expect, (unsigned)atoi(argv[2]));
	return 0;
}
