# SPDX-License-Identifier: BSD-3-Clause
# For bash scripts with several users, who need no names: root becomes them. Sourced behind ../lib/jobs.sh.
[ "$(id -u)" = 0 ] || { echo "only root can be several users"; exit 77; }
command -v setpriv >/dev/null || { echo "no setpriv here"; exit 77; }
unset PLFSRC PLFS_DEBUG PLFS_CONSISTENCY
[ "$PLAIN" = yes ] && { echo "there is nothing to compare with a plain file system"; exit 77; }

cp "$preload" "$work/libplfs.so" && cp "$BUILD/plfs" "$work/plfs" && chmod 755 "$work" "$work/plfs" "$work/libplfs.so" || exit 2
plfs=$work/plfs
back=$work/backend
map="/plfs=$back{small=0}"
A=41001 B=41002 C=41003 proj=42000 # users, each in a group of the same number; A and B are in proj as well

as() { # USER COMMAND...
	local user=$1 groups=--clear-groups
	shift
	[ "$user" = root ] && { "$@"; return; }
	[ "$user" = $C ] || groups=--groups=$proj
	setpriv --reuid "$user" --regid "$user" $groups "$@"
}

by() { # USER SCRIPT: under the library. What waits for another user waits for ever; a machine may be busy.
	as "$1" timeout -k 2 60 "$plfs" run -m "${map}" bash -c "umask ${umask:-022}; $2"
}

fails() { # COMMAND...: but not by being killed
	local rc=0
	"$@" >"$work/out" 2>"$work/err" || rc=$?
	cat "$work/out" "$work/err"
	[ $rc != 0 ] && [ $rc -lt 124 ] || { echo "$*: exit code $rc"; return 1; }
}

says() { # TEXT: on standard error of the last that failed, in one line
	[ "$(grep -cF -- "$1" "$work/err")" = 1 ] || { echo "does not say, in one line: $1"; return 1; }
}

container() { "$plfs" stat -m "$map" --json "$back/$1" | sed 's/.*"container": "\([^"]*\)".*/\1/'; }

shared() { # a backend as /scratch is
	chmod 1777 "$back"
	"$plfs" init "$back"
}

project() { # a backend as a directory of a project is
	chgrp $proj "$back"
	chmod 2775 "$back"
}

try() { # JOB
	wanted "$1" || return
	rm -rf "$work/backend" "$work/plain" "$work/canary"
	mkdir "$work/backend" "$work/plain"
	chmod 755 "$work/backend" "$work/plain"
	job "$1" "$1"
}
