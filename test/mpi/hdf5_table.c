/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of table.h through parallel HDF5, in chunks that several ranks share.
 */
#include <hdf5.h>

#include "table.h"

static hid_t h5(hid_t id, const char *what)
{
	if (id >= 0)
		return id;
	fprintf(stderr, "hdf5_table: %s failed\n", what);
	MPI_Abort(MPI_COMM_WORLD, 1);
	return id;
}

int main(int argc, char **argv)
{
	struct table t = table_init(argc, argv);
	hsize_t p = (hsize_t)t.nr_ranks, r = (hsize_t)t.rank, dims[2] = { ROWS, COLS }, chunk[2] = { 16, 64 };
	hid_t access = h5(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate"),
	      transfer = h5(H5Pcreate(H5P_DATASET_XFER), "H5Pcreate");
	hid_t space = h5(H5Screate_simple(2, dims, NULL), "H5Screate_simple"), memory, file, set;
	int *v;

	h5(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL), "H5Pset_fapl_mpio");
	h5(H5Pset_dxpl_mpio(transfer, t.collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT),
	   "H5Pset_dxpl_mpio");
	if (t.writing) {
		hsize_t start[2] = { r, 0 }, stride[2] = { p, 1 }, count[2] = { ROWS / p, COLS };
		hid_t layout = h5(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");

		v = table_rows(&t);
		file = h5(H5Fcreate(t.path, H5F_ACC_TRUNC, H5P_DEFAULT, access), "H5Fcreate");
		h5(H5Pset_chunk(layout, 2, chunk), "H5Pset_chunk");
		set = h5(H5Dcreate2(file, "table", H5T_STD_I32LE, space, H5P_DEFAULT, layout, H5P_DEFAULT),
			 "H5Dcreate2");
		memory = h5(H5Screate_simple(2, count, NULL), "H5Screate_simple");
		h5(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, NULL),
		   "H5Sselect_hyperslab");
		h5(H5Dwrite(set, H5T_NATIVE_INT, memory, space, transfer, v), "H5Dwrite");
		h5(H5Pclose(layout), "H5Pclose");
	} else {
		hsize_t start[2] = { 0, r * (COLS / p) }, count[2] = { ROWS, COLS / p };

		v = malloc(sizeof(int) * ROWS * (COLS / p));
		file = h5(H5Fopen(t.path, H5F_ACC_RDONLY, access), "H5Fopen");
		set = h5(H5Dopen2(file, "table", H5P_DEFAULT), "H5Dopen2");
		memory = h5(H5Screate_simple(2, count, NULL), "H5Screate_simple");
		h5(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL),
		   "H5Sselect_hyperslab");
		h5(H5Dread(set, H5T_NATIVE_INT, memory, space, transfer, v), "H5Dread");
		table_check(&t, v);
	}
	h5(H5Sclose(memory), "H5Sclose");
	h5(H5Sclose(space), "H5Sclose");
	h5(H5Dclose(set), "H5Dclose");
	h5(H5Fclose(file), "H5Fclose");
	h5(H5Pclose(transfer), "H5Pclose");
	h5(H5Pclose(access), "H5Pclose");
	free(v);
	MPI_Finalize();
	return 0;
}
