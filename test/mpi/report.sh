# SPDX-License-Identifier: BSD-3-Clause
# Real jobs of 8 ranks, and what plfs report says of them: for each file and rank the calls and bytes that strace has seen
# of the same job on a plain directory. Sourced after jobs.sh.

# Run a job with every write of each rank seen: $work/calls.RANK.
straced() { # STACK COMMAND...
	local stack=$1
	shift
	rm -f "$work"/calls.*
	# shellcheck disable=SC2016
	(under_env=(PLFS_TEST_PLAIN=1 "CALLS=$work/calls"); launch "$stack" 8 bash -c 'exec strace -f -qq -y -s 0 -e trace=write,writev,pwrite64,pwritev,pwritev2 \
		-o "$CALLS.${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" "$@"' - "$@")
}

# The same job under the library; its stats and traces in $work/reported.
counted() { # STACK COMMAND...
	local stack=$1
	shift
	rm -rf "$work/reported" && mkdir -p "$work/reported/traces"
	(under_env+=("PLFS_STATS=$work/reported/job.jsonl" "PLFS_TRACE=$work/reported/traces"); launch "$stack" 8 "$@")
}

# Each file below DIR, by its index, counts and traces, against what strace saw below PLAIN.
same_report() { # DIR PLAIN [streams]
	local how
	for how in stats traces; do
		"$BUILD/plfs" report -m "/plfs=$work/backend" -f csv "$(if [ $how = stats ]; then echo "$work/reported/job.jsonl"; else echo "$work/reported/traces"; fi)" \
			"$1"/* >"$work/got"
		python3 report.py "$work/got" "$work/calls" "$@" || { echo "by the $how"; return 1; }
	done
	"$BUILD/plfs" report -m "/plfs=$work/backend" -o "$work/page.html" "$work/reported/job.jsonl" "$work/reported/traces" "$1"/*
	grep -c '<svg' "$work/page.html"
}

report_hdf5() { # STACK HOW
	local dir=$work/backend/report-$1-$2 plain=$work/plain/report prg
	prg=$bin/$(stack_dir "$1")/hdf5_slab
	rm -rf "$plain" && mkdir "$plain" "$dir"
	straced "$1" "$prg" "$2" "$plain/field.h5"
	counted "$1" "$prg" "$2" "$mnt/${dir##*/}/field.h5"
	same_report "$dir" "$plain"
}

# shellcheck disable=SC2046 # none or one word
report_lammps() { # STACK
	local dir=$work/backend/report-lammps-$1 plain=$work/plain/report
	local LMP_CELLS=8 lmp_steps=100
	rm -rf "$plain" && mkdir "$plain" "$dir"
	lammps_input "$plain" >"$work/in.plain"
	lammps_input "$mnt/${dir##*/}" >"$work/in.counted"
	straced "$1" lmp -in "$work/in.plain" -log "$work/log.plain" -screen none
	counted "$1" lmp -in "$work/in.counted" -log "$work/log.counted" -screen none
	same_report "$dir" "$plain" $([ "$lmp_io" = mpiio ] || echo streams)
}
