# SPDX-License-Identifier: BSD-3-Clause
# The jobs of one program each, on whatever hosts launch() starts its ranks: N-1 files, HDF5, tables of arrays. Sourced after jobs.sh, with bin naming
# the directory of the programs.

# n1 STACK PROGRAM WAY...: 4 ranks write, 3 read; 8 ranks overwrite the same files, 3 read. MPICH's ranks wait for each other by
# spinning: of them there are half as many.
n1() {
	local stack=$1 prog=$2 dir=$mnt/$2-$1 prg ranks few=4
	[ "$stack" = mpich ] && few=2
	prg=$bin/$(stack_dir "$stack")/$prog
	shift 2
	under mkdir "$dir"
	for ranks in $few $((2 * few)); do
		launch "$stack" $ranks "$prg" write "$dir" $ranks
		launch "$stack" 3 "$prg" read "$dir" $ranks
		mkdir "$work/plain/n1"
		"$bin/n1_expect" "$work/plain/n1" $ranks "$@"
		if [ $ranks = $few ]; then
			(cd "$work/plain/n1" && md5sum -- *) >"$work/sums"
			under sh -c "cd $dir && md5sum -c --quiet" <"$work/sums"
			rm -r "$work/plain/n1"
		fi
	done
	tools_agree "$dir" "$work/plain/n1"
}

# hdf5 STACK independent|collective: written in parallel below the mount and on a plain directory, read and
# appended to by serial programs.
hdf5() {
	local stack=$1 how=$2 dir=$mnt/hdf5-$1-$2 plain=$work/plain/h5 d
	prg=$bin/$(stack_dir "$stack")/hdf5_slab
	under mkdir "$dir"
	mkdir "$plain"
	launch "$stack" 4 "$prg" "$how" "$dir/field.h5"
	(under_env=(PLFS_TEST_PLAIN=1); launch "$stack" 4 "$prg" "$how" "$plain/field.h5")
	under sh -c "cd $dir && h5dump field.h5" >"$work/got"
	(cd "$plain" && h5dump field.h5) >"$work/want"
	cmp "$work/want" "$work/got"
	under /usr/bin/python3 hdf5_read.py "$dir/field.h5"
	/usr/bin/python3 hdf5_read.py "$plain/field.h5"
	under sh -c "cd $dir && h5dump field.h5" >"$work/got"
	(cd "$plain" && h5dump field.h5) >"$work/want"
	cmp "$work/want" "$work/got"
	# Object headers hold the time of creation: the files themselves may differ there, and only there.
	under cat "$dir/field.h5" >"$plain/field.h5"
	tools_agree "$dir" "$plain"
}

# table STACK PROGRAM DUMP...: written with 4 ranks, independently and collectively, overwritten with 2, read with 4, 2 and 1,
# and dumped by a serial tool as on a plain directory.
table() {
	local stack=$1 prog=$2 prg=$bin/$(stack_dir "$1")/$2 dir=$mnt/table plain=$work/plain/table how ranks
	shift 2
	under mkdir "$dir"
	mkdir "$plain"
	for how in independent collective; do
		for ranks in 4 2; do
			launch "$stack" $ranks "$prg" write $how "$dir/$how"
			(under_env=(PLFS_TEST_PLAIN=1); launch "$stack" $ranks "$prg" write $how "$plain/$how")
			launch "$stack" $((6 - ranks)) "$prg" read $how "$dir/$how"
			launch "$stack" 1 "$prg" read $how "$dir/$how"
		done
		under sh -c 'cd "$1"; shift; exec "$@"' - "$dir" "$@" $how >"$work/got"
		(cd "$plain" && "$@" $how) >"$work/want"
		cmp "$work/want" "$work/got"
	done
	under sh -c 'cat "$1"/independent >"$2"/independent; cat "$1"/collective >"$2"/collective' - "$dir" "$plain"
	tools_agree "$dir" "$plain"
}

# netcdf STACK: the table, if the library is parallel. That of Debian 11 says so in its header, and is not.
netcdf() {
	local rc=0
	(under_env=(PLFS_TEST_PLAIN=1); launch "$1" 1 "$bin/openmpi/netcdf_table" write independent "$work/plain/parallel") || rc=$?
	[ $rc != 77 ] || echo "this NetCDF opens no file in parallel, on a plain directory either"
	[ $rc = 0 ] || return $rc
	rm "$work/plain/parallel"
	table "$1" netcdf_table ncdump
}
