# SPDX-License-Identifier: BSD-3-Clause
# What all verbs have in common, sourced by run: help, options, misspellings, output for scripts, completion.

help() {
	local verb
	"$plfs" --version | grep -x 'plfs [0-9.]*'
	"$plfs" --help | grep flatten
	for verb in $verbs; do
		"$plfs" $verb --help >"$work/got"
		grep "^usage: plfs $verb" "$work/got"
		! grep -E '.{111}' "$work/got" || return 1
		"$plfs" $verb -h >/dev/null
		"$plfs" $verb --version | grep -x 'plfs [0-9.]*'
		"$plfs" $verb -V | grep -x 'plfs [0-9.]*'
		wrong 1 "standard output" sh -c "'$plfs' $verb -h >/dev/full"
		wrong 2 "bad option: --frobnicate" "$plfs" $verb --frobnicate "$back"
		wrong 2 "bad option: -Z" "$plfs" $verb -Z "$back"
	done
	wrong 2 "no verb" "$plfs"
	wrong 2 "frobnicate" "$plfs" frobnicate
}

did_you_mean() {
	wrong 2 'did you mean "plfs stat"?' "$plfs" stta "$back"
	wrong 2 'did you mean "plfs flatten"?' "$plfs" flaten "$back"
	wrong 2 'did you mean "plfs check"?' "$plfs" fsck "$back"
	wrong 2 'did you mean --recursive?' "$plfs" check --recursiv3 "$back"
	wrong 2 'did you mean --json?' "$plfs" stat --jsno "$back"
	wrong 2 'missing value: -m' "$plfs" stat -m
	wrong 2 '--json: options stand behind a verb' "$plfs" --json stat "$back"
	wrong 1 'a directory: use -r to flatten everything below it' "$plfs" flatten "$back"
	! "$plfs" xyzzy 2>&1 | grep 'did you mean' || return 1
	! "$plfs" stat --xyzzy 2>&1 | grep 'did you mean' || return 1
}

# Every line of --json is a JSON object; --quiet leaves results and errors.
json_and_quiet() {
	local verb
	mkdir "$back/shared"
	strided j
	strided g
	echo plain >"$back/p"
	for verb in "init --json $back/shared" "stat --json $back/j $back/p" "map --json $back/j" "report --json $back/j" "du -r --json $back" \
		"df --json $back" "compact -n --json $back/j $back/p" "check -r --json $back" "repair -n -r --json $back" \
		"gc -n --json $back" "doctor --json $back" "flatten --json $back/g $back/p" \
		"flatten --json -o $work/plain/out $back/j"; do
		"$plfs" $verb >"$work/got"
		python3 -c 'import json, sys; lines = [json.loads(line) for line in open(sys.argv[1])]; assert lines' "$work/got"
	done
	for verb in "init -q $back/shared" "compact -q $back/j" "check -q -r $back" "repair -q -r $back" "gc -q $back" \
		"flatten -q $back/p" "flatten -q -o $work/plain/out $back/j" "flatten -q $back/j $back/p"; do
		"$plfs" $verb >"$work/got" 2>&1
		[ ! -s "$work/got" ] || { echo "$verb: $(cat "$work/got")"; return 1; }
	done
	"$plfs" doctor -q "$back" >"$work/got"
	! grep '^ok' "$work/got" || return 1
	[ "$("$plfs" du -q "$back/p" | wc -l)" = 1 ]
	wrong 2 "bad option" "$plfs" run --json true
}

# A name below a prefix, and nothing that says where that is.
without_a_mapping() {
	wrong 1 "there is no mapping: give one with -m" "$plfs" stat /plfs/x
	wrong 1 "there is no mapping: give one with -m" "$plfs" flatten /plfs/x
	wrong 1 "there is no mapping: give one with -m" "$plfs" df /plfs/x
	wrong 2 "there is no mapping: give one with -m" "$plfs" gc /plfs/x
	wrong 2 "there is no mapping: give one with -m" "$plfs" check -q /plfs/x
	wrong 1 "No such file" "$plfs" stat -m "$map" /plfs/x
	! grep "no mapping" "$work/err" || return 1
}

# For people, unless -b; each verb that prints any.
sizes() {
	local verb
	strided s
	strided s # overwritten
	for verb in "stat $back/s" "du $back/s" "df $back" "compact -n $back/s" "check $back/s" "repair -n $back/s" "gc -n -a 0 $back" \
		"doctor $back" "flatten -v -o $work/plain/out $back/s"; do
		rm -f "$work/plain/out"
		"$plfs" run -m "$map" sh -c 'i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i + 1)); done >/plfs/gone'
		rm "$back/gone" # for gc
		"$plfs" $verb >"$work/got" || [ "${verb%% *}" = gc ]
		grep -E '[0-9] [KMGT]iB' "$work/got" || { echo "$verb: $(cat "$work/got")"; return 1; }
		"$plfs" $verb -b >"$work/got" || [ "${verb%% *}" = gc ]
		! grep -E '[0-9] [KMGT]iB' "$work/got" || { echo "$verb -b"; return 1; }
		[ -s "$work/got" ]
	done
	wrong 2 'bad option' "$plfs" run -b true
}

# On a terminal, where files take their time: the share of all, the rate, the time left; then a line with the sums.
check_progress() {
	local name
	for name in a b c; do block=70000 strided $name; done
	script -qec "strace -f -o /dev/null -e trace=pread64 -e inject=pread64:delay_exit=20000 '$plfs' check -j 1 -r '$back'" /dev/null |
		tr '\r' '\n' >"$work/got"
	grep -E '[0-9]%  [0-2] files, [0-9.]+ [KM]iB, [0-9.]+ [KM]?i?B?(bytes)?/s, 0 damaged +0:0[0-9] left' "$work/got" || { cat -v "$work/got"; return 1; }
	grep -E '3 logical files, 4[0-9.]+ MiB read in [0-9.]+ s \([0-9.]+ [KM]iB/s\): 0 damaged, 0 repaired, 0 failed$' "$work/got"
	"$plfs" check -r "$back" 2>&1 | grep -c . | grep -x 1
}

verbose() {
	strided v
	"$plfs" stat -v "$back/v" | grep -E '^Id +[0-9a-f]{32}$'
	"$plfs" check -v "$back/v" | grep -x "$back/v: 1 logical files, 0 damaged"
	"$plfs" flatten -v "$back/v" | grep -x "$back/v: 195.3 KiB"
	"$plfs" run -v -m "$map" true >"$work/got" 2>&1
	grep -E "^plfs: version [0-9.]+, $work/libplfs.so$" "$work/got"
	grep -x "plfs: PLFS_MAP=$map" "$work/got"
}

# What a shell offers: bash by the function that the script defines.
completes() { # WANTED WORD...
	local wanted=$1
	shift
	bash -c "source '$work/plfs.bash'"'; COMP_WORDS=(plfs "$@") COMP_CWORD=$#; _plfs 2>/dev/null; echo "${COMPREPLY[*]}"' - "$@" >"$work/got"
	grep -qxF -- "$wanted" "$work/got" || { echo "$*: $(cat "$work/got"), not $wanted"; return 1; }
}

completion() {
	local shell
	for shell in bash zsh fish; do
		"$plfs" --completion=$shell >"$work/plfs.$shell"
		if command -v $shell >/dev/null; then $shell -n "$work/plfs.$shell"; else echo "no $shell here"; fi
	done
	mkdir "$work/bin" && touch "$work/bin/plfs-is-completed" && chmod +x "$work/bin/plfs-is-completed"
	local PATH=$work/bin:$PATH
	wrong 2 "no such shell" "$plfs" --completion=tcsh
	completes "doctor" "do"
	completes "compact check" c
	completes "--recursive" check --r
	completes "--output=" flatten --o
	completes "" gc -a ""
	completes "plfs-is-completed" run -m /tmp plfs-is-c
	completes "" run -m /tmp cat --n
	if command -v fish >/dev/null; then
		fish -c "source $work/plfs.fish; complete -C 'plfs check --rec'" | grep '^--recursive'
	fi
}

# A place, too, is counted first.
drain_progress() {
	mkdir "$work/place"
	"$plfs" run -m "/plfs=$back{small=0,near=$work/place,drain=none}" \
		sh -c 'for i in 1 2 3 4; do head -c 2M /dev/urandom >/plfs/p$i; done'
	script -qec "'$plfs' drain --rate=3M '$work/place'" /dev/null | tr '\r' '\n' >"$work/got"
	grep -E '[0-9]%  [0-4] files, [0-9.]+ MiB, .*/s +[0-9]+:[0-9]+ left' "$work/got" || { cat -v "$work/got"; return 1; }
	grep -E '4 logs moved home, 8.0 MiB' "$work/got"
	rm -r "$work/place"
}

# How much there is nobody has counted.
stage_progress() {
	local map
	mkdir "$work/place"
	map="/plfs=$back{small=0,near=$work/place,drain=none}"
	"$plfs" run -m "/plfs=$back{small=0}" sh -c 'for i in 1 2 3 4; do head -c 2M /dev/urandom >/plfs/q$i; done'
	script -qec "'$plfs' stage -m '$map' --rate=3M '$back'/q*" /dev/null | tr '\r' '\n' >"$work/got"
	grep -E '[1-4] files, [0-9.]+ MiB, .*/s' "$work/got" || { cat -v "$work/got"; return 1; }
	grep -E '4 logs staged, 8.0 MiB' "$work/got"
	rm -r "$work/place"
}
