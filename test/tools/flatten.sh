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
	mkdir "$work/plain/dir"
	"$plfs" flatten -o "$work/plain/dir" "$back/e" # into it, as cp
	cmp "$work/plain/e" "$work/plain/dir/e"
	wrong 1 "No such file" "$plfs" flatten -o "$work/plain/no/such" "$back/e"
	wrong 2 "one file" "$plfs" flatten -o "$work/plain/x" "$back/e" "$back/e2"
	no_temporary_left
}

# Several at once: into a directory, and all that is below one; the closing line adds them up.
flatten_many() {
	local name
	mkdir -p "$back/d/e" "$work/plain/d/e" "$work/plain/out"
	for name in d/a d/e/b c; do strided $name; done
	echo plain >"$back/d/p"
	"$plfs" flatten -o "$work/plain/out" "$back/d/a" "$back/c" >"$work/got"
	grep -E '^2 flattened, 390.6 KiB in .*; 0 plain already, 0 failed$' "$work/got"
	cmp "$work/plain/d/a" "$work/plain/out/a"
	cmp "$work/plain/c" "$work/plain/out/c"
	wrong 1 "a directory" "$plfs" flatten "$back/d"
	"$plfs" flatten -r "$back" >"$work/got"
	grep -E '^3 flattened, 585.9 KiB in .*; 1 plain already, 0 failed$' "$work/got"
	for name in d/a d/e/b c; do cmp "$work/plain/$name" "$back/$name"; done
	[ "$(cat "$back/d/p")" = plain ]
	nothing_left
	wrong 2 "cp -r" "$plfs" flatten -r -o "$work/plain/out" "$back"
	no_temporary_left
}

# The temporary file of a killed command goes with the next one; that of a running command stays, and so does one that
# has just changed, or that is no file.
# Killed at any moment, the same command again goes on; what is left, gc takes.
flatten_all_killed() {
	local call nr rc
	for call in fsync:1 fsync:2 fsync:3 fsync:6 renameat2:1 renameat2:3 renameat:1 renameat:2 unlinkat:1 unlinkat:2 unlinkat:4; do
		nr=${call#*:} call=${call%:*}
		rm -rf "$back/d" "$work/plain/d"
		mkdir -p "$back/d" "$work/plain/d"
		strided d/a
		strided d/b
		"$plfs" run -m "/plfs=$back" sh -c 'echo small >/plfs/d/s; echo plain >/plfs/d/p'
		rc=0
		strace -o /dev/null -e trace=$call -e inject=$call:signal=KILL:when=$nr "$plfs" flatten -r "$back" || rc=$?
		[ $rc = 137 ] || { echo "not killed at $call $nr: $rc"; return 1; }
		"$plfs" flatten -r "$back"
		cmp "$work/plain/d/a" "$back/d/a"
		cmp "$work/plain/d/b" "$back/d/b"
		[ "$(cat "$back/d/s" "$back/d/p")" = "small
plain" ]
		"$plfs" gc -a 0 "$back"
		nothing_left
		[ -z "$(find "$back" -name '.plfs-flatten.*')" ] || { echo "left at $call $nr"; return 1; }
	done
}

flatten_left() {
	local left=$work/plain/.plfs-flatten.0123456789abcde
	strided e
	echo left >"${left}0"
	echo running >"${left}1"
	echo young >"${left}2"
	mkdir "${left}3"
	touch -d '-1 hour' "$left"*
	touch "${left}2"
	python3 -c 'import fcntl, struct, sys, time
f = open(sys.argv[1], "r+")
fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
open(sys.argv[2], "w").close()
time.sleep(1000)' "${left}1" "$work/locked" & # F_OFD_SETLK
	until [ -e "$work/locked" ]; do sleep 0.05; done
	"$plfs" flatten -o "$work/plain/copy" "$back/e" || { kill $!; return 1; }
	kill $!
	cmp "$work/plain/e" "$work/plain/copy"
	[ ! -e "${left}0" ] && [ -e "${left}1" ] && [ -e "${left}2" ] && [ -d "${left}3" ]
	rm -r "$left"* "$work/locked"
}

flatten_killed() {
	strided k kill
	"$plfs" flatten "$back/k"
	cmp "$work/plain/k" "$back/k"
	nothing_left
	[ -z "$(find "$back/.plfs" -name 'live.*')" ]
}

flatten_holes() {
	"$plfs" run -m "$map" sh -c 'truncate -s 128M /plfs/h; echo middle | dd of=/plfs/h bs=1M seek=60 conv=notrunc
		echo end >>/plfs/h'
	printf stranger | dd of="$back/h" bs=1 seek=$((4096 + 30000000)) conv=notrunc # the oldest layer
	"$plfs" flatten -m "$map" -o "$work/plain/h" /plfs/h
	[ "$(dd if="$work/plain/h" bs=1 skip=30000000 count=8 status=none)" = stranger ]
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
	wrong 1 "the data log is missing" "$plfs" flatten "$back/w"
	mv "$work/log.kept" "$log"
	unchanged
	container=$("$plfs" stat "$back/w" | sed -n 's/^Container *//p')
	mv "$container" "$work/container.kept"
	! "$plfs" flatten "$back/w" || return 1
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
	! wait $! || return 1
	no_temporary_left
	[ -k "$back/big" ]
	"$plfs" flatten "$back/big"
	no_temporary_left
	[ ! -k "$back/big" ]
}

# Without any setting: a read, and a shared writable map, which would throw the checksums away.
read_damaged() {
	damaged_file f
	flip "$(first_log)" $((65536 + 1500))
	fingerprint | grep -v /notice >"$work/before" # readers are told to look again
	lines=2 wrong 1 "bytes 0 to 65535 are not those that were written" "$plfs" run -m "$map" cat /plfs/f
	wrong 5 "bytes 0 to 65535 are not those that were written" "$plfs" run -m "$map" python3 -c '
import mmap, os, sys
try:
    mmap.mmap(os.open("/plfs/f", os.O_RDWR), 4096)
except OSError as error:
    sys.exit(error.errno)'
	fingerprint | grep -v /notice | diff "$work/before" -
	PLFS_VERIFY=off "$plfs" run -m "$map" cat /plfs/f >"$work/plain/out"
	[ "$(cmp -l "$work/plain/f" "$work/plain/out" | wc -l)" = 1 ]
}

# The checksums go with the logs: so a copy without them has what they confirm, or says what it has not.
flatten_damaged() {
	damaged_file f
	flip "$(first_log)" $((65536 + 1500))
	fingerprint >"$work/before"
	wrong 1 "are not those that were written" "$plfs" flatten -m "$map" /plfs/f
	grep -E '^plfs: /plfs/f: \.plfs/.*/data\.[^ ]*: bytes 0 to 65535 are not .*; it stays as it is; .*--partial' "$work/err"
	wrong 1 "are not those that were written" "$plfs" flatten -o "$work/plain/out" "$back/f"
	wrong 1 "are not those that were written" "$plfs" flatten -m "/plfs=$back" -o /plfs/out "$back/f"
	[ ! -e "$work/plain/out" ] && [ ! -e "$back/out" ]
	no_temporary_left
	fingerprint | diff "$work/before" -
	lines=51 wrong 1 "are damaged, and copied as they are" "$plfs" flatten --partial -o "$work/plain/out" "$back/f"
	[ "$(cmp -l "$work/plain/f" "$work/plain/out" | wc -l)" = 1 ]
	mv "$(first_log)" "$work/log.kept"
	wrong 1 "the data log is missing" "$plfs" flatten "$back/f"
	lines=51 wrong 1 "are lost, and zeros in the copy" "$plfs" flatten -p "$back/f"
	no_temporary_left
	[ ! -k "$back/f" ]
	python3 - "$work/plain/f" "$back/f" <<-'END'
		import sys
		want, got = [open(name, "rb").read() for name in sys.argv[1:]]
		assert len(want) == len(got)
		bad = [i // 1000 for i in range(0, len(want), 1000) if want[i:i + 1000] != got[i:i + 1000]]
		assert bad == list(range(bad[0], 200, 4)), bad
		assert all(not any(got[i * 1000:i * 1000 + 1000]) for i in bad)
	END
}

# Copied without the library to where no backend is: a stub alone is not the file.
flatten_stray() {
	local copy how
	strided s
	mkdir "$work/arch"
	for copy in "cp $back/s" "cp -p $back/s" "install -m 600 $back/s" "rsync -t $back/s" "mv $back/s"; do
		$copy "$work/arch/s"
		cp -p "$work/arch/s" "$work/kept"
		wrong 1 "$work/arch/s is a stub; its data is in a backend, which this directory is not part of: plfs flatten -o $work/arch/s BACKEND/s" \
			"$plfs" flatten "$work/arch/s"
		how="plfs flatten -o $work/arch/s $back/s"
		[ -e "$back/s" ] || how="bring it back to where it was there, or to any place: mv $work/arch/s $back/s"
		wrong 1 "its data is in $back, which this directory is not part of: $how" \
			"$plfs" flatten -m "$map" "$work/arch/s"
		wrong 1 "is a stub" "$plfs" stat "$work/arch/s"
		wrong 1 "is a stub" "$plfs" flatten -o "$work/arch/x" "$work/arch/s"
		cmp "$work/arch/s" "$work/kept"
		[ ! -e "$work/arch/x" ]
		[ -e "$back/s" ] || mv "$work/arch/s" "$back/s"
		"$plfs" flatten -o "$work/arch/s" "$back/s" # as it says
		cmp "$work/arch/s" "$work/plain/s"
		"$plfs" flatten "$work/arch/s" | grep 'a plain file already'
		rm "$work/arch/s"
	done
	"$plfs" run -m "/plfs=$back" sh -c 'echo small >/plfs/small'
	cp "$back/small" "$work/arch/small"
	wrong 1 "its data is behind its first 4096 bytes: tail -c +4097 $work/arch/small >FILE" "$plfs" flatten "$work/arch/small"
	[ "$(tail -c +4097 "$work/arch/small")" = small ]
}
