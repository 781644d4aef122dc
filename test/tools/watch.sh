# SPDX-License-Identifier: BSD-3-Clause
# plfs watch, sourced by run: who writes, who has stopped, and when it will be over.

# A rank that writes a block every 20 ms until the file $work/stop_ranks is there.
slowly() { # RANK FILE
	PMI_RANK=$1 PMI_SIZE=3 exec "$plfs" run -m "$map" "$python" -c '
import os, sys, time
f = os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY)
r = int(sys.argv[1])
for i in range(1000000):
    os.pwrite(f, b"x" * 10000, (3 * i + r) * 10000)
    time.sleep(0.02)
    if os.path.exists(sys.argv[3]): break' "$1" "$2" "$work/stop_ranks"
}

start_ranks() { # FILE: three of them; $pids has their processes
	local i
	python=$(python3 -c 'import sys; print(sys.executable)') # no wrapper: the process is the rank
	rm -f "$work/stop_ranks"
	pids=
	for i in 0 1 2; do
		slowly $i "$1" &
		pids="$pids $!"
	done
	until [ "$("$plfs" watch -m "$map" --once --stalled=1 --json "$1" | tee "$work/got")" ] && [ "$(field writers)" = 3 ]; do :; done
}

stop_ranks() {
	: >"$work/stop_ranks"
	kill -CONT $pids
	wait
}

watch_ranks() {
	local rc=0 stopped
	"$plfs" run -m "$map" sh -c 'mkdir /plfs/w; head -c 50000000 /dev/zero >/plfs/w/ck.7'
	"$plfs" watch -m "$map" --once /plfs/w | grep -x 'nothing is being written'
	start_ranks /plfs/w/ck.8
	"$plfs" watch -m "$map" --once --json /plfs/w >"$work/got"
	[ "$(field file) $(field writers) $(field hosts) $(field stalled) $(field expected)" = "/plfs/w/ck.8 3 1 0 50000000" ]
	[ "$(field rate)" -gt 0 ] && [ "$(field mean_rate)" -gt 0 ]
	stopped=${pids##* }
	kill -STOP "$stopped"
	"$plfs" watch --once --json "$back" >"$work/got" || rc=$?
	[ "$rc $(field stopped) $(field stalled)" = "3 1 1" ]
	python3 - "$work/got" "$stopped" <<-'EOF'
		import json, sys
		ranks = json.loads(open(sys.argv[1]).readline())["ranks"]
		assert [(r["rank"], r["pid"]) for r in ranks if r["stalled"]] == [(2, int(sys.argv[2]))], ranks
		assert sorted(r["rank"] for r in ranks) == [0, 1, 2]
	EOF
	kill -CONT "$stopped"
	"$plfs" watch --once "$back/w/ck.8" | grep '3 writers on 1 hosts'
	kill -KILL "$stopped" # a killed one keeps nobody waiting for a name
	"$plfs" watch --once "$back/w/ck.8" | grep "rank 2\|a process on .*ended without closing the file"
	pids=${pids% *}
	stop_ranks
	"$plfs" watch --once "$back" | grep -x 'nothing is being written'
	if unshare -u true 2>/dev/null; then # a container with a name of its own
		unshare -u sh -c 'hostname far; echo | { sleep 4; } | "$@"' - "$plfs" run -m "$map" "$bin/writer" /plfs/far 0 1 50 1000 wait >"$work/out" &
		until grep -q written "$work/out"; do sleep 0.1; done
		"$plfs" watch --once --json "$back" >"$work/got"
		[ "$(field writers) $(field gone) $(field written | grep -c .)" = "1 0 1" ]
		wait
	fi
	wrong 1 "No such file" "$plfs" watch --once "$back/none"
	wrong 2 "is not a number of seconds" "$plfs" watch --stalled=x "$back"
}

# In a terminal: a rank that a signal has stopped is named while the others go on.
watch_terminal() {
	local tmux="tmux -L plfs-watch-$$" i
	start_ranks /plfs/terminal
	kill -STOP "${pids##* }"
	$tmux new-session -d -x 120 -y 30 "'$plfs' watch --stalled=3 '$back'; echo status \$?; sleep 60"
	for i in $(seq 60); do
		$tmux capture-pane -p >"$work/screen"
		grep -q 'iB/s now' "$work/screen" && grep -q '! rank 2.*for [3-9] s' "$work/screen" && break
		sleep 0.5
	done
	cat "$work/screen"
	grep 'plfs watch, ..:..:..; Enter ends it' "$work/screen"
	grep '3 writers on 1 hosts;.*iB/s now,' "$work/screen"
	[ "$(grep -c '! rank' "$work/screen")" = 1 ]
	$tmux send-keys Enter
	for i in $(seq 60); do
		$tmux capture-pane -p | grep 'status 3' && break
		sleep 0.5
	done
	$tmux kill-server
	stop_ranks
	[ "$i" != 60 ]
}
