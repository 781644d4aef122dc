/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI-IO N-1 job: all ranks write each file of layout.h together, independently ("ind": write_at, or
 * write through a file view) and collectively ("coll": write_at_all, write_all); the reading job may have
 * any number of ranks and checks every byte.
 *
 *     n1_mpiio write|read DIR ROUND
 */
#include "mpi_job.h"

static void full(MPI_Status *st, int want, const char *what, const char *path)
{
	int got;

	MPI_Get_count(st, MPI_BYTE, &got);
	if (got == want)
		return;
	fprintf(stderr, "%s: %s: %d bytes instead of %d\n", path, what, got, want);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The rank's blocks of a nested layout as a file type: a vector of blocks in a vector of rows. */
static MPI_Datatype nested_view(const struct part *p)
{
	long cols = part_cols(p), rows = p->nr_blocks / cols;
	MPI_Datatype block, row, all;

	MPI_Type_contiguous((int)p->block_len, MPI_BYTE, &block);
	MPI_Type_vector((int)(cols / 2), 1, 2, block, &row);
	MPI_Type_create_hvector((int)(rows / (p->nr_ranks / 2)), 1,
				(MPI_Aint)(p->nr_ranks / 2) * cols * (MPI_Aint)p->block_len, row, &all);
	MPI_Type_commit(&all);
	MPI_Type_free(&block);
	MPI_Type_free(&row);
	return all;
}

/* Through the view, half a row of the table in each call: the library below has to scatter it. */
static void write_view(const struct part *p, MPI_File fh, const char *path, bool coll, unsigned round)
{
	MPI_Datatype view = nested_view(p);
	long per_call = part_cols(p) / 2;
	size_t len = (size_t)per_call * p->block_len;
	char *buf = malloc(len);

	ok(MPI_File_set_view(fh, part_off(p, 0), MPI_BYTE, view, "native", MPI_INFO_NULL), "set_view", path);
	for (long k = 0; k < part_count(p); k += per_call) {
		MPI_Status st;

		for (long i = 0; i < per_call; i++)
			pattern_fill(buf + (size_t)i * p->block_len, p->block_len,
				     (uint64_t)part_off(p, k + i), round);
		ok(coll ? MPI_File_write_all(fh, buf, (int)len, MPI_BYTE, &st)
			: MPI_File_write(fh, buf, (int)len, MPI_BYTE, &st), "write", path);
		full(&st, (int)len, "write", path);
	}
	MPI_Type_free(&view);
	free(buf);
}

static void write_blocks(const struct part *p, MPI_File fh, const char *path, bool coll, unsigned round)
{
	char *buf = malloc(p->block_len);

	for (long k = 0; k < part_count(p); k++) {
		MPI_Offset off = part_off(p, k);
		MPI_Status st;

		pattern_fill(buf, p->block_len, (uint64_t)off, round);
		ok(coll ? MPI_File_write_at_all(fh, off, buf, (int)p->block_len, MPI_BYTE, &st) :
			  MPI_File_write_at(fh, off, buf, (int)p->block_len, MPI_BYTE, &st),
		   "write_at", path);
		full(&st, (int)p->block_len, "write_at", path);
	}
	free(buf);
}

static void write_file(const struct part *p, const char *path, const char *how, unsigned round)
{
	bool coll = !strcmp(how, "coll");
	MPI_File fh;

	ok(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &fh), "open",
	   path);
	if (p->layout == NESTED)
		write_view(p, fh, path, coll, round);
	else
		write_blocks(p, fh, path, coll, round);
	ok(MPI_File_close(&fh), "close", path);
}

/* Each rank reads one stretch of the file, in pieces that have nothing to do with the blocks. */
static void read_file(const struct part *p, const char *path, const char *how, unsigned round)
{
	enum { PIECES = 7 };
	bool coll = !strcmp(how, "coll");
	MPI_Offset size, want = part_size(p);
	MPI_Offset share = want / p->nr_ranks + 1, piece = share / PIECES + 1;
	char *buf = malloc((size_t)piece);
	MPI_File fh;

	ok(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &fh), "open", path);
	ok(MPI_File_get_size(fh, &size), "get_size", path);
	if (size != want) {
		fprintf(stderr, "%s: %lld bytes long instead of %lld\n", path, (long long)size,
			(long long)want);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	for (int i = 0; i < PIECES; i++) {
		MPI_Offset off = share * p->rank + piece * i, end = share * (p->rank + 1);
		MPI_Status st;
		size_t good;
		int len;

		if (end > want)
			end = want;
		len = off < end ? (int)(end - off < piece ? end - off : piece) : 0;
		ok(coll ? MPI_File_read_at_all(fh, off, buf, len, MPI_BYTE, &st)
			: MPI_File_read_at(fh, off, buf, len, MPI_BYTE, &st), "read_at", path);
		full(&st, len, "read_at", path);
		good = pattern_check(buf, (size_t)len, (uint64_t)off, round);
		if (good < (size_t)len) {
			fprintf(stderr, "%s: wrong byte at %lld\n", path, (long long)off + (long long)good);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	ok(MPI_File_close(&fh), "close", path);
	free(buf);
}

int main(int argc, char **argv)
{
	return n1_main(argc, argv, (const char *const[]){ "ind", "coll" }, write_file, read_file);
}
