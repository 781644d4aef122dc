# SPDX-License-Identifier: BSD-3-Clause
# plfs flatten, sourced by run: in place and elsewhere, killed and refused.

flatten_in_place() {
	local block
	for block in 47 1000 70000; do
		strided f
		chmod 1604 "$back/f"
		touch -d 2020-02-02 "$back/f" "$work/plain/f"
		"$plfs" flatten -m "$map" /plfs/f </dev/null
		cmp "$work/plain/f" "$back/f"
		[ "$(stat -c '%a %Y' "$back/f")" = "604 $(stat -c %Y "$work/plain/f")" ]
		nothing_left
		"$plfs" run -m "$map" md5sum /plfs/f
		"$plfs" flatten "$back/f" | grep 'a plain file already'
		rm "$back/f" "$work/plain/f"
	done
}

flatten_elsewhere() {
	strided e
	"$plfs" flatten -o "$work/plain/copy" "$back/e"
	cmp "$work/plain/e" "$work/plain/copy"
	[ "$(stat -c %a "$work/plain/copy")" = 640 ]
	"$plfs" run -m "$map" cmp "$work/plain/e" /plfs/e
	echo old >"$work/plain/old"
	ln -s old "$work/plain/symlink"
	"$plfs" flatten -o "$work/plain/symlink" "$back/e" # through the link, as cp
	cmp "$work/plain/e" "$work/plain/old"
	[ -L "$work/plain/symlink" ]
	"$plfs" flatten -m "$map" -o /plfs/e2 /plfs/e # over a logical file: its container goes
	[ "$("$plfs" stat --json "$back/e2" | grep -c '"plain"')" = 1 ]
	"$plfs" run -m "$map" cp /plfs/e /plfs/e3
	"$plfs" flatten -m "$map" -o /plfs/e3 /plfs/e2
	cmp "$work/plain/e" "$back/e3"
	[ "$(find "$back/.plfs" -name 'data.*' | wc -l)" = 4 ]
	wrong 1 "same file" "$plfs" flatten -m "$map" -o "$back/e" /plfs/e
	wrong 1 "a directory" "$plfs" flatten -o "$work/plain" "$back/e"
	wrong 1 "No such file" "$plfs" flatten -o "$work/plain/no/such" "$back/e"
	wrong 2 "one file" "$plfs" flatten -o "$work/plain/x" "$back/e" "$back/e2"
	no_temporary_left
}

flatten_killed() {
	strided k kill
	"$plfs" flatten "$back/k"
	cmp "$work/plain/k" "$back/k"
	nothing_left
	[ -z "$(find "$back/.plfs" -name 'live.*')" ]
}

flatten_holes() {
	"$plfs" run -m "$map" sh -c 'truncate -s 1G /plfs/h; echo middle | dd of=/plfs/h bs=1M seek=500 conv=notrunc
		echo end >>/plfs/h; md5sum </plfs/h' >"$work/want"
	printf stranger | dd of="$back/h" bs=1 seek=$((4096 + 300000000)) conv=notrunc # the oldest layer
	"$plfs" flatten -m "$map" -o "$work/plain/h" /plfs/h
	[ "$(dd if="$work/plain/h" bs=1 skip=300000000 count=8 status=none)" = stranger ]
	[ "$(du -k "$work/plain/h" | cut -f 1)" -lt 100 ]
	"$plfs" run -m "$map" cmp /plfs/h "$work/plain/h"
}

# Whatever goes wrong, the file stays as it was.
flatten_wrong() {
	local log writer
	strided w
	unchanged() { "$plfs" run -m "$map" cmp "$work/plain/w" /plfs/w && no_temporary_left; }
	(ulimit -f 100; wrong 1 "File too large" "$plfs" flatten "$back/w")
	unchanged
	ln "$back/w" "$back/w2"
	wrong 1 "2 names" "$plfs" flatten "$back/w"
	rm "$back/w2"
	unchanged

	log=$(find "$back/.plfs" -name 'data.*' | head -n 1)
	mv "$log" "$work/log.kept"
	lines=2 wrong 1 "Input/output error" "$plfs" flatten "$back/w"
	mv "$work/log.kept" "$log"
	unchanged
	container=$("$plfs" stat "$back/w" | sed -n 's/^Container *//p')
	mv "$container" "$work/container.kept"
	! "$plfs" flatten "$back/w"
	mv "$work/container.kept" "$container"
	unchanged

	mkfifo "$work/stop"
	"$plfs" run -m "$map" "$bin/writer" /plfs/w 0 1 200 1000 wait <"$work/stop" >"$work/said" &
	writer=$!
	exec 9>"$work/stop"
	until grep -q written "$work/said"; do sleep 0.05; done
	wrong 1 "another process" "$plfs" flatten "$back/w"
	"$plfs" flatten -o "$work/plain/snapshot" "$back/w" 2>"$work/err"
	grep warning "$work/err"
	cmp "$work/plain/snapshot" "$work/plain/w"
	exec 9>&-
	wait $writer
	rm "$work/stop"
	"$plfs" flatten "$back/w"
	cmp "$work/plain/w" "$back/w"
	nothing_left
}

flatten_signal() {
	"$plfs" run -m "$map" sh -c 'head -c 300M /dev/zero >/plfs/big'
	"$plfs" flatten "$back/big" &
	until [ -n "$(find "$back" -name '.plfs-flatten*')" ]; do kill -0 $!; done
	kill -TERM $!
	! wait $!
	no_temporary_left
	[ -k "$back/big" ]
	"$plfs" flatten "$back/big"
	no_temporary_left
	[ ! -k "$back/big" ]
}
