# SPDX-License-Identifier: BSD-3-Clause
# near=auto, plfs places --auto and plfs drain --auto, sourced by run.

# A job of a batch system: its own choice, in $choice, which goes with the job.
auto_setup() {
	export SLURM_JOB_ID=plfs-test.$$.${FUNCNAME[1]}
	choice="/dev/shm/plfs.$(id -u)/auto.*.$SLURM_JOB_ID"
	map="/plfs=$back{small=0,near=auto,drain=none}"
	trap auto_clean EXIT
}

auto_clean() { # what a job has left in the memory of the node
	local f
	rm -f /dev/shm/plfs.$(id -u)/auto.*."$SLURM_JOB_ID"
	for f in /dev/shm/plfs.$(id -u)/*/home; do
		[ "$(cat "$f" 2>/dev/null)" != "$back" ] || rm -rf "${f%/home}"
	done
}

auto_dir() { # the directory that is taken
	"$plfs" places --auto --json "$back" | python3 -c '
import json, sys
print("".join(a["directory"] for a in map(json.loads, sys.stdin) if a["taken"]))'
}

auto_taken() { # logs are in it, all processes of the job know, and they are drained without naming it
	local map choice dir
	auto_setup
	dir=$(auto_dir)
	[ -n "$dir" ] || { echo "no disk of its own, and too little memory for near=auto"; exit 77; }
	[ -z "$(ls $choice 2>/dev/null)" ]
	head -c 3000000 /dev/urandom >"$work/plain/a"
	"$plfs" run -m "$map" cp "$work/plain/a" /plfs/a
	[ -z "$(find "$back/.plfs" -name 'data.*')" ]
	"$plfs" places "$back/a" | grep -F "in $dir/plfs.$(id -u)/"
	grep "^$dir	" $choice
	"$plfs" places --auto "$back" | grep -F "$dir" | grep 'taken, as the first process of this job on this node has'
	"$plfs" places --auto -m "$map" --json | python3 -c '
import json, sys
found = [json.loads(line) for line in sys.stdin]
assert sum(a["taken"] for a in found) == 1 == sum(a["chosen"] for a in found), found
assert all(a["taken"] or a.get("why") or a["writable"] for a in found), found
assert all(a["backend"] == sys.argv[1] for a in found), found' "$back"
	"$plfs" run -m "$map" cmp "$work/plain/a" /plfs/a
	"$plfs" drain -m "/plfs=$work/plain{near=auto}" --auto | grep '^0 logs moved home' # of another job
	"$plfs" drain -m "$map" --auto | grep '^1 logs moved home'
	[ -n "$(find "$back/.plfs" -name 'data.*')" ]
	[ -z "$("$plfs" places "$back/a")" ]
	"$plfs" run -m "$map" cmp "$work/plain/a" /plfs/a
	"$plfs" run -m "$map" rm /plfs/a
	wrong 2 'goes with no other option' "$plfs" places --auto --wait "$back"
	wrong 1 '/none/at/all' "$plfs" places --auto /none/at/all
}

auto_of_the_job() { # a variable that names what is not of this node alone, or not there, is passed over, and shown
	local map choice
	auto_setup
	SLURM_TMPDIR=/proc PBS_JOBFS=$work/none TMPDIR=relative "$plfs" places --auto "$back" >"$work/out"
	grep -F '/proc ($SLURM_TMPDIR): proc: not known as a file system of this node alone' "$work/out"
	grep -F "$work/none (\$PBS_JOBFS): " "$work/out" | grep 'not there\|not known'
	! grep relative "$work/out" || return 1
	TMPDIR=$back "$plfs" places --auto "$back" | grep -F "$back (\$TMPDIR): " | grep 'the backend is on the same\|not known'
}

auto_none() { # as root, where memory is too little: logs are in the backend, without a line
	local map choice
	[ "$(id -u)" = 0 ] || { echo "needs root, for a small /dev/shm"; exit 77; }
	auto_setup
	unshare -m true 2>/dev/null || { echo "no mount namespaces here"; exit 77; }
	unshare -m --propagation private sh -e -c '
		mount -t tmpfs -o size=50m none /dev/shm || exit 77
		"$0" places --auto "$2" >"$3/out"
		grep "nothing is taken: logs are written to the backend" "$3/out" || exit 77
		grep "/dev/shm: tmpfs.*: the job has too little memory left" "$3/out"
		"$0" run -m "$1" sh -c "head -c 1000000 /dev/zero >/plfs/n" >"$3/out" 2>&1
		test ! -s "$3/out"
		PLFS_DEBUG=config "$0" run -m "$1" true 2>"$3/out"' "$plfs" "$map" "$back" "$work" ||
		{ [ $? = 77 ] && echo "a disk that near=auto takes, or no mounts here" && exit 77; }
	[ -n "$(find "$back/.plfs" -name 'data.*')" ]
	[ -z "$("$plfs" places "$back/n")" ]
	"$plfs" run -m "/plfs=$back" rm /plfs/n
}
