# SPDX-License-Identifier: BSD-3-Clause
# What users do to files whose logs are near (near=), sourced by run: each verb and tool does what it does to a file at home.

near_used() {
	local map name
	near_setup
	for name in a b c d e; do
		head -c 2000000 /dev/urandom >"$work/plain/$name"
		"$plfs" run -m "$map" cp "$work/plain/$name" /plfs/
	done
	head -c 5000 /dev/urandom >"$work/some"
	dd if="$work/some" of="$work/plain/a" bs=1000 seek=77 conv=notrunc status=none
	"$plfs" run -m "$map" dd if="$work/some" of=/plfs/a bs=1000 seek=77 conv=notrunc status=none
	[ "$(near_logs)" = 6 ]
	[ -z "$(find "$back/.plfs" -name 'data.*')" ]
	"$plfs" stat --json "$back/a" | python3 -c 'import json, sys; d = json.load(sys.stdin); assert d["size"] == 2000000 and d["logs"] == 2, d'
	[ "$("$plfs" map --json "$back/a" | grep -o 'data[.][^"]*' | sort -u | wc -l)" = 2 ]
	# a rename, of the file and over another; a second name
	mkdir "$back/dir"
	mv "$back/a" "$back/dir/a"
	"$plfs" run -m "$map" mv /plfs/dir/a /plfs/a2
	"$plfs" run -m "$map" cmp "$work/plain/a" /plfs/a2
	"$plfs" run -m "$map" mv /plfs/a2 /plfs/b
	[ "$(near_logs)" = 5 ]
	"$plfs" run -m "$map" sh -c 'ln /plfs/b /plfs/b2 && rm /plfs/b'
	"$plfs" run -m "$map" cmp "$work/plain/a" /plfs/b2
	# cut, and longer again
	"$plfs" run -m "$map" sh -c 'truncate -s 1000000 /plfs/c; truncate -s 1500000 /plfs/c'
	truncate -s 1000000 "$work/plain/c" && truncate -s 1500000 "$work/plain/c"
	"$plfs" run -m "$map" cmp "$work/plain/c" /plfs/c
	"$plfs" compact "$back/c"
	"$plfs" run -m "$map" cmp "$work/plain/c" /plfs/c
	# a plain file, in place and elsewhere
	"$plfs" flatten -o "$work/plain/out" "$back/b2"
	cmp "$work/plain/a" "$work/plain/out"
	"$plfs" flatten "$back/d"
	cmp "$work/plain/d" "$back/d"
	"$plfs" run -m "$map" cmp "$work/plain/d" /plfs/d
	# what gc finds is what was removed without the library
	"$plfs" gc -a 0 "$back" >"$work/out"
	for name in c:c a:b2 e:e; do "$plfs" run -m "$map" cmp "$work/plain/${name%:*}" "/plfs/${name#*:}"; done
	rm "$back/e"
	"$plfs" gc -a 0 "$back" | tee "$work/out"
	"$plfs" check -r "$back"
	"$plfs" drain "$near"
	"$plfs" gc --places "$near"
	[ "$(near_logs)" = 0 ]
	for name in c:c a:b2; do "$plfs" run -m "/plfs=$back" cmp "$work/plain/${name%:*}" "/plfs/${name#*:}"; done
	"$plfs" run -m "/plfs=$back" sh -c 'rm /plfs/*[a-e0-9]' || true
	"$plfs" check -r "$back"
}
