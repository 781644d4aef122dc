# SPDX-License-Identifier: BSD-3-Clause
# Real jobs of 8 ranks, and what plfs report says of them, compared with what strace has seen of the same job on a plain
# directory: report.py. Also of jobs half of whose ranks are killed. Sourced after jobs.sh; in test/cluster the backend is
# on the file system of two hosts.

store=${fs:-$work}

on_store() {
	if [ -n "$fs" ]; then in_host h1 "$@"; else "$@"; fi
}

# No rank writes for others, as far as the MPI library can be told so.
each_for_itself=("OMPI_MCA_fcoll=individual" "ROMIO_HINTS=$work/hints")
printf 'romio_cb_write disable\nromio_ds_write disable\n' >"$work/hints"

# The traced run: every call of each rank on files in $work/calls.RANK. The kernel sorts out the others: a rank that waits makes
# thousands.
straced() { # STACK COMMAND...
	local stack=$1
	shift
	rm -f "$work"/calls.*
	# shellcheck disable=SC2016
	(under_env=(PLFS_TEST_PLAIN=1 "CALLS=$work/calls" "${each_for_itself[@]}"); launch "$stack" 8 bash -c 'exec strace -f --seccomp-bpf -qq -y -s 0 \
		-e trace=write,writev,pwrite64,pwritev,read,readv,pread64,preadv,open,openat,creat,close,fsync,fdatasync,ftruncate,lseek \
		-o "$CALLS.${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" "$@"' - "$@")
}

# The same job under the library; each rank says in $work/who.RANK where it is.
counted() { # STACK COMMAND...
	local stack=$1
	shift
	on_store rm -rf "$store/reported"
	on_store mkdir -p "$store/reported/traces"
	rm -f "$work"/who.* "$work"/done.* "$work/killed" "$work/streams" "$work/sieved"
	echo "$EPOCHREALTIME" >"$work/began"
	# shellcheck disable=SC2016
	(under_env+=("PLFS_STATS=$store/reported/job.jsonl" "PLFS_TRACE=$store/reported/traces" "WHO=$work/who" "${each_for_itself[@]}")
	launch "$stack" 8 bash -c 'r=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; echo "$r $(uname -n) $$ $EPOCHREALTIME" >"$WHO.$r.tmp"; mv "$WHO.$r.tmp" "$WHO.$r"; exec "$@"' - "$@")
}

# What the report says of the files in DIR, by index, counts and traces, and on its page.
same_report() { # DIR PLAIN
	local how names jobs=("$store/reported/job.jsonl" "$store/reported/traces")
	echo "$EPOCHREALTIME" >"$work/ended"
	mapfile -t names < <(under find "$mnt/$1" -type f -printf "$store/backend/$1/%f\n" | grep -E '/(ck|traj|field)\.[^/]*$' | grep -v lock)
	reported() {
		on_store "$BUILD/plfs" report -m "/plfs=$store/backend" "$@" "${names[@]}"
	}
	reported --json >"$work/said.facts"
	reported -f csv >"$work/said.index"
	reported -f csv "${jobs[0]}" >"$work/said.stats"
	reported -f csv "${jobs[1]}" >"$work/said.traces"
	reported "${jobs[@]}" >"$work/said.html"
	on_store cat "${jobs[0]}" >"$work/job.jsonl"
	/usr/bin/python3 report.py "$work" "$2"
}

report_hdf5() { # STACK HOW
	local dir=report-$1-$2 plain=$work/plain/report prg
	prg=$bin/$(stack_dir "$1")/hdf5_slab
	rm -rf "$plain" && mkdir "$plain"
	under mkdir "$mnt/$dir"
	straced "$1" "$prg" "$2" "$plain/field.h5"
	counted "$1" "$prg" "$2" "$mnt/$dir/field.h5"
	[ "$1" = ompio ] || : >"$work/sieved"
	same_report "$dir" "$plain"
}

# Each rank writes row by row, and half of them kill themselves when they have half of their rows.
report_hdf5_killed() { # STACK
	local dir=report-killed-$1 plain=$work/plain/report prg
	prg=$bin/$(stack_dir "$1")/hdf5_slab
	rm -rf "$plain" && mkdir "$plain"
	under mkdir "$mnt/$dir"
	straced "$1" "$prg" rows "$plain/field.h5" "$work/done" 0
	! counted "$1" "$prg" rows "$mnt/$dir/field.h5" "$work/done" 1 || return 1
	echo "rows 2000" >"$work/killed"
	same_report "$dir" "$plain"
}

report_lammps_job() { # straced|counted STACK DIR
	lammps_input "$3" >"$work/in.$1"
	"$1" "$2" lmp -in "$work/in.$1" -log "$work/log.$1" -screen none
}

report_lammps() { # STACK
	local dir=report-lammps-$1 plain=$work/plain/report LMP_CELLS=8 lmp_steps=100
	rm -rf "$plain" && mkdir "$plain"
	under mkdir "$mnt/$dir"
	report_lammps_job straced "$1" "$plain"
	report_lammps_job counted "$1" "$mnt/$dir"
	[ "$lmp_io" = mpiio ] || : >"$work/streams"
	same_report "$dir" "$plain"
}

# Every second rank is killed, those of one host if there are two, when some checkpoints are complete.
report_lammps_killed() { # STACK
	local dir=report-lammps-killed-$1 plain=$work/plain/report LMP_CELLS=8 lmp_steps=400 job from
	rm -rf "$plain" && mkdir "$plain"
	under mkdir "$mnt/$dir"
	report_lammps_job straced "$1" "$plain"
	: >"$work/log.counted"
	report_lammps_job counted "$1" "$mnt/$dir" &
	job=$!
	until [ "$(lammps_complete "$work/log.counted")" -ge 150 ]; do
		kill -0 $job || { echo "the job ended by itself"; return 1; }
		sleep 0.05
	done
	on_store kill -KILL $(awk '$1 % 2 == 0 { print $3 }' "$work"/who.*)
	! wait $job || return 1
	from=$(lammps_complete "$work/log.counted")
	echo "step ck.$from.$lmp_io" >"$work/killed"
	same_report "$dir" "$plain"
}
