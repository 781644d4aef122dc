# SPDX-License-Identifier: BSD-3-Clause
# MPI jobs that are killed at random moments, see killed.c. Sourced after jobs.sh. A file is written by a job that is killed, then by
# another that goes on, and so on; after each kill a fresh process reads all that any rank has been told is written. The last job ends by
# itself; then the file is removed, and nothing may be left of it.

KILLS_PER_FILE=5
export OMPI_MCA_odls_base_sigkill_timeout=0 # or Open MPI gives each rank that it ends a second
export OMPI_MCA_orte_tmpdir_base=$work OMPI_MCA_btl_vader_backing_directory=$work # what killed jobs leave goes with it

# A process that reads; test/cluster has one on each host.
killed_check() {
	under timeout "${LIMIT_S:-60}" "$@"
}

# What else there may be.
killed_rest() {
	:
}

# killed_file STACK MODE SEED: SEED decides all, but what the scheduler does.
killed_file() {
	local stack=$1 mode=$2 seed=$3 prg=$bin/$(stack_dir "$1")/killed file=$mnt/killed.$2.$3 progress=$work/progress.$3 ranks how
	rm -f "$progress"
	ranks=$((2 + seed / 40 % 3))
	[ $stack$mode != mpichcoll ] || ranks=2 # more would spend their time waiting for each other
	for ((how = seed + 1; how <= seed + KILLS_PER_FILE; how++)); do
		echo "killed $stack $mode, seed $seed, $ranks ranks, how $how"
		(LAUNCH_EXEC=1; launch $stack $ranks "$prg" write $mode "$file" "$progress" $seed $how >"$work/log/killed" 2>&1) &
		"$prg" kill "$progress" $ranks $how $!
		{ wait $! || :; } 2>/dev/null
		if grep "^$file: " "$work/log/killed"; then return 1; fi # a call that failed
		killed_check "$prg" check $mode "$file" "$progress" $seed $ranks
	done
	launch $stack $ranks "$prg" finish $mode "$file" "$progress" $seed
	killed_check "$prg" check $mode "$file" "$progress" $seed $ranks
	under rm "$file"
	killed_rest "$file"
	nothing_left
}

# killed_jobs STACK KILLS SEED: so many at least, each five in another mode than those before.
killed_jobs() {
	local stack=$1 kills=$2 seed=$3 modes=(posix ind coll append) nr
	for ((nr = 0; nr * KILLS_PER_FILE < kills; nr++)); do
		killed_file "$stack" ${modes[(seed + nr) % 4]} $((seed + nr * 10))
	done
}
