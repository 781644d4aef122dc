/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The same N-1 job without MPI-IO: every rank opens each file of layout.h by itself, all at once and each
 * with O_CREAT, and writes its blocks with pwrite ("pwrite") or with lseek and write ("seek"). The reading
 * job may have any number of ranks and checks every byte.
 *
 *     n1_posix write|read DIR ROUND
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "mpi_job.h"

static void write_file(const struct part *p, const char *path, const char *how, unsigned round)
{
	bool seek = !strcmp(how, "seek");
	char *buf = malloc(p->block_len);
	int fd;

	MPI_Barrier(MPI_COMM_WORLD);
	fd = open(path, O_WRONLY | O_CREAT, 0644);
	if (fd < 0)
		die("%s: open", path);
	for (long k = 0; k < part_count(p); k++) {
		off_t off = part_off(p, k);

		pattern_fill(buf, p->block_len, (uint64_t)off, round);
		if (!seek)
			write_all(fd, buf, p->block_len, off, path);
		else if (lseek(fd, off, SEEK_SET) != off ||
			 write(fd, buf, p->block_len) != (ssize_t)p->block_len ||
			 lseek(fd, 0, SEEK_CUR) != off + (off_t)p->block_len)
			die("%s: lseek and write at %lld", path, (long long)off);
	}
	if (close(fd))
		die("%s: close", path);
	free(buf);
}

/* Each rank reads one stretch of the file, in pieces that have nothing to do with the blocks. */
static void read_file(const struct part *p, const char *path, const char *how, unsigned round)
{
	static char buf[65537];
	off_t share = part_size(p) / p->nr_ranks + 1, off = share * p->rank;
	int fd = open(path, O_RDONLY);
	struct stat st;

	(void)how;
	if (fd < 0 || fstat(fd, &st))
		die("%s: open", path);
	errno = 0;
	if (st.st_size != part_size(p))
		die("%s: %lld bytes long instead of %lld", path, (long long)st.st_size,
		    (long long)part_size(p));
	while (off < share * (p->rank + 1) && off < part_size(p)) {
		size_t n = read_all(fd, buf, sizeof(buf), off, path),
		       good = pattern_check(buf, n, (uint64_t)off, round);

		if (!n || good < n)
			die("%s: %s byte at %lld", path, n ? "wrong" : "no",
			    (long long)off + (long long)good);
		off += (off_t)n;
	}
	close(fd);
}

int main(int argc, char **argv)
{
	return n1_main(argc, argv, (const char *const[]){ "pwrite", "seek" }, write_file, read_file);
}
