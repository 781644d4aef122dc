# SPDX-License-Identifier: BSD-3-Clause
# PLFS_TRACE, sourced by run: each call of a program is in its trace once, whatever became of the program.

traced() { # DIR: the calls in it
	python3 ../lib/trace.py "$1"/trace.*
}

trace_of_calls() {
	local i
	rm -rf "$work/t"
	for i in 0 1 2 3; do
		PMI_RANK=$i PMI_SIZE=4 PLFS_TRACE=$work/t "$plfs" run -m "$map" "$bin/writer" /plfs/traced $i 4 3000 1000 close
	done
	traced "$work/t" >"$work/got"
	awk '$1 == "write" { print $3, $7 }' "$work/got" | sort -n | awk '
		$1 != 1000 * (NR - 1) || $2 != (NR - 1) % 4 { print "not the writes that were made: " $0; exit 1 }
		END { exit NR != 12000 }'
	awk '$1 != "write" { print $1, $2, $7 }' "$work/got" | sort >"$work/others"
	for i in 0 1 2 3; do echo "close /plfs/traced $i"; echo "open /plfs/traced $i"; done | sort | diff - "$work/others"
	awk '$6 < $5 { exit 1 }' "$work/got"
	# strided calls are folded
	[ "$(cat "$work"/t/trace.* | wc -c)" -lt $((4 * (4096 + 16 * 400))) ]
	# plain files, and reads, of a program that is not alone in its trace
	PLFS_TRACE=$work/t2 "$plfs" run -m "$map" --stats="$work/t2.jsonl" sh -c "cat /plfs/traced >'$work/plain/copy'"
	traced "$work/t2" | awk '$1 == "read" && $2 == "/plfs/traced" { n += $4 } END { exit n != 12000000 }'
}

# What a killed program did is in its trace, to the last call.
trace_of_the_killed() {
	local i
	rm -rf "$work/t"
	for i in 1 3 100 1017; do
		! PLFS_TRACE=$work/t "$plfs" run -m "$map" "$bin/writer" /plfs/killed$i 0 2 $i 100 kill || return 1
		[ "$(traced "$work/t" | awk -v f=/plfs/killed$i '$1 == "write" && $2 == f' | wc -l)" = $i ]
	done
}

trace_that_cannot_be() {
	rm -rf "$work/t"
	PLFS_TRACE=$work/t,max=9999 "$plfs" run -m "$map" python3 -c '
import os, random
f = os.open("/plfs/full", os.O_CREAT | os.O_WRONLY)
for i in range(5000): os.pwrite(f, b"x" * random.randrange(1, 99), random.randrange(1 << 30))' 2>"$work/err"
	[ ! -s "$work/err" ]
	[ "$(stat -c %s "$work"/t/trace.*)" -le 9999 ]
	[ "$(traced "$work/t" | wc -l)" -gt 200 ]
	for name in "$work/t,max=1x" /proc/t "$back/.plfs/t" "$work/out" "/$(printf '%05000d' 0)"; do
		: >"$work/out"
		PLFS_TRACE=$name "$plfs" run -m "$map" "$bin/writer" /plfs/wrong 0 1 50 100 close 2>"$work/err"
		[ "$(grep -c PLFS_TRACE: "$work/err")" = 1 ] || { echo "$name: $(cat "$work/err")"; return 1; }
	done
	mkdir "$work/gone"
	(cd "$work/gone" && rmdir "$work/gone" && PLFS_TRACE=t "$plfs" run -m "$map" head -c 1 /plfs/full) >/dev/null 2>"$work/err"
	[ "$(cat "$work/err")" = \
		'libplfs: PLFS_TRACE: "t": relative, and there is no working directory: nothing is recorded; name a file elsewhere' ]
	if mount -t tmpfs -o size=64k none /mnt 2>/dev/null; then
		PLFS_TRACE=/mnt/t PLFS_STATS=/mnt/s "$plfs" run -m "$map" "$bin/writer" /plfs/wrong 0 1 50 100 close 2>"$work/err" || :
		umount /mnt
		grep -c PLFS_TRACE: "$work/err" | grep -x 1
		grep -c PLFS_STATS: "$work/err" | grep -x 1
	fi
}

# A word that says no is no directory, for the processes of a job neither.
trace_that_is_not_wanted() {
	local word
	mkdir "$work/unwanted"
	for word in no off 0 ''; do
		(cd "$work/unwanted" && PLFS_TRACE=$word "$plfs" run -m "$map" sh -c 'echo >/plfs/unwanted')
	done
	rmdir "$work/unwanted"
}
