# SPDX-License-Identifier: BSD-3-Clause
# Two hosts whose logs are near (near=), each in a directory of its own under the same path. Jobs that are killed, drained,
# and go on on the other host; a host that takes its directory with it. Sourced after jobs.sh, hosts.sh, programs.sh, lammps.sh
# and report.sh. All of them run by on_hosts.

near=$work/near

# near_hosts OPTIONS: of the mapping. Commands under the library run on h1, or where on= says.
near_hosts() {
	local host
	mkdir -p "$near"
	for host in h1 h2; do
		in_host $host umount -l "$near" 2>/dev/null || :
		in_host $host mount -t tmpfs -o size=1g none "$near"
	done
	under_env=("LD_PRELOAD=$preload" "PLFS_MAP=/plfs=$store/backend{small=0,near=$near${1:+,$1}}")
	under() {
		in_host "${on:-h1}" env -C "$PWD" "${under_env[@]}" "$@"
	}
}

# plfs_on HOST VERB...: the command, which has no mapping.
plfs_on() {
	in_host "$1" "$BUILD/plfs" "${@:2}"
}

near_logs_on() { # HOST
	in_host "$1" find "$near" -name 'data.*' -printf '%f\n'
}

near_helpers_on() { # HOST
	in_host "$1" pgrep -f "^plfs drain --background $near/" || :
}

# The host's place goes: nothing of it comes back.
near_wiped() { # HOST
	in_host "$1" umount -l "$near"
	in_host "$1" mount -t tmpfs -o size=1g none "$near"
}

# SIGKILL for all ranks of this name, of both hosts, and for the helpers: as a batch system ends a job. One may have ended meanwhile.
near_job_killed() { # NAME
	local pid pids=() host
	for pid in $(pgrep -x "$1"); do
		! grep -qz "^HOSTS=$HOSTS\$" "/proc/$pid/environ" || pids+=("$pid")
	done
	[ ${#pids[@]} = 0 ] || kill -KILL "${pids[@]}" || true
	for host in h1 h2; do
		mapfile -t pids < <(near_helpers_on $host)
		[ ${#pids[@]} = 0 ] || in_host $host kill -KILL "${pids[@]}" || true
	done
}

near_drained() { # HOST...
	local host
	for host; do
		plfs_on "$host" drain --wait --timeout=100 "$near"
		[ -z "$(near_logs_on "$host")" ]
	done
}

# until_true COMMAND...: for two minutes.
until_true() {
	local i
	for ((i = 0; i < 1200; i++)); do
		"$@" && return
		sleep 0.1
	done
	echo "not so after two minutes: $*"
	return 1
}

# ---- a host that is lost ----

# near_lost DIR: h1 is lost while h2 has drained its own. h2 reads all other bytes, and exactly those that plfs check names are errors, with a
# line that names host and place. Then h1 says what it had, which goes for good.
near_lost() {
	local file log dir=$1 saved=$work/saved
	rm -rf "$saved" && mkdir "$saved"
	mapfile -t files < <(on=h2 under ls "$mnt/$dir")
	for file in "${files[@]}"; do
		plfs_on h2 check "$store/backend/$dir/$file" >"$saved/$file.check" 2>&1 || [ $? = 1 ]
		on=h2 under /usr/bin/python3 near_lost.py read "$mnt/$dir/$file" "$saved/$file.check" "$saved/$file.got" 2>"$work/err" >"$work/said" || { cat "$work/said" "$work/err"; return 1; }
		if grep -q '^lost' "$work/said"; then
			grep -m 1 "$mnt/$dir/$file: .*data[.]h1-.*: on h1 in $near/plfs.*not drained" "$work/err"
			grep -q "on h1 in $near/plfs.*not drained" "$saved/$file.check" || { cat "$saved/$file.check"; return 1; }
		fi
		! grep -v "on h1 in $near/plfs.*not drained" "$work/err" || return 1
	done
	for log in $(near_logs_on h1); do
		if in_host h1 find "$near" -name "live${log#data}" | grep -q .; then echo "$log killed"; else echo "$log closed"; fi
	done >"$work/saved.logs"
	[ -s "$work/saved.logs" ]
	on_store find "$store/backend/.plfs" -name 'data.*' ! -name '*.tmp.*' -printf '%f %s\n' >"$work/saved.logs.home"
	for file in "${files[@]}"; do
		under cat "$mnt/$dir/$file" >"$saved/$file"
		plfs_on h1 map --json "$store/backend/$dir/$file" >"$saved/$file.map"
		/usr/bin/python3 near_lost.py compare "$saved/$file.check" "$saved/$file.got" "$saved/$file" "$work/saved.logs"
	done
	near_wiped h1
}

# ---- LAMMPS ----

near_here() { # STEP: its checkpoint has been begun
	on_store test -e "$backend/ck.$1.$lmp_io"
}

# The job goes on computing while its first checkpoints are moved; then it is killed while it writes another.
near_lammps_killed() { # STACK DIR AFTER HOME
	local dir=$2 after=$3 launcher
	lammps_input "$mnt/$dir" >"$work/in.killed"
	: >"$work/log.killed"
	(LAUNCH_EXEC=1 launch "$1" 4 lmp -in "$work/in.killed" -log "$work/log.killed" -screen none) >"$work/log/killed" 2>&1 &
	launcher=$!
	at_step() {
		kill -0 $launcher || { cat "$work/log/killed"; echo "the job ended by itself"; exit 1; }
		[ "$(lammps_complete "$work/log.killed")" -ge "$1" ]
	}
	until at_step "$4"; do sleep 0.05; done
	# Ranks that write without a pause, as these do, are given way to for as long as the job may last.
	for host in h1 h2; do plfs_on $host drain -q "$near" >"$work/log/drained" 2>&1 || [ $? = 75 ]; done
	plfs_on h2 places --wait --timeout=100 "$backend/ck.$4.$lmp_io"
	at_step "$4"
	echo "checkpoint $4 is at home, and the job at step $(lammps_last "$work/log.killed")"
	until at_step "$after"; do sleep 0.05; done
	until at_step "$after" && near_here $((after + lmp_every)); do :; done
	near_job_killed lmp
	! wait $launcher || return 1
	[ "$(lammps_last "$work/log.killed")" -lt $lmp_steps ]
	for host in h1 h2; do echo "near on $host: $(near_logs_on $host | wc -l) logs"; done
}

# Nothing of h1 is there any more: h2 alone goes on from what was drained, and comes to what an undisturbed job comes to.
near_lammps_goes_on() { # STACK DIR [FROM]
	on=h2 under sh -c "rm -f $mnt/$2/*.lock" # OMPIO's own, of killed ranks
	local hosts_of_job=h2:4 on=h2 near_from=$3
	[ -z "$3" ] || lammps_complete() { echo "$near_from"; }
	lammps_restarted "$1" 4 "$mnt/$2"
	lammps_same "$work/plain/near-lammps" "$mnt/$2"
	near_drained h2
	plfs_on h2 check -q -r "$backend"
}

near_lammps() { # STACK
	local dir=near-lammps-$1 LMP_CELLS=10 lmp_steps=${NEAR_STEPS:-600} backend host
	backend=$store/backend/$dir
	near_hosts ""
	under mkdir "$mnt/$dir"
	rm -rf "$work/plain/near-lammps"
	lammps_whole "$1" 4 "$work/plain/near-lammps"
	near_lammps_killed "$1" "$dir" 200 50
	near_drained h1 h2
	near_wiped h1
	on=h2 lammps_torn "$work/plain/near-lammps" "$mnt/$dir"
	near_lammps_goes_on "$1" "$dir"
}

near_lammps_lost() { # STACK
	local dir=near-lost-$1 LMP_CELLS=10 lmp_steps=${NEAR_STEPS:-600} backend host files
	backend=$store/backend/$dir
	near_hosts rate=400K
	under mkdir "$mnt/$dir"
	rm -rf "$work/plain/near-lammps"
	lammps_whole "$1" 4 "$work/plain/near-lammps"
	near_lammps_killed "$1" "$dir" 200 50
	near_drained h2
	near_lost "$dir"
	on=h2 under cmp "$work/plain/near-lammps/ck.50.$lmp_io" "$mnt/$dir/ck.50.$lmp_io"
	# What is lost is given up where it is not written anew.
	on=h2 under sh -c "cd '$mnt/$dir' && ls | grep -v '^ck.50[.]' | xargs rm"
	near_lammps_goes_on "$1" "$dir" 50
}

# ---- HDF5 ----

# Ranks of both hosts write a file row by row; those of h1 are killed, so that the launcher ends the rest. Ranks 0 and 2 are on h1.
near_hdf5_killed() { # STACK FILE
	rm -f "$work"/killed.*
	! launch "$1" 4 "$prg" rows "$2" "$work/killed" 1 || return 1
	near_hdf5_ended
}

near_hdf5_ended() {
	near_job_killed hdf5_slab
	for rank in 0 1 2 3; do echo "rank $rank: $(stat -c %s "$work/killed.$rank") rows"; done
}

near_hdf5_steps() { stat -c %s "$work/steps" 2>/dev/null || echo 0; }

# The same, by a job that has written a file before, and computes until that is at home.
near_hdf5_computes() { # STACK FILE FILE2
	local launcher from
	rm -f "$work"/killed.* "$work/steps" "$work/enough"
	(LAUNCH_EXEC=1 launch "$1" 4 "$prg" computes "$mnt/$2" "$work/steps" "$work/enough" "$mnt/$3" "$work/killed") >"$work/log/computes" 2>&1 &
	launcher=$!
	until [ "$(near_hdf5_steps)" -gt 0 ]; do
		kill -0 $launcher || { cat "$work/log/computes"; return 1; }
		sleep 0.05
	done
	from=$(near_hdf5_steps)
	[ -n "$(near_logs_on h1)" ] # the helper is slow enough
	plfs_on h1 places --wait --timeout=100 "$store/backend/$2"
	plfs_on h2 places --wait --timeout=100 "$store/backend/$2"
	kill -0 $launcher
	echo "it came home while the job made steps $from to $(near_hdf5_steps)"
	[ "$(near_hdf5_steps)" -gt $((from + 10)) ]
	touch "$work/enough"
	! wait $launcher || return 1
	near_hdf5_ended
}

# near_hdf5 STACK [lost]: what was drained before is whole on the other host, which then does the work of the job that was killed. What ranks
# 0 and 2 wrote is lost with h1, if it was not drained: of a file that was closed all of it is an error; what they had not released before they
# were killed is as if it had not been written.
near_hdf5() {
	local dir=near-hdf5-$1$2 plain=$work/plain/h5 prg rank file offset on hosts_of_job
	prg=$bin/$(stack_dir "$1")/hdf5_slab
	if [ "$2" = lost ]; then near_hosts drain=none; else near_hosts rate=100K; fi
	under mkdir "$mnt/$dir"
	mkdir "$plain"
	(under_env=(PLFS_TEST_PLAIN=1); launch "$1" 4 "$prg" independent "$plain/field.h5")
	(cd "$plain" && h5dump field.h5) >"$work/want"
	offset=$(/usr/bin/python3 -c 'import h5py, sys; print(h5py.File(sys.argv[1])["field"].id.get_offset())' "$plain/field.h5")
	rm -f "$work"/closed.*
	if [ "$2" = lost ]; then
		launch "$1" 4 "$prg" independent "$mnt/$dir/field.h5"
		near_drained h1 h2
		plfs_on h2 places --wait --timeout=100 "$store/backend/$dir/field.h5"
		launch "$1" 4 "$prg" rows "$mnt/$dir/closed.h5" "$work/closed" 0
		near_hdf5_killed "$1" "$mnt/$dir/killed.h5"
	else
		near_hdf5_computes "$1" "$dir/field.h5" "$dir/killed.h5"
	fi
	[ -n "$(near_logs_on h2)" ]
	near_drained h2
	[ "$2" = lost ] || near_drained h1
	near_wiped h1
	on=h2
	under sh -c "cd $mnt/$dir && h5dump field.h5" >"$work/got"
	cmp "$work/want" "$work/got"
	for file in ${2:+closed} killed; do
		! plfs_on h2 check "$store/backend/$dir/$file.h5" >"$work/check" || [ "$2$file" != lostclosed ]
		cat "$work/check"
		under /usr/bin/python3 near_rows.py "$mnt/$dir/$file.h5" "$offset" "$work/$file" "$work/check" $2 2>"$work/err" || { cat "$work/err" "$work/check"; return 1; }
		[ "$2$file" != lostclosed ] || grep -m 1 "$mnt/$dir/closed.h5: .*: on h1 in $near/plfs.*not drained" "$work/err"
		[ -z "$2" ] || grep "leads to $near/plfs.* on h1, not to this host" "$work/check"
	done
	hosts_of_job=h2:4
	for file in ${2:+closed} killed; do
		rm -f "$work"/done.*
		launch "$1" 4 "$prg" rows "$mnt/$dir/$file.h5" "$work/done" 0
		under sh -c "cd $mnt/$dir && h5dump $file.h5" | sed "s/$file.h5/field.h5/" >"$work/got"
		cmp "$work/want" "$work/got"
	done
	under sh -c "rm -f $mnt/$dir/*.lock" # OMPIO's own, of killed ranks
	near_drained h2
	plfs_on h2 check -q -r "$store/backend"
}

# ---- without MPI, and jobs that are there already ----

near_dialogue() {
	near_hosts ""
	under mkdir "$mnt/dialogue"
	under_env=()
	timeout -k 5 "${LIMIT_S:-180}" /usr/bin/python3 near_dialogue.py "$mnt/dialogue" "$store/backend" "$near" "$BUILD/plfs" "$preload" \
		"$(enter_host h1)" "$(enter_host h2)"
}

# The file system of h1 stands still for some seconds while the helper copies to it: a process that has its file open writes on. Its close
# waits. (So do reads, also of what it wrote, and stat(): they look into the backend. After some 30 seconds the writes wait too, with
# FUSE: the kernel writes the page of the notice to the backend then, and a store to it waits for that.)
near_hangs() { # [SECONDS]
	local writer pid seconds=${1:-15}
	near_hosts rate=1M
	rm -f "$work/go" "$work/written"
	under python3 -c '
import os, sys, time
work, mnt, seconds = sys.argv[1:]
f = os.open(mnt + "/hangs", os.O_RDWR | os.O_CREAT)
os.write(f, b"f" * 100000)
with open(mnt + "/moved", "wb") as g:
    g.write(b"g" * 4000000)
open(work + "/open", "w").close()
while not os.path.exists(work + "/go"):
    time.sleep(0.05)
end, longest = time.time() + int(seconds), 0
for i in range(1, 300):
    while i == 299 and time.time() < end:
        time.sleep(0.1)
    began = time.time()
    os.write(f, b"f" * 100000)
    longest = max(longest, time.time() - began)
    time.sleep(int(seconds) / 300)
print(f"a write took {longest:.3f} s at most")
open(work + "/written", "w").close()
os.close(f)' "$work" "$mnt" "$seconds" &
	writer=$!
	until_true [ -e "$work/open" ]
	until_true eval '[ -n "$(near_helpers_on h1)" ]'
	daemon=$(in_host h1 pgrep -x "$engine_daemon")
	in_host h1 kill -STOP $daemon
	trap 'in_host h1 kill -CONT $daemon' EXIT
	touch "$work/go"
	until_true [ -e "$work/written" ] || { for pid in $(pgrep python3); do cat "/proc/$pid/stack"; done; return 1; }
	sleep 1
	kill -0 $writer
	in_host h1 kill -CONT $daemon
	trap - EXIT
	wait $writer
	near_drained h1
	[ "$(on=h2 under cat "$mnt/hangs" | tr -d f | wc -c)" = 0 ]
	[ "$(on=h2 under stat -c %s "$mnt/hangs" "$mnt/moved" | xargs)" = "30000000 4000000" ]
	plfs_on h2 check -q -r "$store/backend"
}

# near_released COMMAND...: a job whose ranks, and whose readers on h1, read what the other host wrote (release=home).
near_released() {
	need_hosts() { :; } # they are there
	near_hosts "release=home"
	SCENES="closed_then_opened synced locked counted_at_once appended strided" "$@"
	[ -z "$(near_logs_on h1)$(near_logs_on h2)" ]
}
