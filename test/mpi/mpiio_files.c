/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI-IO cases about files: modes of opening, sizes, errors, who sees what when, other communicators. See
 * mpiio.h.
 */
#include <sys/stat.h>

#include "mpiio.h"

static void try_open(const char *name, int amode)
{
	MPI_File fh;
	int rc, got;

	MPI_Barrier(MPI_COMM_WORLD);
	rc = MPI_File_open(MPI_COMM_WORLD, at(name), amode, MPI_INFO_NULL, &fh);
	say("open %s %d: %s\n", name, amode, class_name(rc));
	if (rc)
		return;
	T(MPI_File_get_amode(fh, &got));
	say("mode %d\n", got);
	T(MPI_File_close(&fh));
}

static void delete_it(const char *name)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		say("delete %s: %s\n", name, class_name(MPI_File_delete(at(name), MPI_INFO_NULL)));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void say_stat(const char *name)
{
	struct stat st;

	MPI_Barrier(MPI_COMM_WORLD);
	if (stat(at(name), &st))
		say("%s: %s\n", name, strerror(errno));
	else
		say("%s: mode %o, %lld bytes\n", name, (unsigned)st.st_mode, (long long)st.st_size);
	MPI_Barrier(MPI_COMM_WORLD);
}

CASE(delete_on_close)
{
	MPI_File fh = open_file("doomed", RDWR_NEW | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL);
	char buf[100] = "not for long";

	X(MPI_File_write_at(fh, rank * 100, buf, 100, MPI_BYTE, &st));
	say_stat("doomed");
	T(MPI_File_close(&fh));
	say_stat("doomed");
}

CASE(append_mode)
{
	char buf[100];
	MPI_Offset pos;
	MPI_File fh;

	memset(buf, 'a' + rank, sizeof(buf));
	for (int i = 0; i < 3; i++) {
		fh = open_file("append", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL);
		T(MPI_File_get_position(fh, &pos));
		say("at %lld\n", (long long)pos);
		T(MPI_File_seek(fh, rank * 100, MPI_SEEK_CUR));
		X(MPI_File_write_all(fh, buf, 100, MPI_BYTE, &st));
		T(MPI_File_close(&fh));
	}
	fh = open_file("append", MPI_MODE_RDWR | MPI_MODE_APPEND, MPI_INFO_NULL);
	T(MPI_File_get_position_shared(fh, &pos));
	say("shared pointer at %lld\n", (long long)pos);
	T(MPI_File_close(&fh));
	say_file("append");
}

static void say_size(MPI_File fh)
{
	MPI_Offset size;

	all_synced(fh);
	T(MPI_File_get_size(fh, &size));
	say("size %lld\n", (long long)size);
	all_synced(fh);
}

CASE(sizes)
{
	MPI_File fh = open_file("sizes", RDWR_NEW, MPI_INFO_NULL);
	char *buf = mine(1000, 0), *back = blank(1000);

	X(MPI_File_write_at_all(fh, rank * 1000, buf, 1000, MPI_BYTE, &st));
	say_size(fh);
	T(MPI_File_set_size(fh, 1500));
	say_size(fh);
	T(MPI_File_set_size(fh, 70000));
	X(MPI_File_read_at(fh, 1000, back, 1000, MPI_BYTE, &st)); /* half of it zeros */
	say_hash("cut and grown", back, 1000);
	T(MPI_File_close(&fh));
	say_file("sizes");
	fh = open_file("sizes", MPI_MODE_RDWR, MPI_INFO_NULL);
	T(MPI_File_set_size(fh, 0));
	X(MPI_File_write_at_all(fh, rank * 10, buf, 10, MPI_BYTE, &st));
	say_size(fh);
	T(MPI_File_close(&fh));
	say_file("sizes");
	free(buf);
	free(back);
}

CASE(preallocate)
{
	MPI_File fh = open_file("preallocated", RDWR_NEW, MPI_INFO_NULL);
	char *buf = mine(1000, 0);

	X(MPI_File_write_at_all(fh, rank * 1000, buf, 1000, MPI_BYTE, &st));
	say_size(fh);
	T(MPI_File_preallocate(fh, 100000));
	say_size(fh);
	T(MPI_File_close(&fh));
	free(buf);
}

/* Each rank overwrites what its neighbour wrote in the round before. */
CASE(sync_barrier_sync)
{
	MPI_File fh = open_file("sync", RDWR_NEW, MPI_INFO_NULL);
	char *back = blank(100 * (size_t)nr_ranks);

	for (int round = 0; round < 4; round++) {
		int where = (rank + round) % nr_ranks * 100;
		char *buf = mine(100, round * 1000);

		ok(MPI_File_write_at(fh, where, buf, 100, MPI_BYTE, MPI_STATUS_IGNORE), "write_at", "sync");
		all_synced(fh);
		X(MPI_File_read_at(fh, 0, back, 100 * nr_ranks, MPI_BYTE, &st));
		say_hash("all", back, 100 * (size_t)nr_ranks);
		MPI_Barrier(MPI_COMM_WORLD);
		free(buf);
	}
	T(MPI_File_close(&fh));
	say_file("sync");
	free(back);
}

/*
 * By each rank for itself, in turn: OMPIO guards its shared pointers with one semaphore for all files of a
 * name, and ranks that make and remove it at once fail, or wait for ever.
 */
static MPI_File open_alone(const char *name, int amode)
{
	MPI_File fh = MPI_FILE_NULL;

	for (int i = 0; i < nr_ranks; i++) {
		if (i == rank)
			ok(MPI_File_open(MPI_COMM_SELF, at(name), amode, MPI_INFO_NULL, &fh), "open", name);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	return fh;
}

static void close_alone(MPI_File *fh)
{
	for (int i = 0; i < nr_ranks; i++) {
		if (i == rank)
			T(MPI_File_close(fh));
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

/* Read, in shares, by fewer ranks than wrote it. */
CASE(other_communicators)
{
	char *buf = mine(999, 0), *back = blank(4 * 999);
	MPI_File fh = open_file("comms", RDWR_NEW, MPI_INFO_NULL);
	MPI_Comm some;

	X(MPI_File_write_at_all(fh, rank * 999, buf, 999, MPI_BYTE, &st));
	T(MPI_File_close(&fh));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Comm_split(MPI_COMM_WORLD, rank < 3 ? 0 : MPI_UNDEFINED, rank, &some);
	if (some != MPI_COMM_NULL) {
		int share = 999 * nr_ranks / 3;

		ok(MPI_File_open(some, at("comms"), MPI_MODE_RDWR, MPI_INFO_NULL, &fh), "open", "comms");
		X(MPI_File_read_at_all(fh, share * rank, back, share, MPI_BYTE, &st));
		say_hash("share", back, (size_t)share);
		X(MPI_File_write_at_all(fh, share * rank, back + 1, share - 1, MPI_BYTE, &st));
		T(MPI_File_close(&fh));
		MPI_Comm_free(&some);
	}
	say_file("comms");
	fh = open_alone("comms", MPI_MODE_RDWR);
	X(MPI_File_write_at(fh, (nr_ranks - rank) * 777, buf, 777, MPI_BYTE, &st));
	close_alone(&fh);
	say_file("comms");
	free(buf);
	free(back);
}

/* Two handles in one process: what one writes the other reads. */
CASE(two_handles)
{
	MPI_File a = open_file("twice", RDWR_NEW, MPI_INFO_NULL), b = open_alone("twice", MPI_MODE_RDONLY);
	char *buf = mine(300, 0), *back = blank(300);

	X(MPI_File_write_at(a, rank * 300, buf, 300, MPI_BYTE, &st));
	X(MPI_File_read_at(b, rank * 300, back, 300, MPI_BYTE, &st));
	say("%s\n", memcmp(buf, back, 300) ? "read other bytes" : "read the same");
	T(MPI_File_close(&a));
	X(MPI_File_read_at(b, rank * 300, back, 300, MPI_BYTE, &st));
	close_alone(&b);
	say_file("twice");
	free(buf);
	free(back);
}

/* The hints that the library chose tell its driver, which goes by what statfs says. */
CASE(hints_in_use)
{
	MPI_File fh = open_file("hints", RDWR_NEW | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL);
	char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
	int nr = 0, flag;
	MPI_Info info;

	T(MPI_File_get_info(fh, &info));
	MPI_Info_get_nkeys(info, &nr);
	for (int i = 0; i < nr; i++) {
		MPI_Info_get_nthkey(info, i, key);
		MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &flag);
		if (strncmp(value, dir, strlen(dir)) != 0)
			say("%s = %s\n", key, value);
	}
	MPI_Info_free(&info);
	T(MPI_File_close(&fh));
}

CASE(empty_file_and_far_write)
{
	MPI_File fh = open_file("empty", RDWR_NEW, MPI_INFO_NULL);
	char byte = 'x';

	T(MPI_File_close(&fh));
	say_file("empty");
	fh = open_file("far", RDWR_NEW, MPI_INFO_NULL);
	if (rank == nr_ranks - 1)
		X(MPI_File_write_at(fh, 1234567, &byte, 1, MPI_BYTE, &st));
	T(MPI_File_close(&fh));
	say_file("far");
}

/* OMPIO before 4.1.2 closes what it has not opened yet, and crashes (open-mpi/ompi issue 9083). */
static int bad_modes_crash(void)
{
#ifdef OMPI_MAJOR_VERSION
	const char *driver = getenv("OMPI_MCA_io");
	int version = OMPI_MAJOR_VERSION * 10000 + OMPI_MINOR_VERSION * 100 + OMPI_RELEASE_VERSION;

	return driver && !strcmp(driver, "ompio") && version < 40102;
#else
	return 0;
#endif
}

CASE(errors_of_opening)
{
	try_open("missing", MPI_MODE_RDONLY);
	try_open("missing", MPI_MODE_RDWR);
	try_open("no/directory", MPI_MODE_CREATE | MPI_MODE_WRONLY);
	if (bad_modes_crash()) {
		say("not opened with modes that are none: this OMPIO crashes\n");
	} else {
		try_open("both", MPI_MODE_RDONLY | MPI_MODE_RDWR);
		try_open("both", MPI_MODE_CREATE | MPI_MODE_RDONLY);
	}
	try_open("", MPI_MODE_RDWR);
	try_open("new", MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY);
	try_open("new", MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY);
	try_open("new", MPI_MODE_CREATE | MPI_MODE_RDWR);
	try_open("new/below", MPI_MODE_CREATE | MPI_MODE_RDWR);
	delete_it("new");
	delete_it("new");
	try_open("new", MPI_MODE_RDONLY);
	say_stat("new");
}

CASE(errors_of_access)
{
	MPI_File fh = open_file("access", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL);
	char buf[64] = "only written";
	MPI_Offset size = -1;

	X(MPI_File_write_at(fh, 64 * rank, buf, 64, MPI_BYTE, &st));
	X(MPI_File_read_at(fh, 0, buf, 64, MPI_BYTE, &st));
	T(MPI_File_close(&fh));
	fh = open_file("access", MPI_MODE_RDONLY, MPI_INFO_NULL);
	X(MPI_File_read_at(fh, 0, buf, 64, MPI_BYTE, &st));
	X(MPI_File_write_at(fh, 0, buf, 64, MPI_BYTE, &st));
	T(MPI_File_set_size(fh, 10));
	T(MPI_File_preallocate(fh, 10));
	X(MPI_File_write_at(fh, -1, buf, 64, MPI_BYTE, &st));
	T(MPI_File_seek(fh, -1, MPI_SEEK_SET));
	T(MPI_File_get_size(fh, &size));
	say("size %lld\n", (long long)size);
	T(MPI_File_close(&fh));
	fh = open_file("access", MPI_MODE_RDWR, MPI_INFO_NULL);
	T(MPI_File_set_size(fh, -1));
	T(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "nonesuch", MPI_INFO_NULL));
	T(MPI_File_close(&fh));
	say_file("access");
}
