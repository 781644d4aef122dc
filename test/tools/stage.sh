# SPDX-License-Identifier: BSD-3-Clause
# plfs stage, sourced by run.

staged() { # copies for the readers of this node, whose originals stay
	local map
	near_setup
	head -c 3000000 /dev/urandom >"$work/plain/s1"
	"$plfs" run -m "/plfs=$back{small=0}" cp "$work/plain/s1" /plfs/s1
	"$plfs" stage -m "$map" "$back/s1" | grep '^1 logs staged, 2.9 MiB'
	[ "$(near_logs)" = 1 ]
	[ "$(find "$back/.plfs" -name 'data.*' | wc -l)" = 1 ]
	"$plfs" stage -m "$map" --json /plfs/s1 | python3 -c 'import json, sys; d = json.loads(sys.stdin.read()); assert d["logs"] == 0 and d["there"] == 1 and d["exit"] == 0'
	"$plfs" places -m "$map" "$back/s1" | grep '1 logs staged on this node, 2.9 MiB'
	"$plfs" places -m "$map" --json "$back/s1" | python3 -c 'import json, sys; assert json.loads(sys.stdin.read())["staged"] == 1'
	"$plfs" places -m "$map" --wait --timeout=0 "$back/s1" # it is flushed
	"$plfs" check -m "$map" "$back/s1"
	"$plfs" drain "$near" | grep '^0 logs moved home'
	[ "$(near_logs)" = 1 ]
	# what is read is the copy
	printf garbage | dd of="$(find "$back/.plfs" -name 'data.*')" bs=1 seek=100000 conv=notrunc status=none
	"$plfs" run -m "$map" cmp "$work/plain/s1" /plfs/s1
	! "$plfs" run -m "/plfs=$back" cat /plfs/s1 >"$work/out" 2>&1 || return 1
	! "$plfs" check -m "$map" "$back/s1" || return 1 # the original
	"$plfs" stage -m "$map" --drop "$back/s1"
	[ "$(near_logs)" = 0 ]
	[ -z "$("$plfs" places -m "$map" "$back/s1")" ]
	"$plfs" stage -m "$map" "$back/s1" >"$work/out" 2>&1 && return 1 # damaged: it is not staged
	[ "$(near_logs)" = 0 ]
	"$plfs" run -m "$map" rm /plfs/s1
}

staged_out() { # --to home: what a drain does, and the copies stay
	local map
	near_setup
	head -c 3000000 /dev/urandom >"$work/plain/s2"
	"$plfs" run -m "$map" cp "$work/plain/s2" /plfs/s2
	"$plfs" stage -m "$map" --to home "$back/s2" | grep '^1 logs moved home, 2.9 MiB'
	[ "$(near_logs)" = 1 ]
	[ "$(find "$back/.plfs" -name 'data.*' | wc -l)" = 1 ]
	"$plfs" places -m "$map" "$back/s2" | grep '1 logs staged on this node'
	"$plfs" run -m "/plfs=$back" cmp "$work/plain/s2" /plfs/s2
	rm "$back/s2" # as a program without the library does: the container stays, and gc finds it
	"$plfs" gc -q --age 0 "$back"
	[ "$(near_logs)" = 1 ]
	"$plfs" gc --places "$near" | grep '1 containers of files that are gone removed'
	[ "$(near_logs)" = 0 ]
}

staged_wrong() {
	local map
	near_setup
	"$plfs" run -m "/plfs=$back{small=0}" sh -c 'head -c 2000000 /dev/urandom >/plfs/s3; echo plain >/plfs/s4'
	wrong 1 'its mapping has no near=' "$plfs" stage "$back/s3"
	wrong 2 'no file given' "$plfs" stage -m "$map"
	wrong 2 '--to is near or home' "$plfs" stage --to there "$back/s3"
	wrong 2 '--drop does not go with' "$plfs" stage --to home --drop "$back/s3"
	wrong 1 'No such file' "$plfs" stage -m "$map" "$back/none"
	"$plfs" run -m "$map" sh -c 'echo near >/plfs/s5'
	wrong 2 'a place: name files' "$plfs" stage -m "$map" "$near"
	"$plfs" drain -q "$near"
	echo plain >"$back/p"
	"$plfs" stage -m "$map" "$back/p" | grep '^0 logs staged'
	map="/plfs=$back{small=0,near=$near,near-max=1M}"
	wrong 75 'no room in the place, or near-max is reached: it is read at home' "$plfs" stage -q -m "$map" "$back/s3"
	[ "$(near_logs)" = 0 ]
	"$plfs" stage -m "$map" --json "$back/s3" 2>"$work/err" | python3 -c 'import json, sys; d = json.loads(sys.stdin.read()); assert d["left"] == 1 and d["exit"] == 75'
	"$plfs" run -m "$map" cat /plfs/s3 | cmp - <("$plfs" run -m "/plfs=$back" cat /plfs/s3)
}

staged_without_room() { # a file system without space: as root
	local map
	[ "$(id -u)" = 0 ] || { echo "needs root, for a small file system"; exit 77; }
	near_setup
	mount -t tmpfs -o size=4m none "$near" || { echo "no mounts here"; exit 77; }
	trap 'umount -l "$near"' EXIT
	head -c 3000000 /dev/urandom >"$work/plain/s5"
	head -c 2000000 /dev/urandom >"$work/plain/s6"
	"$plfs" run -m "/plfs=$back{small=0}" cp "$work/plain/s5" "$work/plain/s6" /plfs/
	wrong 75 'no room in the place' "$plfs" stage -q -m "$map" "$back/s5" "$back/s6"
	[ "$(near_logs)" = 1 ]
	"$plfs" run -m "$map" cmp "$work/plain/s5" /plfs/s5
	"$plfs" run -m "$map" cmp "$work/plain/s6" /plfs/s6
	"$plfs" stage -m "$map" --drop "$back/s5"
	"$plfs" stage -q -m "$map" "$back/s6"
	"$plfs" run -m "$map" cmp "$work/plain/s6" /plfs/s6
	umount -l "$near"
	trap - EXIT
	"$plfs" run -m "$map" cmp "$work/plain/s6" /plfs/s6
}
