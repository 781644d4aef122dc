# SPDX-License-Identifier: BSD-3-Clause
# What near= costs and gives, sourced by bench. 8 ranks, 4 on each of two hosts, write a checkpoint of 0.5 and of 4 GiB and close it: into
# near, which is memory of each host, while the helper moves it; directly into CephFS through the library; and a file for each rank in near,
# without the library.
# After the drain all bytes are read on the other host and compared. The drain is timed beside cp of the same bytes, both until
# they are on stable storage. Ranks compute on all processors, with and without a drain to a local disk at 200 MB/s: CephFS itself
# runs on these processors. Lines of JSON go to $work/near.runs.

near=$work/near

# near_say NAME ROUND KEY VALUE...
near_say() {
	printf '{"engine": "%s", "name": "%s", "round": %d' "$engine" "$1" "$2" >>"$work/near.runs"
	shift 2
	while [ $# -gt 0 ]; do
		printf ', "%s": %s' "$1" "$2" >>"$work/near.runs"
		shift 2
	done
	echo '}' >>"$work/near.runs"
}

seconds_of() { # COMMAND...: wall, and processor of it and of what it starts
	local TIMEFORMAT='%R %U %S'
	{ time "$@" >"$work/log/timed" 2>&1 </dev/null; } 2>"$work/time" || { cat "$work/log/timed"; return 1; }
	awk '{ print $1, $2 + $3 }' "$work/time"
}

# Everything is at home, and no helper is there any more.
near_rest() {
	local host
	for host in h1 h2; do
		in_host $host "$BUILD/plfs" drain -q --wait --timeout=120 "$near" || return 1
		while in_host $host pgrep -f "^plfs drain --background $near/" >/dev/null; do sleep 0.1; done
	done
	in_host h1 sync -f "$fs"
}

# near_wait_run VARIANT BLOCK BLOCKS_PER_RANK ROUND: the seconds.
near_wait_run() {
	local env=("LD_PRELOAD=$preload" "PLFS_MAP=/plfs=$fs/backend{near=$near}") dir=/plfs mode=n1 options host
	case $1 in
	home) env[1]="PLFS_MAP=/plfs=$fs/backend" ;;
	nn) env=() dir=$near/plain mode=nn ;;
	esac
	options=(-b "$2" -n "$3" -m $mode -r "$4")
	run_ranks 8 "$dir" write "${options[@]}" || return 1
	sed -n 's/.*"write": \([0-9.]*\).*/\1/p' "$work/out.0"
	near_rest || return 1
	if [ "$1" = nn ]; then
		for host in h1 h2; do in_host $host sh -c "rm -f '$near'/plain/*"; done
	else
		env[1]="PLFS_MAP=/plfs=$fs/backend"
		run_ranks 8 "$dir" read_shifted "${options[@]}"
	fi
}

measure_near_wait() { # BLOCK BLOCKS_PER_RANK
	local round variant order said
	for ((round = 0; round < ${ROUNDS:-5}; round++)); do
		order=(near home nn) said=()
		for variant in "${order[@]:round % 3}" "${order[@]:0:round % 3}"; do
			said+=("$variant" "$(near_wait_run $variant "$1" "$2" $round)") || return 1
		done
		near_say "wait/$1/$2" $round "${said[@]}"
	done
}

# Four logs of 256 MiB.
measure_near_drain() {
	local round what order said
	in_host h1 mkdir -p "$near/source" "$fs/plain/copy"
	in_host h1 sh -c "for i in 1 2 3 4; do head -c 268435456 /dev/urandom >'$near/source/'\$i; done"
	for ((round = 0; round < ${ROUNDS:-5}; round++)); do
		order=(drain cp) said=()
		for what in "${order[@]:round % 2}" "${order[@]:0:round % 2}"; do
			if [ $what = drain ]; then
				in_host h1 env "LD_PRELOAD=$preload" "PLFS_MAP=/plfs=$fs/backend{near=$near,drain=none}" sh -c "cp '$near'/source/* /plfs/" || return 1
				said+=(drain "$(seconds_of in_host h1 "$BUILD/plfs" drain "$near")") || return 1
				in_host h2 env "LD_PRELOAD=$preload" "PLFS_MAP=/plfs=$fs/backend" sh -c 'cat /plfs/[1-4] | md5sum' >"$work/sum.drain"
				in_host h1 env "LD_PRELOAD=$preload" "PLFS_MAP=/plfs=$fs/backend" sh -c 'rm /plfs/[1-4]'
			else
				said+=(cp "$(seconds_of in_host h1 sh -c "cp '$near'/source/* '$fs/plain/copy/' && sync '$fs'/plain/copy/*")") || return 1
				in_host h1 sh -c "cat '$fs'/plain/copy/* | md5sum && rm '$fs'/plain/copy/*" >"$work/sum.cp"
			fi
			in_host h1 sync -f "$fs"
			sleep 1
		done
		cmp "$work/sum.drain" "$work/sum.cp" || return 1
		near_say drain $round "${said[0]}" "${said[1]% *}" "${said[2]}" "${said[3]% *}"
	done
	in_host h1 rm -rf "$near/source"
}

# copy_at_rate SOURCE TARGET: 1.2 GB at 200 MB/s with dd, past the page cache: the least that a program can take from others for that.
copy_at_rate() {
	local i due=${EPOCHREALTIME/./}
	for ((i = 0; i < 28; i++, due += 209715)); do
		while ((${EPOCHREALTIME/./} < due)); do sleep 0.01; done
		dd if="$1" of="$2" bs=4M count=10 skip=$((10 * i)) seek=$((10 * i)) conv=notrunc oflag=direct status=none || return 1
	done
}

# While they compute all that is drained lies in near; how much processor the helper takes for each MB is what it takes from them.
measure_near_compute() {
	local round what order said took pid rest="$work/backend"
	head -c 1200000000 /dev/urandom >"$near/source"
	for ((round = 0; round < ${ROUNDS:-5}; round++)); do
		order=(with without dd) said=()
		for what in "${order[@]:round % 3}" "${order[@]:0:round % 3}"; do
			case $what in
			with)
				LD_PRELOAD=$preload PLFS_MAP="/plfs=$rest{near=$near,drain=none}" cp "$near/source" /plfs/big || return 1
				seconds_of nice -n 10 "$BUILD/plfs" drain --rate=200M "$near" >"$work/took" &
				;;
			dd)
				(renice -n 10 $BASHPID >/dev/null; copy_at_rate "$near/source" "$rest/copy") &
				;;
			*) true & ;;
			esac
			pid=$!
			took=$("$BUILD/test/cluster/bench_compute" 1)
			said+=("$what" "$took")
			wait $pid || return 1
			rm -rf "$rest/big" "$rest/copy"
			[ $what != with ] || "$BUILD/plfs" gc --age 0 "$rest" >"$work/log/gc"
		done
		near_say compute $round "${said[@]}" helper_cpu "$(awk '{ print $2 }' "$work/took")" helper_wall "$(awk '{ print $1 }' "$work/took")"
	done
	rm "$near/source"
}

measure_near() {
	local host block
	mkdir -p "$near"
	for host in h1 h2; do
		in_host $host mount -t tmpfs -o size=3g none "$near" && in_host $host mkdir "$near/plain" || return 1
	done
	for block in 47001:1400 1048576:64 1048576:512; do
		measure_near_wait "${block%:*}" "${block#*:}" || { echo "bench-cluster: a checkpoint near failed" >&2; return 1; }
	done
	measure_near_drain || { echo "bench-cluster: the drain failed" >&2; return 1; }
	[ $engine = "${near_computed:-$engine}" ] || return 0 # once
	near_computed=$engine
	mount -t tmpfs -o size=3g none "$near" || return 1
	measure_near_compute || { umount -l "$near"; return 1; }
	umount -l "$near"
}
