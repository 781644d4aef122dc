# SPDX-License-Identifier: BSD-3-Clause
# Parity of logs in several backends (parity=1), sourced by run: the helper that makes it, a backend that is lost, and the
# commands. test/unit/file/parity.c has the damage.

parity_setup() {
	spread_setup process
	map="/plfs=$back,$two,$three{small=0,spread=process,parity=1}"
}

parity_files() { find "$back" "$two" "$three" -name 'parity.*' | wc -l; }
parity_listed() { # those of them that the file "parity" names: one that is being made, or was left, has no block
	comm -12 <(find "$back" -name parity -exec grep -ahoE 'parity[.][^/]*[.][0-9a-f]{16}' {} + | sort -u) \
		<(find "$back" "$two" "$three" -name 'parity.*' -printf '%f\n' | sort)
}
parity_is_covered() { # each log is in a group
	[ "$(find "$back" -name parity -exec grep -aoE 'data[.][^/]*[.][0-9]+[.][0-9]+' {} + | sort -u | wc -l)" = "$(find "$back" "$two" "$three" -name 'data.*' | wc -l)" ]
}

parity_file() { # NAME: the helper is through
	local logs
	spread_file "$1"
	until_so "all is covered" parity_is_covered
	until_so "the helper has ended" no_copier
	logs=$(find "$back" "$two" "$three" -name 'data.*' | wc -l)
	[ "$(parity_files)" -ge 1 ]
	[ "$(parity_files)" -le "$logs" ]
}

# The second backend is not there: a repair makes logs anew, which need it no more, and it does no harm when it is back.
made_anew() { # NAME
	"$plfs" repair -m "$map" "$back/$1" | tee "$work/out"
	grep 'made anew from parity' "$work/out"
	"$plfs" check "$back/$1"
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/$1" /plfs/$1 2>"$work/err"
	[ ! -s "$work/err" ]
	mv "$two.lost" "$two"
	"$plfs" run -m "$map" cmp "$work/plain/$1" /plfs/$1
	"$plfs" check "$back/$1"
	"$plfs" run -m "$map" rm /plfs/$1
}

# A copy of the stub that has been emptied says nothing of the original's logs.
parity_of_a_copied_file() {
	local map log
	parity_setup
	parity_file p
	cp -p "$back/p" "$back/copy"
	"$plfs" run -m "$map" truncate -s 0 /plfs/copy
	log=$(find "$two" -name 'data.*' | head -n 1)
	mv "$log" "$work/log"
	"$plfs" drain -m "$map" "$back/copy" || true
	"$plfs" run -m "$map" cmp "$work/plain/p" /plfs/p
	"$plfs" repair -m "$map" "$back/p" | grep 'made anew from parity'
	"$plfs" run -m "$map" cmp "$work/plain/p" /plfs/p
}

parity_lost_backend() { # by the helper; each is lost in turn: read, checked, repaired; under a mapping without parity= too
	local map lost
	parity_setup
	parity_file p
	"$plfs" drain -m "$map" "$back/p" | tee "$work/out"
	! grep -q 'parity files made' "$work/out" || return 1
	"$plfs" check "$back/p"
	for lost in "$two" "$three"; do
		mv "$lost" "$lost.lost"
		"$plfs" run -m "$map" cmp "$work/plain/p" /plfs/p 2>"$work/err"
		"$plfs" run -m "/plfs=$back" cmp "$work/plain/p" /plfs/p
		cat "$work/err"
		[ "$(grep -c "its backend is not there: it is rebuilt from parity in .*; plfs repair makes it whole" "$work/err")" = 1 ]
		! "$plfs" check "$back/p" >"$work/out" || return 1
		cat "$work/out"
		grep 'has all of it: nothing of it is lost, and plfs repair makes it anew' "$work/out"
		! grep ': lost' "$work/out" || return 1
		mv "$lost.lost" "$lost"
		"$plfs" check "$back/p"
	done
	mv "$two" "$two.lost"
	made_anew p
	[ "$(there_logs)" = 0 ]
	[ "$(parity_files)" = 0 ]
}

parity_begins_later() { # with a file that was made without it, and is open
	local map later
	parity_setup
	later=$map
	map="/plfs=$back,$two,$three{small=0,spread=process}"
	spread_file l
	[ "$(parity_files)" = 0 ]
	"$plfs" run -m "$map" sh -c "exec 3<>/plfs/l; '$plfs' drain -m '$later' '$back/l' >'$work/out' 2>&1; echo \$? >>'$work/out'"
	cat "$work/out"
	grep '[1-9][0-9]* parity files made' "$work/out"
	[ "$(tail -1 "$work/out")" = 0 ]
	[ "$(parity_files)" -ge 2 ]
	"$plfs" drain -m "$later" "$back/l"
	rm -r "$two"
	"$plfs" run -m "$later" cmp "$work/plain/l" /plfs/l
}

parity_shown() { # by places and du: which backend has it, and what it takes
	local map name
	parity_setup
	until parity_file s && [ "$(find "$two" "$three" -name 'parity.*')" ]; do "$plfs" run -m "$map" rm /plfs/s; done
	"$plfs" places -m "$map" "$back/s" | tee "$work/out"
	parity_listed
	[ "$(sed -n 's/.*: parity in .*: \([0-9]*\) files, .*/\1/p' "$work/out" | awk '{ n += $1 } END { print n }')" = "$(parity_listed | wc -l)" ]
	! grep missing "$work/out" || return 1
	"$plfs" places --json -m "$map" "$back/s" | grep '"parity": [1-9][0-9]*, "missing": 0, "bytes": [1-9]'
	"$plfs" du -m "$map" "$back/s" | tee "$work/out"
	grep "$back/s: logs in $work/b[23]/plfs" "$work/out"
	grep "$back/s: parity in $work/b[23]/plfs" "$work/out"
	"$plfs" du --json -m "$map" "$back/s" | grep '"elsewhere": .*, "what": "parity", "on_disk": [1-9][0-9]*, "inodes": [1-9]'
	name=$(find "$two" "$three" -name 'parity.*' | head -1)
	rm "$name"
	"$plfs" places -m "$map" "$back/s" | grep 'parity in .*, 1 are missing'
	name=${name%%/plfs.[0-9]*}
	mv "$name" "$name.lost"
	"$plfs" places -m "$map" "$back/s" | grep "parity in $name/.*: not there, or cannot be read"
	mv "$name.lost" "$name"
	"$plfs" run -m "$map" rm /plfs/s
}

parity_is_no_index() { # for stat, where it is in the first backend
	local map indexes
	parity_setup
	until parity_file i && [ "$(find "$back" -name 'parity.*')" ]; do "$plfs" run -m "$map" rm /plfs/i; done
	indexes=$(find "$back" -name 'index.*' ! -name 'index.global' -printf '%s\n' | awk '{ n += $1 } END { print n }')
	"$plfs" stat --json "$back/i" | tee "$work/out"
	grep "\"index_bytes\": $indexes," "$work/out"
	"$plfs" run -m "$map" rm /plfs/i
}

parity_repaired() { # a repair makes parity where its backends are known: under a mapping, and says so without one
	local map
	parity_setup
	until parity_file r && [ "$(find "$two" -name 'parity.*')" ]; do "$plfs" run -m "$map" rm /plfs/r; done
	find "$two" -name 'parity.*' -delete
	"$plfs" check "$back/r" | grep 'a repair or plfs drain with its mapping makes it'
	"$plfs" repair "$back/r" | tee "$work/out"
	grep 'not all parity is made anew: its backend is in no mapping here (-m), or is not there' "$work/out"
	! grep 'could not be done' "$work/out" || return 1
	"$plfs" repair -m "$map" "$back/r" | grep 'parity in other backends made anew'
	! "$plfs" check "$back/r" | grep parity || return 1
	"$plfs" run -m "$map" rm /plfs/r
}

parity_by_another() { # a process that is at it: the line says so, and --wait waits
	local map rc=0 holder
	parity_setup
	map="/plfs=$back,$two,$three{small=0,spread=process,parity=1,drain=none}"
	spread_file y
	"$plfs" drain -m "$map" "$back/y"
	python3 -c 'import fcntl, struct, sys, time
f = open(sys.argv[1], "r+")
fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
open(sys.argv[2], "w").close()
time.sleep(1000)' "$(find "$back" -name parity)" "$work/locked" & # F_OFD_SETLK
	holder=$!
	until [ -e "$work/locked" ]; do sleep 0.05; done
	"$plfs" drain -m "$map" "$back/y" >"$work/out" 2>"$work/err" || rc=$?
	cat "$work/out" "$work/err"
	{ sleep 1; kill "$holder"; } &
	[ "$rc" = 75 ]
	[ "$(grep -c 'another process makes it at the moment; plfs drain --wait waits for that' "$work/err")" = 1 ]
	"$plfs" drain --wait --timeout=60 -m "$map" "$back/y"
	rm "$work/locked"
	"$plfs" run -m "$map" rm /plfs/y
}

parity_forgotten() { # a lost backend is given up: its bytes are read, its logs made anew, and what comes back does no harm
	local map
	parity_setup
	parity_file f
	wrong 1 "$two is there: nothing is given up" "$plfs" places --forget "$two" "$back/f"
	mv "$two" "$two.lost"
	"$plfs" places --forget "$two" "$back/f" | grep 'is given up'
	"$plfs" run -m "$map" cmp "$work/plain/f" /plfs/f 2>"$work/err"
	cat "$work/err"
	[ "$(grep -c 'is rebuilt from parity in .*; plfs repair makes it whole' "$work/err")" = 1 ]
	made_anew f
	[ "$(find "$back" -name 'data.*' | wc -l)" = 0 ]
	"$plfs" gc --places --age 0 "$two"
	"$plfs" gc --places --age 0 "$three"
	[ "$(there_logs)" = 0 ]
	[ "$(parity_files)" = 0 ]
}

parity_wrong() { # settings
	local three_of="/plfs=$back,$work/plain,$bin"
	wrong 78 'parity= is 0, 1 or 2' "$plfs" run -m "$three_of{spread=process,parity=3}" true
	wrong 78 'parity= is 0, 1 or 2' "$plfs" run -m "$three_of{spread=process,parity=}" true
	wrong 78 'parity=1 is for three backends or more' "$plfs" run -m "$three_of{parity=1}" true
	wrong 78 'parity=2 is for four backends or more' "$plfs" run -m "$three_of{spread=process,parity=2}" true
	wrong 78 'parity=1 is for three backends or more' "$plfs" run -m "/plfs=$back,$bin{spread=file,parity=1}" true
	wrong 78 'parity= does not go with drain=close' "$plfs" run -m "$three_of{spread=file,parity=1,drain=close}" true
	wrong 78 'spread= does not go with near=' "$plfs" run -m "$three_of{spread=host,parity=1,near=/tmp}" true
	wrong 78 'spread= does not go with mirror=' "$plfs" run -m "$three_of{spread=host,parity=1,mirror=2}" true
	"$plfs" run -m "$three_of{spread=host,parity=0}" true
}

parity_two_backends() { # parity=2, by the helper: any two of the others may be lost, and be made anew at home
	local map lost dir four=$work/four
	spread_setup process
	mkdir "$four"
	map="/plfs=$back,$two,$three,$four{small=0,spread=process,parity=2}"
	spread_file p
	until_so "the helper has ended" no_copier
	"$plfs" drain -m "$map" "$back/p"
	"$plfs" check "$back/p"
	for lost in "$two $three" "$two $four" "$three $four"; do
		for dir in $lost; do mv "$dir" "$dir.lost"; done
		"$plfs" run -m "$map" cmp "$work/plain/p" /plfs/p
		for dir in $lost; do mv "$dir.lost" "$dir"; done
	done
	for dir in $lost; do mv "$dir" "$dir.lost"; done
	"$plfs" repair -m "$map" "$back/p" >/dev/null
	"$plfs" run -m "/plfs=$back,$two" cmp "$work/plain/p" /plfs/p 2>"$work/err"
	[ ! -s "$work/err" ]
	"$plfs" drain -m "$map" "$back/p" && return 1
	[ $? = 75 ]
	for dir in $lost; do mv "$dir.lost" "$dir"; done
	"$plfs" drain -m "$map" "$back/p"
	"$plfs" check "$back/p"
	"$plfs" run -m "$map" rm /plfs/p
	[ -z "$(find "$two" "$three" "$four" -name 'data.*' -o -name 'parity.*')" ]
}
