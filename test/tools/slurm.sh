# SPDX-License-Identifier: BSD-3-Clause
# packaging/slurm: the batch script, the prolog and the epilog, with the variables that Slurm sets, sourced by run.

slurm=$TEST/../packaging/slurm

# A srun that runs the command once, on this node, and notes its options.
slurm_setup() {
	near_setup
	mkdir -p "$work/slurm"
	cat >"$work/slurm/srun" <<-'END'
		#!/bin/bash
		options=()
		while [[ $1 == -* ]]; do options+=("$1"); shift; done
		echo "${options[*]} : $*" >>"$SRUN_LOG"
		exec "$@"
	END
	chmod +x "$work/slurm/srun"
	printf 'PLFS=%s\nPLFS_NEAR="%s %s"\n' "$plfs" "$near" "$near/%j" >"$work/slurm/conf"
	export SRUN_LOG=$work/slurm/log SLURM_JOB_ID=4711.$$ SLURM_JOB_UID=$(id -u) SLURM_JOB_USER=$(id -un) SLURM_JOB_NUM_NODES=1
	export PATH=$work/slurm:$(dirname "$plfs"):$PATH PLFS_SLURM_CONF=$work/slurm/conf
	export BACKEND=$back PLFS_MAP="/plfs=$back{small=0,near=$near,drain=none}"
	auto="/plfs=$back{small=0,near=auto,drain=none}" # drains of others' places would wait for their jobs
	rm -f "$SRUN_LOG" "$work/slurm/ready"
}

slurm_logger() { # what the scripts say goes to a file
	printf '#!/bin/bash\necho "$*" >>"%s"\n' "$work/slurm/said" >"$work/slurm/logger"
	chmod +x "$work/slurm/logger"
	rm -f "$work/slurm/said"
}

slurm_batch() { # the program runs under the library, and its last step drains
	local map auto rc=0
	slurm_setup
	head -c 2000000 /dev/urandom >"$work/plain/b"
	trap auto_clean EXIT
	# near=auto finds it by the variable of the batch system, or takes what the node has
	PLFS_MAP=$auto SLURM_TMPDIR=$near bash "$slurm/checkpoint.sbatch" cp "$work/plain/b" /plfs/b
	grep '^ : cp ' "$SRUN_LOG"
	grep -e '^--nodes=1 --ntasks=1 --ntasks-per-node=1 : plfs drain --auto --wait' "$SRUN_LOG"
	[ -n "$(find "$back/.plfs" -name 'data.*')" ]
	[ -z "$("$plfs" places "$back/b")" ]
	PLFS_MAP=/plfs=$back "$plfs" run cmp "$work/plain/b" /plfs/b
	# the exit code is that of the program; the drain comes all the same
	PLFS_MAP=$auto bash "$slurm/checkpoint.sbatch" sh -c 'cat "$0" >/plfs/c; exit 3' "$work/plain/b" || rc=$?
	[ $rc = 3 ]
	[ -z "$("$plfs" places "$back/c")" ]
	# a restart stages first, if there is a place, and leaves no copies there
	PLFS_MAP=$auto "$plfs" places --auto --json | grep '"taken": true' || return 0
	PLFS_MAP=$auto RESTART=/plfs/b bash "$slurm/checkpoint.sbatch" cmp "$work/plain/b" /plfs/b
	grep -e '^--nodes=1 --ntasks=1 --ntasks-per-node=1 : plfs stage /plfs/b' "$SRUN_LOG"
	PLFS_MAP=$auto RESTART=/plfs/b bash "$slurm/checkpoint.sbatch" sh -c '"$0" places "$1"' "$plfs" "$back/b" | grep '1 logs staged on this node'
	grep -e ' : plfs stage --drop /plfs/b' "$SRUN_LOG"
	[ -z "$(PLFS_MAP=$auto "$plfs" places "$back/b")" ]
	PLFS_MAP=$auto "$plfs" run rm /plfs/b
}

slurm_batch_signal() { # before the time is over: the step gets the signal, ends, and the drain comes
	local map auto pid rc=0
	slurm_setup
	trap auto_clean EXIT
	PLFS_MAP=$auto bash "$slurm/checkpoint.sbatch" bash -c 'trap "echo late >/plfs/t; exit 5" TERM; touch "$0"; while :; do sleep 0.1; done' "$work/slurm/ready" &
	pid=$!
	while [ ! -e "$work/slurm/ready" ]; do kill -0 $pid || return 1; sleep 0.05; done
	kill -TERM $pid
	wait $pid || rc=$?
	[ $rc = 5 ]
	grep 'plfs drain --auto' "$SRUN_LOG"
	[ -z "$("$plfs" places "$back/t")" ]
	[ "$(PLFS_MAP=/plfs=$back "$plfs" run cat /plfs/t)" = late ]
}

slurm_epilog() { # what a killed job has left
	local map
	slurm_setup
	slurm_logger
	map=$PLFS_MAP
	strided e kill
	[ "$(find "$near" -name 'live.*' | wc -l)" = 4 ]
	env -u PLFS_MAP "$slurm/epilog.sh"
	[ "$(near_logs)" = 0 ]
	[ ! -e "$work/slurm/said" ]
	PLFS_MAP=/plfs=$back "$plfs" run cmp "$work/plain/e" /plfs/e
	"$plfs" check "$back/e"
	# it never fails, and says in a line what is left
	"$plfs" run cp "$work/plain/e" /plfs/e2
	mv "$back" "$back.aside"
	env -u PLFS_MAP "$slurm/epilog.sh" 2>"$work/err"
	[ ! -s "$work/err" ]
	grep "job $SLURM_JOB_ID on .*could not be moved yet.*its backend is not there" "$work/slurm/said"
	mv "$back.aside" "$back"
	printf '#!/bin/sh\nsleep 60\n' >"$work/slurm/slow" && chmod +x "$work/slurm/slow"
	printf 'PLFS=%s\nPLFS_NEAR=%s\nPLFS_LIMIT=1\n' "$work/slurm/slow" "$near" >"$work/slurm/conf"
	env -u PLFS_MAP "$slurm/epilog.sh"
	grep '1 seconds were not enough' "$work/slurm/said"
	env -u PLFS_MAP "$slurm/prolog.sh"
	printf 'PLFS=/nowhere\nPLFS_NEAR=%s\n' "$near" >"$work/slurm/conf"
	env -u PLFS_MAP "$slurm/epilog.sh"
	env -u PLFS_MAP "$slurm/prolog.sh"
	grep 'plfs drain before the job failed' "$work/slurm/said"
	env -u SLURM_JOB_UID "$slurm/epilog.sh"
	printf 'PLFS=%s\nPLFS_NEAR=%s\n' "$plfs" "$near" >"$work/slurm/conf"
	env -u PLFS_MAP "$slurm/prolog.sh" # what an earlier job has left
	[ "$(near_logs)" = 0 ]
	PLFS_MAP=/plfs=$back "$plfs" run cmp "$work/plain/e" /plfs/e2
}

slurm_epilog_of_a_user() { # root drains with the rights of the job's user
	local map as
	[ "$(id -u)" = 0 ] || { echo "needs root, to act for a user"; exit 77; }
	slurm_setup
	as="setpriv --reuid=12345 --regid=12345 --clear-groups --"
	$as true 2>/dev/null || { echo "no setpriv here"; exit 77; }
	chmod 755 "$work" "$work/slurm"
	$as test -x "$plfs" || { echo "a user cannot reach $plfs"; exit 77; }
	mkdir "$work/slurm/backend" "$work/slurm/near"
	chmod 700 "$work/slurm/backend" "$work/slurm/near"
	chown 12345:12345 "$work/slurm/backend" "$work/slurm/near"
	printf 'PLFS=%s\nPLFS_NEAR=%s\n' "$plfs" "$work/slurm/near" >"$work/slurm/conf"
	PLFS_MAP="/plfs=$work/slurm/backend{small=0,near=$work/slurm/near,drain=none}" $as "$plfs" run sh -c 'echo of a user >/plfs/u'
	[ "$(find "$work/slurm/near" -name 'data.*' | wc -l)" = 1 ]
	env -u PLFS_MAP SLURM_JOB_UID=12345 SLURM_JOB_USER=none12345 SLURM_JOB_GID=12345 "$slurm/epilog.sh"
	[ "$(find "$work/slurm/near" -name 'data.*' | wc -l)" = 0 ]
	[ -z "$(find "$work/slurm/backend" ! -uid 12345)" ]
	[ "$(PLFS_MAP="/plfs=$work/slurm/backend" $as "$plfs" run cat /plfs/u)" = "of a user" ]
}
