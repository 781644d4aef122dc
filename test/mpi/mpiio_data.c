/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI-IO cases about moving data: explicit offsets, individual and shared pointers, collective, nonblocking
 * and split calls, views, datatypes. See mpiio.h.
 */
#include "mpiio.h"

enum { PIECE = 1000, NR = 50 };

CASE(independent_pointer_and_offsets)
{
	MPI_File fh = open_file("independent", RDWR_NEW, MPI_INFO_NULL);
	char *buf = mine(PIECE, rank * PIECE), *back = blank(3 * PIECE);
	MPI_Offset pos;

	X(MPI_File_write_at(fh, (MPI_Offset)rank * PIECE, buf, PIECE, MPI_BYTE, &st));
	T(MPI_File_seek(fh, (MPI_Offset)(nr_ranks + rank) * PIECE, MPI_SEEK_SET));
	X(MPI_File_write(fh, buf, PIECE / 2, MPI_BYTE, &st));
	X(MPI_File_write(fh, buf + PIECE / 2, PIECE / 2, MPI_BYTE, &st));
	T(MPI_File_get_position(fh, &pos));
	say("position %lld\n", (long long)pos);
	X(MPI_File_read_at(fh, (MPI_Offset)rank * PIECE, back, PIECE, MPI_BYTE, &st));
	say_hash("what I wrote", back, PIECE);
	T(MPI_File_seek(fh, -PIECE, MPI_SEEK_CUR));
	X(MPI_File_read(fh, back, PIECE, MPI_BYTE, &st));
	say_hash("and again", back, PIECE);
	all_synced(fh);
	T(MPI_File_seek(fh, -(MPI_Offset)PIECE * (rank + 1), MPI_SEEK_END));
	X(MPI_File_read(fh, back, 3 * PIECE, MPI_BYTE, &st)); /* ends at the end of the file */
	say_hash("another's", back, PIECE);
	X(MPI_File_read_at(fh, 1 << 20, back, PIECE, MPI_BYTE, &st)); /* behind it */
	T(MPI_File_close(&fh));
	say_file("independent");
	free(buf);
	free(back);
}

CASE(independent_interleaved)
{
	MPI_File fh = open_file("interleaved", RDWR_NEW, MPI_INFO_NULL);

	for (int i = 0; i < 200; i++) {
		MPI_Offset off = (MPI_Offset)(i * nr_ranks + rank) * 47;
		char *buf = mine(47, off);

		ok(MPI_File_write_at(fh, off, buf, 47, MPI_BYTE, MPI_STATUS_IGNORE), "write_at",
		   "interleaved");
		free(buf);
	}
	T(MPI_File_close(&fh));
	say_file("interleaved");
}

CASE(collective_uneven_and_empty)
{
	int len = rank == 1 ? 0 : PIECE + rank; /* rank 1 has nothing to write */
	MPI_Offset off = (MPI_Offset)rank * (PIECE + nr_ranks);
	char *buf = mine((size_t)len, off), *back = blank(PIECE * 2);
	MPI_File fh;

	fill_old("collective", 5 * nr_ranks * PIECE);
	fh = open_file("collective", RDWR_NEW, MPI_INFO_NULL);
	X(MPI_File_write_at_all(fh, off, buf, len, MPI_BYTE, &st));
	X(MPI_File_read_at_all(fh, off, back, len, MPI_BYTE, &st));
	say_hash("mine", back, (size_t)len);
	T(MPI_File_seek(fh, (MPI_Offset)(nr_ranks + rank) * PIECE * 2, MPI_SEEK_SET));
	X(MPI_File_write_all(fh, buf, len, MPI_BYTE, &st));
	T(MPI_File_seek(fh, (MPI_Offset)((rank + 1) % nr_ranks) * (PIECE + nr_ranks), MPI_SEEK_SET));
	X(MPI_File_read_all(fh, back, PIECE, MPI_BYTE, &st));
	say_hash("the neighbour's", back, PIECE);
	T(MPI_File_close(&fh));
	say_file("collective");
	free(buf);
	free(back);
}

/* Several cycles of two-phase I/O. */
CASE(collective_large)
{
	enum { LEN = 3 << 20 };
	MPI_File fh = open_file("large", RDWR_NEW, MPI_INFO_NULL);
	MPI_Offset off = (MPI_Offset)rank * (LEN + 12345);
	char *buf = mine(LEN, off), *back = blank(LEN);

	X(MPI_File_write_at_all(fh, off, buf, LEN, MPI_BYTE, &st));
	X(MPI_File_read_at_all(fh, off + 777, back, LEN - 777, MPI_BYTE, &st));
	say_hash("mine", back, LEN - 777);
	T(MPI_File_close(&fh));
	say_file("large");
	free(buf);
	free(back);
}

/* NR ints of rank r: its number and their places. */
static int *ints(int nr)
{
	int *v = malloc((size_t)nr * sizeof(int));

	for (int i = 0; i < nr; i++)
		v[i] = (rank + 1) * 1000000 + i;
	return v;
}

static void through_view(const char *name, MPI_Offset disp, MPI_Datatype view, int nr, int coll,
			 MPI_Info info)
{
	int *v = ints(nr), *back = memset(malloc((size_t)nr * sizeof(int)), '?', (size_t)nr * sizeof(int));
	MPI_File fh = open_file(name, RDWR_NEW, info);
	MPI_Offset byte;

	T(MPI_File_set_view(fh, disp, MPI_INT, view, "native", info));
	T(MPI_File_get_byte_offset(fh, nr / 2, &byte));
	say("int %d is at byte %lld\n", nr / 2, (long long)byte);
	if (coll) {
		X(MPI_File_write_all(fh, v, nr / 2, MPI_INT, &st));
		X(MPI_File_write_all(fh, v + nr / 2, nr - nr / 2, MPI_INT, &st));
		hosts_synced(fh);
		X(MPI_File_read_at_all(fh, 1, back, nr - 1, MPI_INT, &st));
	} else {
		X(MPI_File_write(fh, v, nr / 2, MPI_INT, &st));
		X(MPI_File_write(fh, v + nr / 2, nr - nr / 2, MPI_INT, &st));
		X(MPI_File_read_at(fh, 1, back, nr - 1, MPI_INT, &st));
	}
	say("%s\n",
	    memcmp(v + 1, back, (size_t)(nr - 1) * sizeof(int)) ? "read other ints" : "read the same");
	T(MPI_File_close(&fh));
	say_file(name);
	free(v);
	free(back);
}

static MPI_Datatype committed(MPI_Datatype t)
{
	MPI_Type_commit(&t);
	return t;
}

static MPI_Datatype every_nth(int nth)
{
	MPI_Datatype block, every;

	MPI_Type_contiguous(3, MPI_INT, &block);
	MPI_Type_create_resized(block, 0, (MPI_Aint)(3 * sizeof(int)) * nth, &every);
	MPI_Type_free(&block);
	return committed(every);
}

CASE(view_interleaved_without_holes)
{
	MPI_Datatype t = every_nth(nr_ranks);

	through_view("view.ind", rank * 12, t, NR * 3, 0, MPI_INFO_NULL);
	through_view("view.coll", rank * 12, t, NR * 3, 1, MPI_INFO_NULL);
	MPI_Type_free(&t);
}

CASE(view_with_holes)
{
	MPI_Datatype t = every_nth(nr_ranks + 2);

	fill_old("holes.ind", 5000);
	through_view("holes.ind", 40 + rank * 12, t, NR * 3, 0, MPI_INFO_NULL);
	fill_old("holes.coll", 5000);
	through_view("holes.coll", 40 + rank * 12, t, NR * 3, 1, MPI_INFO_NULL);
	MPI_Type_free(&t);
}

/*
 * ROMIO's ways to write strided data: data sieving (read, modify, write under a lock), piece by piece,
 * two-phase.
 */
CASE(view_with_each_hint)
{
	static const struct {
		const char *name, *key[3], *value[3];
		int coll;
	} hints[] = {
		{ "hint.sieve", { "romio_ds_write", "ind_wr_buffer_size" }, { "enable", "512" }, 0 },
		{ "hint.pieces", { "romio_ds_write", "romio_ds_read" }, { "disable", "disable" }, 0 },
		{ "hint.twophase",
		  { "romio_cb_write", "cb_buffer_size", "cb_nodes" },
		  { "enable", "256", "2" },
		  1 },
		{ "hint.nocoll",
		  { "romio_cb_write", "romio_cb_read", "romio_ds_write" },
		  { "disable", "disable", "enable" },
		  1 },
		{ "hint.nofrills",
		  { "romio_no_indep_rw", "romio_cb_write", "romio_cb_read" },
		  { "true", "enable", "enable" },
		  1 },
	};
	MPI_Datatype t = every_nth(nr_ranks + 1);

	for (size_t h = 0; h < sizeof(hints) / sizeof(hints[0]); h++) {
		MPI_Info info;

		MPI_Info_create(&info);
		for (int k = 0; k < 3 && hints[h].key[k]; k++)
			MPI_Info_set(info, hints[h].key[k], hints[h].value[k]);
		fill_old(hints[h].name, 5000);
		through_view(hints[h].name, rank * 12, t, NR * 3, hints[h].coll, info);
		MPI_Info_free(&info);
	}
	MPI_Type_free(&t);
}

CASE(view_subarray_and_darray)
{
	int sizes[2] = { 8, 6 * nr_ranks }, sub[2] = { 8, 6 }, start[2] = { 0, 6 * rank };
	int distrib[2] = { MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK },
	    dargs[2] = { 2, MPI_DISTRIBUTE_DFLT_DARG };
	int grid[2] = { 0, 0 };
	MPI_Datatype t;

	MPI_Type_create_subarray(2, sizes, sub, start, MPI_ORDER_C, MPI_INT, &t);
	MPI_Type_commit(&t);
	through_view("subarray.ind", 16, t, 48, 0, MPI_INFO_NULL);
	through_view("subarray.coll", 16, t, 48, 1, MPI_INFO_NULL);
	MPI_Type_free(&t);
	MPI_Dims_create(nr_ranks, 2, grid);
	MPI_Type_create_darray(nr_ranks, rank, 2, sizes, distrib, dargs, grid, MPI_ORDER_FORTRAN, MPI_INT,
			       &t);
	MPI_Type_commit(&t);
	through_view("darray.coll", 0, t, 48, 1, MPI_INFO_NULL);
	MPI_Type_free(&t);
}

CASE(view_indexed_and_struct_in_memory)
{
	struct cell {
		char tag;
		double value;
		short s[3];
	} *cells = calloc(NR, sizeof(*cells)), *back = calloc(NR, sizeof(*cells));
	int lens[3] = { 1, 1, 3 }, blocks[4] = { 1, 3, 2, 1 }, places[4];
	MPI_Aint where[3] = { offsetof(struct cell, tag), offsetof(struct cell, value),
			      offsetof(struct cell, s) };
	MPI_Datatype parts[3] = { MPI_CHAR, MPI_DOUBLE, MPI_SHORT }, bare, cell, file;
	MPI_File fh;
	int size;

	fill_old("cells", 8000 * nr_ranks);
	fh = open_file("cells", RDWR_NEW, MPI_INFO_NULL);
	MPI_Type_create_struct(3, lens, where, parts, &bare);
	MPI_Type_create_resized(bare, 0, sizeof(*cells), &cell);
	MPI_Type_commit(&cell);
	MPI_Type_size(cell, &size); /* the holes in memory are not written */
	for (int i = 0; i < NR; i++)
		cells[i] =
			(struct cell){ (char)('a' + i % 26), rank + i / 7.0, { (short)rank, (short)i, -1 } };
	for (int i = 0; i < 4; i++)
		places[i] = 5 * i + rank % 2;
	MPI_Type_indexed(4, blocks, places, MPI_BYTE, &bare);
	MPI_Type_create_resized(bare, 0, 40, &file);
	MPI_Type_commit(&file);
	T(MPI_File_set_view(fh, (MPI_Offset)rank * 8000, MPI_BYTE, file, "native", MPI_INFO_NULL));
	X(MPI_File_write(fh, cells, NR / 2, cell, &st));
	hosts_synced(fh); /* who writes for this one may write the holes as well, as they were */
	X(MPI_File_write_all(fh, cells + NR / 2, NR / 2, cell, &st));
	hosts_synced(fh);
	X(MPI_File_read_at_all(fh, 0, back, NR, cell, &st));
	say("%d bytes a cell, %s\n", size, memcmp(cells, back, NR * sizeof(*cells)) ? "others" : "the same");
	T(MPI_File_close(&fh));
	say_file("cells");
	MPI_Type_free(&cell);
	MPI_Type_free(&file);
	free(cells);
	free(back);
}

CASE(nonblocking)
{
	MPI_File fh = open_file("nonblocking", RDWR_NEW, MPI_INFO_NULL);
	char *buf = mine(3 * PIECE, 0), *back = blank(3 * PIECE);
	MPI_Offset at_once = (MPI_Offset)rank * 3 * PIECE;
	MPI_Request r[4];

	T(MPI_File_iwrite_at(fh, at_once, buf, PIECE, MPI_BYTE, &r[0]));
	T(MPI_File_iwrite_at(fh, at_once + PIECE, buf + PIECE, PIECE, MPI_BYTE, &r[1]));
	T(MPI_File_seek(fh, at_once + 2 * PIECE, MPI_SEEK_SET));
	T(MPI_File_iwrite(fh, buf + 2 * PIECE, PIECE, MPI_BYTE, &r[2]));
	W(r[0]);
	W(r[1]);
	W(r[2]);
	T(MPI_File_iread_at(fh, at_once, back, 2 * PIECE, MPI_BYTE, &r[0]));
	W(r[0]);
	T(MPI_File_seek(fh, at_once + 2 * PIECE, MPI_SEEK_SET));
	T(MPI_File_iread(fh, back + 2 * PIECE, PIECE, MPI_BYTE, &r[0]));
	W(r[0]);
	say("%s\n", memcmp(buf, back, 3 * PIECE) ? "read other bytes" : "read the same");
	T(MPI_File_close(&fh));
	say_file("nonblocking");
	free(buf);
	free(back);
}

CASE(nonblocking_collective)
{
	const char *driver = getenv("OMPI_MCA_io");
	MPI_File fh = open_file("icollective", RDWR_NEW, MPI_INFO_NULL);
	char *buf = mine(2 * PIECE, 0), *back = blank(2 * PIECE);
	MPI_Offset mine_at = (MPI_Offset)rank * 2 * PIECE;
	MPI_Request r;

	if (driver && !strncmp(driver, "romio", 5)) { /* Open MPI's jumps to address 0 */
		say("none in this driver\n");
	} else {
		T(MPI_File_iwrite_at_all(fh, mine_at, buf, PIECE, MPI_BYTE, &r));
		W(r);
		T(MPI_File_seek(fh, mine_at + PIECE, MPI_SEEK_SET));
		T(MPI_File_iwrite_all(fh, buf + PIECE, PIECE, MPI_BYTE, &r));
		W(r);
		T(MPI_File_iread_at_all(fh, mine_at, back, PIECE, MPI_BYTE, &r));
		W(r);
		T(MPI_File_seek(fh, mine_at + PIECE, MPI_SEEK_SET));
		T(MPI_File_iread_all(fh, back + PIECE, PIECE, MPI_BYTE, &r));
		W(r);
		say("%s\n", memcmp(buf, back, 2 * PIECE) ? "read other bytes" : "read the same");
	}
	T(MPI_File_close(&fh));
	say_file("icollective");
	free(buf);
	free(back);
}

/* Many at once, through a view: more requests than one list of asynchronous operations takes. */
CASE(nonblocking_many_in_a_view)
{
	MPI_File fh = open_file("nonblocking.view", RDWR_NEW, MPI_INFO_NULL);
	MPI_Datatype t = every_nth(nr_ranks);
	MPI_Request r[NR];
	int *v = ints(NR * 30);

	T(MPI_File_set_view(fh, rank * 12, MPI_INT, t, "native", MPI_INFO_NULL));
	for (int i = 0; i < NR; i++)
		ok(MPI_File_iwrite_at(fh, i * 30, v + i * 30, 30, MPI_INT, &r[i]), "iwrite_at",
		   "nonblocking.view");
	for (int i = 0; i < NR; i++)
		ok(MPI_Wait(&r[i], MPI_STATUS_IGNORE), "wait", "nonblocking.view");
	T(MPI_File_close(&fh));
	say_file("nonblocking.view");
	MPI_Type_free(&t);
	free(v);
}

CASE(split_collectives)
{
	MPI_File fh = open_file("split", RDWR_NEW, MPI_INFO_NULL);
	char *buf = mine(2 * PIECE, 0), *back = blank(2 * PIECE);
	MPI_Offset mine_at = (MPI_Offset)rank * 2 * PIECE;

	T(MPI_File_write_at_all_begin(fh, mine_at, buf, PIECE, MPI_BYTE));
	X(MPI_File_write_at_all_end(fh, buf, &st));
	T(MPI_File_seek(fh, mine_at + PIECE, MPI_SEEK_SET));
	T(MPI_File_write_all_begin(fh, buf + PIECE, PIECE, MPI_BYTE));
	X(MPI_File_write_all_end(fh, buf + PIECE, &st));
	T(MPI_File_read_at_all_begin(fh, mine_at, back, PIECE, MPI_BYTE));
	X(MPI_File_read_at_all_end(fh, back, &st));
	T(MPI_File_seek(fh, mine_at + PIECE, MPI_SEEK_SET));
	T(MPI_File_read_all_begin(fh, back + PIECE, PIECE, MPI_BYTE));
	X(MPI_File_read_all_end(fh, back + PIECE, &st));
	say("%s\n", memcmp(buf, back, 2 * PIECE) ? "read other bytes" : "read the same");
	T(MPI_File_close(&fh));
	say_file("split");
	free(buf);
	free(back);
}

/* Records of 16 bytes whose order is anybody's: how many of each rank there are, and of anything else. */
static void say_records(const char *what, const char *buf, int len)
{
	int count[65] = { 0 };

	for (int i = 0; i + 16 <= len; i += 16) {
		int who = buf[i] - 'A', same = 1;

		for (int k = 1; k < 16; k++)
			same = same && buf[i + k] == buf[i];
		count[same && who >= 0 && who < nr_ranks ? who : 64]++;
	}
	say("%s: %d bytes,", what, len);
	for (int i = 0; i < nr_ranks; i++)
		say(" %d", count[i]);
	say(", %d of nobody\n", count[64]);
}

CASE(shared_pointer)
{
	MPI_File fh = open_file("shared", RDWR_NEW | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL);
	int each = 20, total = each * nr_ranks * 16, n = -1;
	char rec[16], *back = blank((size_t)total);
	MPI_Offset pos = -1;
	MPI_Request r;
	MPI_Status st;

	memset(rec, 'A' + rank, sizeof(rec));
	for (int i = 0; i < each - 1; i++)
		ok(MPI_File_write_shared(fh, rec, 16, MPI_BYTE, MPI_STATUS_IGNORE), "write_shared", "shared");
	T(MPI_File_iwrite_shared(fh, rec, 16, MPI_BYTE, &r));
	W(r);
	all_synced(fh);
	T(MPI_File_get_position_shared(fh, &pos));
	say("position %lld\n", (long long)pos);
	ok(MPI_File_read_at_all(fh, 0, back, total, MPI_BYTE, &st), "read_at_all", "shared");
	MPI_Get_count(&st, MPI_BYTE, &n);
	say_records("written", back, n);
	all_synced(fh);
	T(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));
	for (int i = 0; i < each; i++) {
		int rc = MPI_File_read_shared(fh, back + i * 16, 16, MPI_BYTE, MPI_STATUS_IGNORE);

		if (rc) {
			say("read_shared: %s\n", class_name(rc));
			break;
		}
	}
	MPI_Gather(rank ? back : MPI_IN_PLACE, each * 16, MPI_BYTE, back, each * 16, MPI_BYTE, 0,
		   MPI_COMM_WORLD);
	if (rank == 0)
		say_records("read by all", back, total);
	T(MPI_File_close(&fh));
	free(back);
}

CASE(ordered)
{
	MPI_File fh = open_file("ordered", RDWR_NEW, MPI_INFO_NULL);
	int len = 100 + 10 * rank;
	char *buf = mine(500, 0), *back = blank(500);
	MPI_Offset pos = -1;

	for (int i = 0; i < 5; i++)
		X(MPI_File_write_ordered(fh, buf + i, len, MPI_BYTE, &st));
	T(MPI_File_write_ordered_begin(fh, buf, len, MPI_BYTE));
	X(MPI_File_write_ordered_end(fh, buf, &st));
	all_synced(fh);
	T(MPI_File_get_position_shared(fh, &pos));
	say("position %lld\n", (long long)pos);
	all_synced(fh);
	T(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));
	X(MPI_File_read_ordered(fh, back, len, MPI_BYTE, &st));
	say_hash("mine", back, (size_t)len);
	T(MPI_File_read_ordered_begin(fh, back, len, MPI_BYTE));
	X(MPI_File_read_ordered_end(fh, back, &st));
	say_hash("the second", back, (size_t)len);
	T(MPI_File_close(&fh));
	say_file("ordered");
	free(buf);
	free(back);
}
