# SPDX-License-Identifier: BSD-3-Clause
# For cases to which no plain directory gives an answer: each runs by itself in $W, an empty directory, with the backend $B below the
# prefix $PFX, all files as logs; it fails at the first check that does not hold. Exit code 77: cannot run here. No case lives here.

_fail() {
	echo "not so: $*"
	exit 1
}

_skip() {
	echo "$*"
	exit 77
}

# Run under the library; standard error is kept in $W/err and shown, the exit status in $rc.
_under() {
	rc=0
	env LD_PRELOAD="$PRE" PLFS_MAP="${MAP-$PFX=$B{small=0\}}" "$@" 2>"$W/err" || rc=$?
	cat "$W/err" >&2
}

_user() { # the same as an unprivileged user
	rc=0
	setpriv --reuid 65534 --regid 65534 --clear-groups \
		env LD_PRELOAD="$PRE" PLFS_MAP="${MAP-$PFX=$B{small=0\}}" "$@" 2>"$W/err" || rc=$?
	cat "$W/err" >&2
}

_need_root() {
	[ "$(id -u)" = 0 ] || _skip "needs root, to become another user"
	chmod 755 "$W"
	# What an unprivileged user cannot load, it cannot test.
	setpriv --reuid 65534 --regid 65534 --clear-groups test -r "${PRE##*:}" || _skip "another user cannot read ${PRE##*:}"
}

_is() { # WHAT GOT WANT
	[ "$2" = "$3" ] || _fail "$1 is '$2', not '$3'"
}

# The process ended with 78 and one line that holds each of the words, before it did anything.
_refuses() { # MAP WORD...
	local map=$1 word before
	shift
	before=$(find "$B")
	MAP=$map _under sh -c 'echo ran; echo x >'"$W"'/ran' >"$W/out"
	[ $rc = 78 ] || _fail "PLFS_MAP='$map': exit code $rc, not 78"
	[ "$(wc -l <"$W/err")" = 1 ] || _fail "PLFS_MAP='$map': $(wc -l <"$W/err") lines on standard error: $(cat "$W/err")"
	for word in libplfs "$@"; do
		grep -qF -- "$word" "$W/err" || _fail "PLFS_MAP='$map': no '$word' in: $(cat "$W/err")"
	done
	[ ! -e "$W/ran" ] && [ ! -s "$W/out" ] || _fail "PLFS_MAP='$map': the program ran"
	[ "$(find "$B")" = "$before" ] || _fail "PLFS_MAP='$map': something was made"
}

_run() {
	set +e
	B=$W/back
	mkdir "$B" || exit
	"$1"
	exit
}

_container() { # the directory of the only container
	local c
	c=$(find "$B/.plfs" -mindepth 2 -maxdepth 2 -type d)
	[ -d "$c" ] || _fail "one container: $c"
	echo "$c"
}
