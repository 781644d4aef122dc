# SPDX-License-Identifier: BSD-3-Clause
# The MPI-IO cases (mpiio.h, mpiio_f.f90): each program runs on a plain directory and below the mount; what it prints and
# the files that it leaves must be the same, for it, for jobs of another size and for tools. Sourced after jobs.sh.

# Compared are the outputs, without the directories' names; what MPI says on standard error holds process ids.
# run_both STACK RANKS PROGRAM PLAIN_DIR DIR ARGUMENT...
run_both() {
	local stack=$1 ranks=$2 prog=$3 plain=$4 dir=$5 prg=$bin/$(stack_dir "$1")/$3
	shift 5
	echo "$prog $*"
	(under_env=(PLFS_TEST_PLAIN=1); launch "$stack" "$ranks" "$prg" "$plain" "$@") >"$work/want"
	launch "$stack" "$ranks" "$prg" "$dir" "$@" >"$work/got"
	sed -i "s|$plain|DIR|g" "$work/want"
	sed -i "s|$dir|DIR|g" "$work/got"
	diff "$work/want" "$work/got"
}

# mpiio STACK RANKS PROGRAM...: all cases of the programs. With OMPIO of Open MPI 4.1 an open that failed, and
# MPI_File_preallocate, leave messages behind that a later open takes for its own: a case that does so is the last of its job.
mpiio() {
	local stack=$1 ranks=$2 dir=$mnt/mpiio plain=$work/plain/mpiio prog case cases
	shift 2
	mkdir "$plain"
	under mkdir "$dir"
	for prog in "$@"; do
		cases=()
		if [ "$stack" = ompio ] && [ "$prog" != mpiio_f ]; then
			for case in $("$bin/openmpi/$prog" list); do
				cases+=("$case")
				case $case in preallocate | errors_*)
					run_both "$stack" "$ranks" "$prog" "$plain" "$dir" "${cases[@]}"
					cases=()
					;;
				esac
			done
			[ ${#cases[@]} != 0 ] || continue
		fi
		run_both "$stack" "$ranks" "$prog" "$plain" "$dir" "${cases[@]}"
	done
	[ -z "$(ls "$plain")" ] || run_both "$stack" $((ranks - 1)) mpiio_reread "$plain" "$dir"
	tools_agree "$dir" "$plain"
}

# What OMPIO offers for shared pointers: in shared memory, in a file beside the file, and one for each rank, merged at the
# end, which can only write.
mpiio_pointers() {
	local dir=$mnt/pointers plain=$work/plain/pointers
	mkdir "$plain"
	under mkdir "$dir"
	for OMPI_MCA_sharedfp in sm lockedfile individual; do
		export OMPI_MCA_sharedfp
		run_both ompio 4 mpiio_data "$plain" "$dir" shared_pointer ordered
	done
	tools_agree "$dir" "$plain"
}
