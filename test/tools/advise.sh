# SPDX-License-Identifier: BSD-3-Clause
# plfs advise and PLFS_HINTS, sourced by run: what a measured job suggests, and the next job without a word.

advice() { # FILE: "about: advice" lines
	"$plfs" advise --json "$1" | python3 -c '
import json, sys
for line in sys.stdin:
    a = json.loads(line)
    assert a["reason"]
    print(a["about"] + ": " + a["advice"])'
}

# Each process its own file: the next job makes plain ones.
advise_file_per_process() {
	local i
	rm -f "$work"/n.jsonl "$work/hints"
	export PLFS_HINTS=$work/hints # there is none yet
	for i in 0 1 2 3 4; do
		"$plfs" run -m "$map" --stats="$work/n.jsonl" "$bin/writer" /plfs/own.$i.dat 0 1 50 10000 close
		[ -k "$back/own.$i.dat" ]
	done
	advice "$work/n.jsonl" | grep -xF 'own.*.dat: exclude=own.*.dat'
	"$plfs" advise --keep="$work/hints" "$work/n.jsonl" | grep 'one process wrote each of the 5 files'
	grep -x 'exclude=own.\*.dat' "$work/hints"
	grep -x 'expect own.\*.dat 500000 .*' "$work/hints"
	"$plfs" run -m "$map" "$bin/writer" /plfs/own.77.dat 0 1 50 10000 close
	[ ! -k "$back/own.77.dat" ]
	"$plfs" run -m "$map" "$bin/writer" /plfs/other 0 1 50 10000 close
	[ -k "$back/other" ]
	# the mapping's own words come first
	"$plfs" run -m "/plfs=$back{match=own*}" "$bin/writer" /plfs/own.78.dat 0 1 50 10000 close
	[ -k "$back/own.78.dat" ]
	echo 'frobnicate=1' >>"$work/hints"
	"$plfs" run -q -m "$map" "$bin/writer" /plfs/own.79.dat 0 1 50 10000 close 2>"$work/err"
	grep 'PLFS_HINTS: .*"frobnicate=1" is no hint' "$work/err"
	[ ! -k "$back/own.79.dat" ]
	unset PLFS_HINTS
}

# Thousands of tiny writes; as many larger ones get no such advice.
advise_tiny_writes() {
	rm -f "$work/t.jsonl"
	"$plfs" run -q -m "$map" --stats="$work/t.jsonl" "$bin/writer" /plfs/tiny 0 1 2000 100 close
	"$plfs" run -q -m "$map" --stats="$work/t.jsonl" "$bin/writer" /plfs/large 0 1 2000 1000 close
	"$plfs" advise "$work/t.jsonl" >"$work/got"
	[ "$(grep -c 'larger writes' "$work/got")" = 1 ]
	grep -A1 '/plfs/tiny: larger writes' "$work/got" | grep -F '2000 writes had 100 bytes in the mean'
}

# A plain file of several: they would gain. And what is good as it is gets no advice.
advise_shared_files() {
	local i
	rm -f "$work"/s1.jsonl "$work"/s2.jsonl "$work/plain/shared"
	for i in 0 1 2; do
		"$plfs" run --stats="$work/s1.jsonl" "$bin/writer" "$work/plain/shared" $i 3 50 47001 close 2>/dev/null
		"$plfs" run -m "$map" --stats="$work/s2.jsonl" "$bin/writer" /plfs/shared $i 3 50 47001 close 2>/dev/null
	done
	advice "$work/s1.jsonl" | grep -F 'shared: plfs run -m DIRECTORY'
	"$plfs" advise "$work/s2.jsonl" | grep -x 'nothing to advise: it is stored as it should be'
	"$plfs" advise -m "$map" /plfs/shared | grep -x 'nothing to advise: it is stored as it should be'
	for i in 0 1 2; do
		"$plfs" run -m "$map" --stats="$work/s2.jsonl" "$bin/writer" /plfs/shared $i 3 50 47001 close 2>/dev/null
		"$plfs" run -m "$map" --stats="$work/s2.jsonl" "$bin/writer" /plfs/shared $i 3 50 47001 kill 2>/dev/null || :
	done
	advice "$work/s2.jsonl" >"$work/got"
	grep -xF '/plfs/shared: plfs compact /plfs/shared' "$work/got"
	grep -xF '/plfs/shared: plfs check, before it is relied on' "$work/got"
	"$plfs" run -m "$map" sh -c 'head -c 3000000 /dev/zero >/plfs/alone'
	advice "$back/alone" | grep -F 'mode=flat or exclude='
	wrong 1 "neither a logical file nor a stats file" "$plfs" advise "$work/plain/shared"
}
