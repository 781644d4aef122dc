# SPDX-License-Identifier: BSD-3-Clause
# LAMMPS as a job that checkpoints, dies and goes on: a Lennard-Jones melt whose ranks write restart files and
# a trajectory N-1 through MPI-IO. Sourced after jobs.sh. The job's log is kept outside the mount, in $work.
#
# LAMMPS writes the dump, then the restart file, then the line of the same step, for which all ranks have to
# meet: when the line is in the log, every rank has closed that checkpoint. That, and not the existence of a
# file, is what makes a checkpoint complete here.

lmp_steps=400 lmp_every=50

# A LAMMPS of 2024 and later has no MPI-IO: its rank 0 writes for all. Its files then end in "restart".
lmp_io=mpiio
if command -v lmp >/dev/null && ! lmp -h 2>/dev/null | grep -qw MPIIO; then lmp_io=restart; fi

lammps_input() { # DIR [RESTART_FILE]
	local dir=$1
	if [ -n "$2" ]; then
		echo "read_restart $2"
	else
		cat <<-END
			units lj
			atom_style atomic
			lattice fcc 0.8442
			region box block 0 ${LMP_CELLS:-16} 0 ${LMP_CELLS:-16} 0 ${LMP_CELLS:-16}
			create_box 1 box
			create_atoms 1 box
			mass 1 1.0
			velocity all create 3.0 87287 loop geom
		END
	fi
	cat <<-END
		pair_style lj/cut 2.5
		pair_coeff 1 1 1.0 1.0 2.5
		neighbor 0.3 bin
		neigh_modify every 20 delay 0 check no
		fix 1 all nve
		dump 1 all atom$([ $lmp_io = restart ] || echo /mpiio) $lmp_every $dir/traj.$lmp_io
		restart $lmp_every $dir/ck.*.$lmp_io
		thermo $lmp_every
		thermo_modify flush yes
		run $lmp_steps upto
	END
}

# The thermodynamic lines of a log: step, temperature, energies, pressure.
lammps_lines() {
	awk '/^ *Step /{ on = 1; next } /^Loop time/{ on = 0 } on && $1 ~ /^[0-9]+$/ && NF == 6' "$@"
}

# The last step whose line is in the log.
lammps_last() {
	lammps_lines "$1" | awk '$1 > 0 { n = $1 } END { print n + 0 }'
}

# The last step whose checkpoint is complete. A LAMMPS without MPI-IO prints the line before it writes that.
lammps_complete() {
	local last
	last=$(lammps_last "$1")
	[ $lmp_io = mpiio ] || [ "$last" = 0 ] || last=$((last - lmp_every))
	echo "$last"
}

# An uninterrupted run in a plain directory that it makes, without the library.
lammps_whole() { # STACK RANKS DIR
	mkdir "$3"
	lammps_input "$3" >"$work/in.whole"
	(under_env=(PLFS_TEST_PLAIN=1); launch "$1" "$2" lmp -in "$work/in.whole" -log "$work/log.whole" -screen none)
	lammps_lines "$work/log.whole" >"$work/thermo.whole"
	[ "$(wc -l <"$work/thermo.whole")" = $((lmp_steps / lmp_every + 1)) ]
}

# The same under the library, all ranks ended by SIGKILL while they write the first checkpoint after step AFTER.
lammps_killed() { # STACK RANKS DIR AFTER
	local dir=$3 after=$4 backend=$work/backend/${3#"$mnt"/} next launcher ranks from
	next=$((after + lmp_every))
	lammps_input "$dir" >"$work/in.killed"
	: >"$work/log.killed"
	(LAUNCH_EXEC=1 launch "$1" "$2" lmp -in "$work/in.killed" -log "$work/log.killed" -screen none) \
		>"$work/log/killed" 2>&1 &
	launcher=$!
	while [ "$(lammps_complete "$work/log.killed")" -lt "$after" ]; do
		kill -0 $launcher || { echo "the job ended by itself"; cat "$work/log/killed"; return 1; }
		sleep 0.05
	done
	ranks=$(cat /proc/[0-9]*/stat 2>/dev/null | awk -v parent=$launcher '$2 == "(lmp)" && $4 == parent { print $1 }')
	while [ ! -e "$backend/ck.$next.$lmp_io" ]; do
		kill -0 $launcher || { echo "the job ended by itself"; cat "$work/log/killed"; return 1; }
	done
	# Rank 0 makes the file and writes some 900 bytes; what comes then is everybody's. To get there and not
	# past it, the ranks run in slices from here on.
	kill -STOP $ranks
	while [ "$(stat -c %s "$backend/ck.$next.$lmp_io")" -lt 6000 ]; do
		kill -CONT $ranks
		kill -STOP $ranks
	done
	kill -CONT $ranks
	sleep 0.0005
	kill -KILL $ranks
	wait $launcher && return 1
	from=$(lammps_complete "$work/log.killed")
	echo "killed" $ranks "when checkpoint $next had begun; complete: $from"
	[ "$from" -ge "$after" ] && [ "$from" -lt $lmp_steps ]
}

# What the last checkpoint that was begun has of the whole run's: bytes that are missing are zeros, and no byte is
# anything else. Says how many are missing. (Rank 0 begins with some 900 bytes and a mark behind them, which
# the ranks' data then overwrite: there, both are right.)
lammps_torn() { # PLAIN_DIR DIR
	local step
	step=$(under ls "$2" | awk -F. '$1 == "ck" && $2 > n { n = $2 } END { print n }')
	{ under cmp -l "$1/ck.$step.$lmp_io" "$2/ck.$step.$lmp_io" || [ $? = 1 ]; } >"$work/missing" 2>/dev/null
	awk -v step="$step" '$3 != 0 && $1 > 1024 { wrong++ } END { print "checkpoint " step ": " NR + 0 " bytes missing, " wrong + 0 " wrong"
		exit wrong > 0 }' "$work/missing"
}

# Go on from the last complete checkpoint to the end.
lammps_restarted() { # STACK RANKS DIR
	lammps_input "$3" "$3/ck.$(lammps_complete "$work/log.killed").$lmp_io" >"$work/in.restarted"
	launch "$1" "$2" lmp -in "$work/in.restarted" -log "$work/log.restarted" -screen none
}

# The killed and the restarted run together printed every line of the whole run; each complete checkpoint
# of the killed run is, byte for byte, that of the whole run; the others were written anew. The trajectory
# has the restarted run's frames, each with every atom once (their order is the ranks', and changes).
lammps_same() { # PLAIN_DIR DIR
	local step from
	from=$(lammps_complete "$work/log.killed")
	lammps_lines "$work/log.restarted" | diff <(awk "\$1 >= $from" "$work/thermo.whole") -
	lammps_lines "$work/log.killed" | diff <(awk "\$1 <= $(lammps_last "$work/log.killed")" "$work/thermo.whole") -
	for ((step = lmp_every; step <= from; step += lmp_every)); do
		under cmp "$1/ck.$step.$lmp_io" "$2/ck.$step.$lmp_io"
	done
	for ((; step <= lmp_steps; step += lmp_every)); do
		[ "$(under stat -c %s "$2/ck.$step.$lmp_io")" = "$(stat -c %s "$1/ck.$step.$lmp_io")" ]
	done
	under awk -v from="$from" -v to="$lmp_steps" -v every="$lmp_every" '
		function frame_end() { if (want != seen) { print "step " step ": " seen " atoms of " want; bad = 1 } }
		/^ITEM/ { if ($2 == "TIMESTEP") { frame_end(); frames++; seen = 0; split("", ids) } item = $2; next }
		item == "TIMESTEP" { step = $1 }
		item == "NUMBER" { want = $1 }
		item == "ATOMS" { if ($1 in ids || NF != 5) bad = 1; ids[$1]; seen++ }
		END { frame_end(); exit bad || frames != (to - from) / every + 1 }' "$2/traj.$lmp_io"
}
