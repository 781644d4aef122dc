# SPDX-License-Identifier: BSD-3-Clause
# Jobs whose logs are near, beside the helper that moves them (drain=helper). Sourced after jobs.sh.

# helper_job STACK HOW: the launcher ends while the helper stands still, also where the job is aborted; then the helper goes on, and all is
# at home.
helper_job() {
	local stack=$1 how=$2 prg=$bin/$(stack_dir "$1")/helper near=$work/near file=$mnt/helper.$2 rc=0 i pid
	local under_env=("LD_PRELOAD=$preload" "PLFS_MAP=/plfs=$work/backend{small=0,near=$near}")
	mkdir -p "$near"
	LIMIT_S=60 launch $stack 3 "$prg" "$how" "$file" "$near" </dev/null 2>&1 | tail -n 20 || rc=${PIPESTATUS[0]} # waits for all who have its output
	pid=$(pgrep -f "^plfs drain --background $near/")
	echo "launcher: $rc, helper: $pid"
	[ "$rc" != 124 ]
	grep '^State:.*T' "/proc/$pid/status"
	[ -n "$(find "$near" -name 'data.*')" ]
	kill -CONT "$pid"
	for ((i = 0; i < 600; i++)); do
		[ -e "/proc/$pid" ] || break
		sleep 0.1
	done
	[ -z "$(find "$near" -name 'data.*')" ]
	! pgrep -f "^plfs drain --background $near/" || return 1
	env LD_PRELOAD="$preload" PLFS_MAP="/plfs=$work/backend" "$prg" read "$file" 3
	under rm "$file"
}

helper_jobs() { # STACK
	local how hows=(write)
	[ "$1" = mpich ] || hows+=(abort)
	[ "${SCALE:-1}" = 1 ] || hows=(write abort killed)
	for how in "${hows[@]}"; do helper_job "$1" "$how"; done
}
