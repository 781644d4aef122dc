/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unflushed FILE BYTES: a program that leaves the flush of its stream to the C library's end.
 */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	size_t len = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	FILE *f = len ? fopen(argv[1], "w") : NULL;
	char *buf = malloc(len), *bytes = calloc(1, len);

	if (!f || !buf || !bytes || setvbuf(f, buf, _IOFBF, len))
		return 2;
	return fwrite(bytes, 1, len, f) == len ? 0 : 3;
}
