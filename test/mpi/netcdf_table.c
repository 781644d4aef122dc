/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of table.h through parallel NetCDF-4 (over HDF5), in chunks.
 */
#include <netcdf.h>
#include <netcdf_par.h>

#include "table.h"

static void nc(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "netcdf_table: %s: %s\n", what, nc_strerror(rc));
	if (rc == NC_ENOPAR) { /* the library has these calls, but not the code for them */
		MPI_Finalize();
		exit(77);
	}
	MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
	struct table t = table_init(argc, argv);
	size_t p = (size_t)t.nr_ranks, chunk[2] = { 16, 64 };
	int access = t.collective ? NC_COLLECTIVE : NC_INDEPENDENT, file, dims[2], var;
	int *v;

	if (t.writing) {
		size_t start[2] = { (size_t)t.rank, 0 }, count[2] = { ROWS / p, COLS };
		ptrdiff_t stride[2] = { t.nr_ranks, 1 };

		v = table_rows(&t);
		nc(nc_create_par(t.path, NC_NETCDF4 | NC_CLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &file),
		   "create");
		nc(nc_def_dim(file, "row", ROWS, &dims[0]), "def_dim");
		nc(nc_def_dim(file, "column", COLS, &dims[1]), "def_dim");
		nc(nc_def_var(file, "table", NC_INT, 2, dims, &var), "def_var");
		nc(nc_def_var_chunking(file, var, NC_CHUNKED, chunk), "def_var_chunking");
		nc(nc_put_att_text(file, var, "units", 5, "apple"), "put_att");
		nc(nc_enddef(file), "enddef");
		nc(nc_var_par_access(file, var, access), "par_access");
		nc(nc_put_vars_int(file, var, start, count, stride, v), "put_vars");
	} else {
		size_t start[2] = { 0, (size_t)t.rank * (COLS / p) }, count[2] = { ROWS, COLS / p };

		v = malloc(sizeof(int) * ROWS * (COLS / p));
		nc(nc_open_par(t.path, NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file), "open");
		nc(nc_inq_varid(file, "table", &var), "inq_varid");
		nc(nc_var_par_access(file, var, access), "par_access");
		nc(nc_get_vara_int(file, var, start, count, v), "get_vara");
		table_check(&t, v);
	}
	nc(nc_close(file), "close");
	free(v);
	MPI_Finalize();
	return 0;
}
