/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every file that other jobs left in a directory, read collectively by as many ranks as there happen to be:
 * its name, its size and a hash of each 64 KiB. See mpiio.h.
 */
#include <dirent.h>

#include "mpiio.h"

enum { CHUNK = 1 << 16 };

static int visible(const struct dirent *d) { return d->d_name[0] != '.'; }

CASE(every_file)
{
	struct dirent **names;
	int nr = scandir(dir, &names, visible, alphasort);

	if (nr < 0)
		die("%s", dir);
	for (int i = 0; i < nr; i++) {
		MPI_File fh = open_file(names[i]->d_name, MPI_MODE_RDONLY, MPI_INFO_NULL);
		char *buf = blank(CHUNK);
		MPI_Offset size;

		ok(MPI_File_get_size(fh, &size), "get_size", names[i]->d_name);
		if (rank == 0)
			say("%s: %lld\n", names[i]->d_name, (long long)size);
		for (MPI_Offset off = 0; off < size; off += (MPI_Offset)CHUNK * nr_ranks) {
			MPI_Offset at_byte = off + (MPI_Offset)CHUNK * rank;
			MPI_Status st;
			int n;

			ok(MPI_File_read_at_all(fh, at_byte, buf, CHUNK, MPI_BYTE, &st), "read_at_all",
			   names[i]->d_name);
			MPI_Get_count(&st, MPI_BYTE, &n);
			if (n)
				say("%s@%lld: %d %016llx\n", names[i]->d_name, (long long)at_byte, n,
				    (unsigned long long)hash_of(buf, (size_t)n));
		}
		ok(MPI_File_close(&fh), "close", names[i]->d_name);
		free(buf);
		free(names[i]);
	}
	free(names);
}
