/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with functions of its own under the C library's names, which make the system calls by number:
 * allocators and tracers are made so. The library's syscall() must not come back to them.
 */
#include "posix.h"

#include <sys/syscall.h>

static int nr_reads, nr_maps;

ssize_t read(int fd, void *buf, size_t len)
{
	nr_reads++;
	return syscall(SYS_read, fd, buf, len);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	nr_maps++;
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

CASE(own_read_and_mmap)
{
	char buf[16] = "";
	int fd;
	char *map;

	make("f", "seen by number");
	fd = open(at("f"), O_RDONLY);
	nr_reads = nr_maps = 0;
	T(read(fd, buf, sizeof buf));
	say("%s, %d of our reads\n", buf, nr_reads);
	map = mmap(NULL, 14, PROT_READ, MAP_PRIVATE, fd, 0);
	say("%.14s, %s of our maps\n", map, nr_maps ? "some" : "none");
	close(fd);
}
