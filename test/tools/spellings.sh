# SPDX-License-Identifier: BSD-3-Clause
# Directories on the command line, by all their names, sourced by run.

# Names of the directory $1, which has sub/ in it, for a process that works there.
names_of() {
	printf '%s\n' "$1/" "$1/." "$1//./" "$1/sub/.." . ./ sub/../. "../${1##*/}"
}

# A file whose container is gone, one that a process has open, and a whole one outside of $back/dir.
files_below() {
	mkdir -p "$back/dir/sub/deep" "$back/sub"
	ln -s dir/sub "$back/link"
	"$plfs" run -m "$map" sh -c 'seq 30000 >/plfs/dir/f; seq 20000 >/plfs/dir/sub/f; seq 10000 >/plfs/whole'
	"$plfs" stat --json "$back/dir/sub/f" >"$work/got"
	rm -r "$(field container)"
}

# sees RC LINE COMMAND...: it exits with RC and says LINE, the name of the directory at its end.
sees() {
	local rc=0 want=$1 line=$2
	shift 2
	"$@" >"$work/got" 2>&1 || rc=$?
	[ $rc = "$want" ] && grep -E "$line" "$work/got" && return
	echo "$*: exit code $rc, not $want, or no line $line"
	cat "$work/got"
	return 1
}

# Each verb sees the same below a directory, whatever name it has, damage above all.
spellings_of_a_directory() {
	local dir name pid nr
	files_below
	mkfifo "$work/spelled"
	"$plfs" run -m "$map" python3 -c '
import os, sys
f = os.open("/plfs/dir/sub/w", os.O_CREAT | os.O_WRONLY)
os.write(f, b"x" * 100000)
open(sys.argv[1], "w").close()
open(sys.argv[2]).read()' "$work/open" "$work/spelled" &
	pid=$!
	until [ -e "$work/open" ]; do sleep 0.05; done
	for dir in "$back/dir" "$back"; do
		nr=3
		[ "$dir" = "$back" ] && nr=4
		cd "$dir"
		while read -r name; do
			sees 1 "^$nr logical files.* 1 damaged" "$plfs" check -r "$name"
			grep "^$back/dir/sub/f: damage" "$work/got"
		done < <(names_of "$dir")
		sees 1 "^$nr logical files.* 1 damaged" "$plfs" repair -n -r .
		sees 0 "$back/dir/sub/w" "$plfs" watch --once .
	done
	sees 1 "^3 logical files.* 1 damaged" "$plfs" check -r "$back/link/.."
	echo >"$work/spelled"
	wait $pid
}

# A name that leads out of the backend is no name of a directory in it.
spellings_of_others() {
	files_below
	ln -s "$work/plain" "$back/out"
	mkdir "$work/plain/sub"
	sees 2 'not below a mapped directory' "$plfs" check -r "$back/out/sub/.."
	sees 2 'not below a mapped directory' "$plfs" check -r "$back/out/."
	sees 2 'Not a directory' "$plfs" check -r "$back/whole/.."
	sees 2 'No such file' "$plfs" check -m "$map" -r "$back/none/.."
	ln -s whole "$back/dir/to"
	sees 2 'No such file' "$plfs" check -r "$back/dir/./to"
}

# A symbolic link in a backend stands for what it leads to, as for cat.
links_followed() {
	local verb
	near_setup
	"$plfs" run -m "$map" sh -c 'mkdir /plfs/d; seq 30000 >/plfs/d/f; cd /plfs; ln -s f d/latest; ln -s d all
		ln -s /plfs/d/f abs; ln -s all/latest over; ln -s gone dangling; ln -s loop loop; ln -s /tmp out'
	sees 2 '/dangling: No such file' "$plfs" check -m "$map" /plfs/dangling
	for verb in check repair places stage drain; do
		for name in "$back/d/latest" "$back/all/latest" "$back/over" /plfs/over /plfs/abs; do
			sees 0 '' "$plfs" $verb -m "$map" $name
		done
		sees 0 '' "$plfs" $verb -m "$map" -r /plfs/all
	done
	sees 0 '^1 logical files' "$plfs" check -m "$map" /plfs/over
	sees 0 '^1 logical files' "$plfs" check -m "$map" -r "$back/all"
	for verb in drain places stage; do
		sees 1 '/dangling: No such file' "$plfs" $verb -m "$map" /plfs/dangling
		sees 1 '/loop: Too many levels' "$plfs" $verb -m "$map" /plfs/loop
		sees 1 '/out: not ' "$plfs" $verb -r -m "$map" /plfs/out
	done
}

# A directory link into another backend: what is behind it is that backend's, for programs and for commands.
links_between_backends() {
	local other=$work/linked map
	near_setup
	mkdir -p "$other/d"
	ln -s "$other/d" "$back/link"
	map="/plfs=$back{small=0}:/other=$other{small=0,near=$near,drain=none}"
	seq 60000 >"$work/plain/f"
	"$plfs" run -m "$map" sh -c 'cp "$1" /plfs/link/f; cp "$1" /plfs/g; mkdir /plfs/d; cp "$1" /plfs/d/h; cmp "$1" /other/d/f' - "$work/plain/f"
	[ "$(near_logs)" = 1 ]
	"$plfs" run -m "$map" python3 -c '
import errno, os
for f, a, b in ((os.rename, "g", "link/g"), (os.link, "g", "link/g"), (os.rename, "d", "link/d"), (os.rename, "link/f", "f")):
    try:
        f("/plfs/" + a, "/plfs/" + b)
        raise SystemExit(f"{a}: not refused")
    except OSError as e:
        assert e.errno == errno.EXDEV, e
os.rename("/plfs/link/f", "/plfs/link/e")'
	sees 0 '^1 logical files.* 0 damaged' "$plfs" check -m "$map" "$back/link/e"
	sees 0 ': 1 logs ' "$plfs" places -m "$map" /plfs/link/e
	sees 0 '^1 logs moved home' "$plfs" drain -m "$map" /plfs/link/e
	"$plfs" gc -a 0 -m "$map" "$back"
	"$plfs" run -m "$map" sh -c 'cmp "$1" /other/d/e && cmp "$1" /plfs/link/e && cmp "$1" /plfs/d/h' - "$work/plain/f"
	"$plfs" run -m "$map" rm /plfs/link/e
	[ -z "$(find "$other" -name 'data.*')" ]
}

# flatten -r of "." makes all below it plain.
flatten_spellings() {
	local name
	mkdir -p "$back/dir/sub"
	cd "$back/dir"
	for name in . "$back/dir/." sub/..; do
		"$plfs" run -m "$map" sh -c 'rm -f /plfs/dir/f; seq 30000 >/plfs/dir/f'
		[ -k f ]
		"$plfs" flatten -r "$name"
		[ ! -k f ] && cmp f <(seq 30000)
	done
}

# Drains, lists and stages of directories: all below with -r, an error without, never nothing with success.
drain_directories() {
	local map name verb
	near_setup
	mkdir -p "$back/dir/sub" "$work/nothing"
	"$plfs" run -m "$map" sh -c 'for f in a dir/b dir/sub/c dir/sub/d; do seq 30000 >/plfs/$f; done'
	echo plain >"$back/dir/plain"
	cd "$back/dir"
	for name in . "$back" "$back/dir/" sub; do
		for verb in drain places "places --forget none" stage; do
			sees "$([ "$verb" = drain ] && echo 2 || echo 1)" "^plfs: $name: a directory on a backend, and no place: use -r" "$plfs" $verb -m "$map" "$name"
		done
	done
	[ "$(near_logs)" = 4 ]
	sees 0 "^plfs: $work/nothing: a directory with nothing of libplfs in it" "$plfs" drain "$work/nothing"
	[ -z "$("$plfs" drain -q "$work/nothing" 2>&1)" ]
	sees 1 "^plfs: $work/none: No such file" "$plfs" drain "$work/none"
	sees 1 "^plfs: $work/none: No such file" "$plfs" places "$work/none"
	sees 1 "^plfs: $work/nothing: not on a backend" "$plfs" drain -r "$work/nothing"
	[ "$("$plfs" places -r . | grep -c ': 1 logs (0 open)')" = 3 ]
	sees 1 ': has nothing on none' "$plfs" places -r --forget none .
	"$plfs" drain -r sub | grep '^2 logs moved home'
	"$plfs" drain -r "$back/." | grep '^2 logs moved home'
	[ "$(near_logs)" = 0 ]
	"$plfs" drain --wait --timeout=0 -r "$back"
	[ -z "$("$plfs" places -r "$back")" ]
	"$plfs" stage -m "$map" -r . | grep '^3 logs staged'
	"$plfs" stage -m "$map" --drop -r "$back"
	[ "$(near_logs)" = 0 ]
	"$plfs" run -m "$map" cmp /plfs/dir/sub/d <(seq 30000)
}

# A report does not take a file whose logs are near for one that has all in its stub.
report_of_logs_near() {
	local map
	near_setup
	"$plfs" run -m "$map" sh -c 'seq 30000 >/plfs/f; echo small >/plfs/g'
	report "$back/f" >"$work/got"
	grep 'whose logs are not in the backend: plfs places' "$work/got"
	! grep 'in its stub' "$work/got" || return 1
	"$plfs" drain -q "$back/f"
	report "$back/f" >"$work/got"
	grep '1 process on 1 host wrote' "$work/got"
}
