/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI-IO cases without a sync between a write and a read. In atomic mode ROMIO locks the bytes of each call;
 * OMPIO trusts that the file system shows every write at once. See mpiio.h.
 */
#include "mpiio.h"

/* In atomic mode a write is seen by whoever hears of it, without a sync. */
CASE(atomic_mode)
{
	MPI_File fh = open_file("atomic", RDWR_NEW, MPI_INFO_NULL);
	char *back = blank(100 * (size_t)nr_ranks);
	int flag = -1;

	if (T(MPI_File_set_atomicity(fh, 1))) { /* not with this library: there is nothing to see */
		T(MPI_File_close(&fh));
		free(back);
		return;
	}
	T(MPI_File_get_atomicity(fh, &flag));
	say("atomic %d\n", flag);
	for (int round = 0; round < 4; round++) {
		int where = (rank + round) % nr_ranks * 100;
		char *buf = mine(100, round * 1000);

		ok(MPI_File_write_at(fh, where, buf, 100, MPI_BYTE, MPI_STATUS_IGNORE), "write_at", "atomic");
		MPI_Barrier(MPI_COMM_WORLD);
		X(MPI_File_read_at(fh, 0, back, 100 * nr_ranks, MPI_BYTE, &st));
		say_hash("all", back, 100 * (size_t)nr_ranks);
		MPI_Barrier(MPI_COMM_WORLD);
		free(buf);
	}
	T(MPI_File_set_atomicity(fh, 0));
	T(MPI_File_close(&fh));
	say_file("atomic");
	free(back);
}

/* All ranks write the same strided places at once: in atomic mode all of it is of one rank. */
CASE(atomic_mode_overlapping)
{
	enum { NR = 100 };
	MPI_File fh = open_file("overlap", RDWR_NEW | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL);
	MPI_Datatype t;
	char buf[NR * 8], back[NR * 8];
	const char *driver = getenv("OMPI_MCA_io");
	int mixed = 0;

	memset(buf, 'a' + rank, sizeof(buf));
	MPI_Type_vector(NR, 8, 20, MPI_BYTE, &t);
	MPI_Type_commit(&t);
	T(MPI_File_set_view(fh, 4, MPI_BYTE, t, "native", MPI_INFO_NULL));
	if (driver && !strcmp(driver, "ompio"))
		say("each place is a write of its own\n");
	else if (!T(MPI_File_set_atomicity(fh, 1)))
		for (int round = 0; round < 10; round++) {
			ok(MPI_File_write_at(fh, 0, buf, sizeof(buf), MPI_BYTE, MPI_STATUS_IGNORE),
			   "write_at", "overlap");
			MPI_Barrier(MPI_COMM_WORLD);
			ok(MPI_File_read_at(fh, 0, back, sizeof(back), MPI_BYTE, MPI_STATUS_IGNORE),
			   "read_at", "overlap");
			for (size_t i = 1; i < sizeof(back); i++)
				mixed += back[i] != back[0];
			MPI_Barrier(MPI_COMM_WORLD);
		}
	say("%s\n", mixed ? "bytes of several ranks" : "of one rank");
	T(MPI_File_close(&fh));
	MPI_Type_free(&t);
}

/*
 * The processes that read for a rank, two of all, need not be those that wrote for it: each finds its own
 * bytes still. The barrier is for OMPIO, which lets a rank go before the other process has written for it,
 * and finds zeros then on a plain file system as well.
 */
CASE(own_bytes_by_way_of_others)
{
	enum { LEN = 1000, NR = 20 };
	MPI_Datatype block, t;
	MPI_File fh;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "cb_nodes", "2");
	MPI_Info_set(info, "romio_cb_write", "enable");
	MPI_Info_set(info, "romio_cb_read", "enable");
	fh = open_file("others", RDWR_NEW, info);
	MPI_Type_contiguous(10, MPI_BYTE, &block);
	MPI_Type_create_resized(block, 0, 10 * nr_ranks, &t);
	MPI_Type_commit(&t);
	T(MPI_File_set_view(fh, 10 * rank, MPI_BYTE, t, "native", info));
	for (int i = 0; i < NR; i++) {
		char *buf = mine(LEN, i * LEN), *back = blank(LEN);

		X(MPI_File_write_at_all(fh, i * LEN, buf, LEN, MPI_BYTE, &st));
		MPI_Barrier(MPI_COMM_WORLD);
		X(MPI_File_read_at_all(fh, i * LEN, back, LEN, MPI_BYTE, &st));
		say("%s\n", memcmp(buf, back, LEN) ? "read other bytes" : "read the same");
		free(buf);
		free(back);
	}
	T(MPI_File_close(&fh));
	say_file("others");
	MPI_Type_free(&block);
	MPI_Type_free(&t);
	MPI_Info_free(&info);
}
