/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of table.h through PnetCDF, whose rows are records: the file grows as they are written.
 */
#include <pnetcdf.h>

#include "table.h"

static void nc(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "pnetcdf_table: %s: %s\n", what, ncmpi_strerror(rc));
	MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
	struct table t = table_init(argc, argv);
	int file, dims[2], var;
	int *v;

	if (t.writing) {
		MPI_Offset start[2] = { t.rank, 0 }, count[2] = { ROWS / t.nr_ranks, COLS },
			   stride[2] = { t.nr_ranks, 1 };

		v = table_rows(&t);
		nc(ncmpi_create(MPI_COMM_WORLD, t.path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file),
		   "create");
		nc(ncmpi_def_dim(file, "row", NC_UNLIMITED, &dims[0]), "def_dim");
		nc(ncmpi_def_dim(file, "column", COLS, &dims[1]), "def_dim");
		nc(ncmpi_def_var(file, "table", NC_INT, 2, dims, &var), "def_var");
		nc(ncmpi_put_att_text(file, var, "units", 5, "apple"), "put_att");
		nc(ncmpi_enddef(file), "enddef");
		if (t.collective) {
			nc(ncmpi_put_vars_int_all(file, var, start, count, stride, v), "put_vars_all");
		} else {
			nc(ncmpi_begin_indep_data(file), "begin_indep_data");
			nc(ncmpi_put_vars_int(file, var, start, count, stride, v), "put_vars");
			nc(ncmpi_end_indep_data(file), "end_indep_data");
		}
	} else {
		MPI_Offset start[2] = { 0, t.rank * (COLS / t.nr_ranks) },
			   count[2] = { ROWS, COLS / t.nr_ranks };

		v = malloc(sizeof(int) * ROWS * (size_t)(COLS / t.nr_ranks));
		nc(ncmpi_open(MPI_COMM_WORLD, t.path, NC_NOWRITE, MPI_INFO_NULL, &file), "open");
		nc(ncmpi_inq_varid(file, "table", &var), "inq_varid");
		if (t.collective) {
			nc(ncmpi_get_vara_int_all(file, var, start, count, v), "get_vara_all");
		} else {
			nc(ncmpi_begin_indep_data(file), "begin_indep_data");
			nc(ncmpi_get_vara_int(file, var, start, count, v), "get_vara");
			nc(ncmpi_end_indep_data(file), "end_indep_data");
		}
		table_check(&t, v);
	}
	nc(ncmpi_close(file), "close");
	free(v);
	MPI_Finalize();
	return 0;
}
