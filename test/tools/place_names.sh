# SPDX-License-Identifier: BSD-3-Clause
# near=NAME and plfs places --names, --add, --remove, sourced by run.

named_places() { # a name leads to its directory, whose variables are the program's; another directory, and none
	local list
	mkdir "$work/one" "$work/two words"
	"$plfs" places --add "nvme=$work/one" "$back" | grep -x "$back: near=nvme: $work/one"
	"$plfs" places --add 'job=$PLFS_TEST_PLACE' --json "$back" >/dev/null
	"$plfs" run -m "/plfs=$back{small=0,near=nvme,drain=none}" sh -c 'seq 1000 >/plfs/f'
	"$plfs" places "$back/f" | grep -F "in $work/one/plfs."
	PLFS_TEST_PLACE="$work/two words" "$plfs" run -m "/plfs=$back{small=0,near=job,drain=none}" sh -c 'seq 1000 >/plfs/g'
	"$plfs" places "$back/g" | grep -F "in $work/two words/plfs."
	"$plfs" places --add "nvme=$work/two words" "$back" >/dev/null
	list=$("$plfs" places --names --json "$back" | python3 -c '
import json, sys
print(*sorted(line["name"] + ":" + line["directory"] for line in map(json.loads, sys.stdin)), sep=";")')
	[ "$list" = 'job:$PLFS_TEST_PLACE;nvme:'"$work/two words" ]
	"$plfs" run -m "/plfs=$back{small=0,near=nvme,drain=none}" sh -c 'seq 1000 | cmp - /plfs/f; seq 1000 >/plfs/h'
	"$plfs" places "$back/h" | grep -F "in $work/two words/plfs."
	printf '# of the site\nplace cold s3 bucket=b' >>"$back/.plfs/places" # the kinds of later versions
	"$plfs" places -q --add "nvme=$work/one" "$back"
	[ "$("$plfs" places --names "$back" | wc -l)" = 2 ]
	grep -x '# of the site' "$back/.plfs/places" && grep -x 'place cold s3 bucket=b' "$back/.plfs/places"
	wrong 78 'near=cold: no place of' "$plfs" run -m "/plfs=$back{near=cold}" true
	"$plfs" places --remove nvme "$back"
	[ "$("$plfs" places --names "$back")" = "$back: near=job: \$PLFS_TEST_PLACE" ]
	"$plfs" drain "$work/one" "$work/two words" | grep -F '3 logs moved home'
	"$plfs" run -m "$map" sh -c 'for f in f g h; do seq 1000 | cmp - /plfs/$f; done'
	"$plfs" init "$back" >/dev/null && "$plfs" gc -q -a 0 "$back" && "$plfs" places --names "$back" | grep -F near=job
}

named_wrong() { # a name that nobody has given, a list that others may write, and what is no name
	wrong 78 "near=nvme: no place of $back has that name (plfs places --add nvme=DIR $back)" \
		"$plfs" run -m "/plfs=$back{near=nvme}" true
	wrong 1 'has no place "nvme"' "$plfs" places --remove nvme "$back"
	[ -z "$("$plfs" places --names "$back")" ]
	wrong 1 '"a/b" is no name of a place' "$plfs" places --add a/b=/tmp "$back"
	wrong 1 '"auto" is no name of a place' "$plfs" places --add auto=/tmp "$back"
	wrong 1 'near "tmp" is not an absolute path' "$plfs" places --add nvme=tmp "$back"
	wrong 2 '"nvme" is not NAME=DIR' "$plfs" places --add nvme "$back"
	wrong 2 'no backend given' "$plfs" places --names
	wrong 2 'goes with no other option' "$plfs" places --names --add nvme=/tmp "$back"
	wrong 1 'No such file or directory' "$plfs" places --names "$work/none"
	"$plfs" places -q --add 'nvme=$PLFS_TEST_PLACE' "$back"
	wrong 78 'near=: the environment variable "PLFS_TEST_PLACE" is not set' "$plfs" run -m "/plfs=$back{near=nvme}" true
	wrong 1 '"${PLFS_TEST_PLACE}/x": behind "$" there is no name of a variable, as in $TMPDIR, without braces' \
		"$plfs" places --add 'nvme=${PLFS_TEST_PLACE}/x' "$back"
	wrong 78 'near=: behind "$" there is no name of a variable' "$plfs" run -m "/plfs=$back{near=/tmp/\$}" true
	chmod 666 "$back/.plfs/places"
	wrong 78 "near=nvme: $back/.plfs/places does not count: others may write it (chmod 644 mends that)" \
		"$plfs" run -m "/plfs=$back{near=nvme}" true
	wrong 1 'others may write it' "$plfs" places --names "$back"
	chmod 644 "$back/.plfs/places"
	"$plfs" places --names "$back" | grep -F near=nvme
}
