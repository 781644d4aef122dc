# SPDX-License-Identifier: BSD-3-Clause
# plfs gc, sourced by run: what it finds, says and removes, and what it leaves alone.

# collect CODE [OPTION...]: plfs gc of the backend ends with it; what it prints is in $work/got. With --age 0 it keeps a
# container that changed in the tick of the file system's clock in which it began, so a tick passes first.
collect() {
	local code=$1 rc=0
	shift
	sleep 0.05
	"$plfs" gc "$@" "$back" >"$work/got" 2>"$work/err" || rc=$?
	cat "$work/got" "$work/err"
	[ $rc = "$code" ]
}

nr_containers() {
	find "$back/.plfs" -mindepth 2 -maxdepth 2 -type d | wc -l
}

gc_orphans() {
	mkdir -p "$back/d/e"
	strided f
	"$plfs" run -m "$map" sh -c 'echo hello >/plfs/d/e/g; echo orphan >/plfs/d/h'
	ln "$back/f" "$back/d/link" && rm "$back/f" "$back/d/h"
	[ "$(nr_containers)" = 3 ]
	collect 0
	grep -E "^$back/\.plfs/../[0-9a-f]{32}: container, kept, [0-9.]+ KiB: changed [0-9]+ seconds? ago, so it is younger than 1 day: -a 0 removes it now$" "$work/got"
	grep -E "^$back: [0-9.]+ KiB could be had back now, by: plfs gc -a 0 $back$" "$work/got"
	collect 0 -b
	grep -E "container, kept, [0-9]+ bytes: changed" "$work/got"
	grep -E "^$back: [0-9]+ bytes could be had back now" "$work/got"
	collect 1 -n --age 0
	grep "container, would be removed" "$work/got"
	[ "$(nr_containers)" = 3 ]
	collect 0 --age=0s -j 3
	grep "container, removed" "$work/got"
	grep -x "$back: 2 files, 3 containers; removed 1 ([0-9.]* KiB), left 0 (0 bytes)" "$work/got"
	[ "$(nr_containers)" = 2 ] && [ ! -s "$work/err" ]
	collect 0
	"$plfs" run -m "$map" cmp /plfs/d/link "$work/plain/f"
	"$plfs" run -m "$map" cat /plfs/d/e/g | grep -x hello
}

# All spellings of a backend are one, and the library in front is left.
gc_spellings() {
	"$plfs" run -m "$map" sh -c 'mkdir /plfs/d; echo hello >/plfs/d/f'
	(cd "$back/d" && "$plfs" gc -m "$map" . .. "$back" /plfs /plfs/d/f "$back/d/f" >"$work/got")
	[ "$(grep -c . "$work/got")" = 1 ]
	"$plfs" run -m "$map" "$plfs" gc /plfs | grep -c . | grep -x 1
	mkdir "$work/unused"
	[ "$("$plfs" gc -m "/q=$work/unused" /q)" = "$work/unused: 0 files, 0 containers; removed 0 (0 bytes), left 0 (0 bytes)" ]
	[ -z "$(ls -A "$work/unused")" ]
}

gc_json() {
	"$plfs" run -m "$map" sh -c 'echo hello >/plfs/f; echo orphan >/plfs/g'
	rm "$back/g"
	collect 1 --json -n --age 0
	python3 - "$work/got" "$back" <<-'END'
		import json, sys
		item, end = [json.loads(line) for line in open(sys.argv[1])]
		assert item["backend"] == end["backend"] == sys.argv[2]
		assert item["kind"] == "container" and item["fate"] == "would be removed" and item["bytes"] > 0 and "why" not in item, item
		assert end["files"] == 1 and end["containers"] == 2 and end["removed"] == 0 and end["left"] == 1 and end["exit"] == 1, end
	END
	collect 0 --json
	python3 -c 'import json, sys; print(json.loads(open(sys.argv[1]).readline())["why"])' "$work/got" | grep '^changed .* ago, so it is younger than 1 day'
}

gc_progress() {
	"$plfs" run -m "$map" sh -c 'i=0; while [ $i -lt 300 ]; do echo >/plfs/f$i; i=$((i + 1)); done'
	collect 0
	[ ! -s "$work/err" ]
	script -qec "$plfs gc $back" /dev/null | tr -d '\r' | grep -F "300 files, 300 containers"
}

gc_open_without_a_name() {
	"$plfs" run -m "$map" sh -c 'echo kept >/plfs/f; exec 3</plfs/f; rm /plfs/f; "$0" gc --age 0 "$1" >/dev/null; cat <&3' "$plfs" "$back" |
		grep -x kept
	collect 0 --age 0
	[ "$(nr_containers)" = 0 ]
}

gc_not_all_seen() {
	mkdir -p "$back/closed"
	"$plfs" run -m "$map" sh -c 'echo hello >/plfs/closed/f; echo orphan >/plfs/g'
	rm "$back/g"
	local someone=(setpriv --reuid 65534 --regid 65534 --clear-groups) mode=700
	[ "$(id -u)" = 0 ] || someone=() mode=0
	chmod 755 "$work" "$back" && chmod $mode "$back/closed"
	rc=0
	"${someone[@]}" "$plfs" gc -n --age 0 "$back" >"$work/got" 2>"$work/err" || rc=$?
	cat "$work/got" "$work/err"
	[ $rc = 2 ] && [ "$(grep -c . "$work/err")" = 1 ]
	grep "$back/closed: Permission denied: a file there may lead to any container, so none is removed" "$work/err"
	! grep "container," "$work/got" || return 1
	grep -x "$back: 2 containers stay: none of the files that could be read leads to them" "$work/got"
	chmod 700 "$back/closed"
	printf garbage | dd of="$back/closed/f" bs=1 seek=30 conv=notrunc status=none
	collect 2 --age 0
	grep "$back/closed/f: the stub is damaged" "$work/err"
	[ "$(nr_containers)" = 2 ]
}

# A user's backend below that of the site.
backend_below() {
	local below=$back/me/own containers
	mkdir -p "$below"
	"$plfs" run -m "$map" sh -c 'seq 1000 >/plfs/f; seq 1000 >/plfs/me/f'
	"$plfs" run -m "$below{small=0}" sh -c "seq 1000 >$below/f; seq 1000 >$below/g"
	rm "$below/g"
	rc=0
	"$plfs" check -r "$back" >"$work/got" || rc=$?
	cat "$work/got"
	[ $rc = 0 ] && grep -F "$below: note: a separate backend" "$work/got" && [ "$(wc -l <"$work/got")" = 2 ]
	"$plfs" check -r "$below" | tee "$work/got"
	grep -F "$below: note: lies in the backend $back" "$work/got" && [ "$(wc -l <"$work/got")" = 2 ]
	"$plfs" run -m "$map" sh -c 'echo orphan >/plfs/me/g'
	rm "$back/me/g"
	collect 0 --age 0
	[ "$(nr_containers)" = 2 ]
	containers=$(ls -d "$below"/.plfs/??/* | wc -l)
	[ "$containers" = 2 ]
	"$plfs" gc --age 0 "$below"
	[ "$(ls -d "$below"/.plfs/??/* | wc -l)" = 1 ]
}

# It is what makes room: it needs none itself.
gc_without_room() {
	local full='No space left on device'
	mount -t tmpfs -o size=8m,nr_inodes=200 none "$back" || { echo "no mounts here"; exit 77; }
	trap 'umount -l "$back"' EXIT
	"$plfs" run -m "$map" sh -c 'seq 9999 >/plfs/f; seq 9999 >/plfs/g; seq 999 >/plfs/old'
	rm "$back/g" "$back/old"
	(for i in $(seq 300); do : >"$back/x$i"; done) 2>"$work/err" || grep -q "$full" "$work/err"
	wrong 1 "$full" mkdir "$back/y"
	collect 0
	grep "container, kept, .* younger than 1 day" "$work/got"
	collect 0 -a 0
	[ "$(grep -c "container, removed" "$work/got")" = 2 ] && [ "$(nr_containers)" = 1 ] && [ ! -s "$work/err" ]
	mkdir "$back/y"
	"$plfs" run -m "$map" cat /plfs/f | cmp - <(seq 9999)
	umount -l "$back"
	trap - EXIT
}

gc_wrong() {
	"$plfs" run -m "$map" sh -c 'echo hello >/plfs/f'
	wrong 2 "no backend given" "$plfs" gc
	wrong 2 "5x" "$plfs" gc --age 5x "$back"
	wrong 2 "1day" "$plfs" gc --age 1day "$back"
	wrong 2 "from 1 to 64" "$plfs" gc -j 0 "$back"
	wrong 2 "--frobnicate" "$plfs" gc --frobnicate "$back"
	wrong 2 "/etc: not on a backend" "$plfs" gc /etc
	wrong 2 "inside a container directory" "$plfs" gc "$back/.plfs"
	sed -i 1s/1/9/ "$back/.plfs/format"
	wrong 2 "newer" "$plfs" gc "$back"
}

# Whole programs, and mv and rm with and without the library, while it runs all the time.
gc_while_jobs_run() {
	local end=$((SECONDS + 5)) rc=0 pids=()
	mkdir "$back/one" "$back/two"
	job_of_files() {
		local n=0
		while [ $SECONDS -lt $end ]; do
			n=$((n + 1))
			"$plfs" run -m "$map" sh -ec 'seq $2 >/plfs/one/$1; mv /plfs/one/$1 /plfs/two/$1; cp /plfs/two/$1 /plfs/one/$1.copy' - $1.$n $n
			mv "$back/two/$1.$n" "$back/one/$1.$n.moved"
			"$plfs" run -m "$map" sh -ec 'seq $2 | cmp - /plfs/one/$1.moved; rm /plfs/one/$1.moved; seq $2 | cmp - /plfs/one/$1.copy' - $1.$n $n
			mv "$back/one/$1.$n.copy" "$back/two/$1.$n.kept"
		done
		for n in $(seq $n); do
			seq $n | "$plfs" run -m "$map" cmp - /plfs/two/$1.$n.kept
		done
	}
	job_of_files a & pids+=($!)
	job_of_files b & pids+=($!)
	until [ -e "$back/.plfs/format" ]; do sleep 0.01; done # before that it is no backend
	while [ $SECONDS -lt $end ]; do
		"$plfs" gc --age 0 -j 2 "$back" >"$work/got" 2>&1 || [ $? = 1 ] || { cat "$work/got"; return 1; }
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || rc=$?
	done
	[ $rc = 0 ]
	collect 0 --age 0
	[ "$(nr_containers)" = "$(find "$back/one" "$back/two" -type f | wc -l)" ]
}
