# SPDX-License-Identifier: BSD-3-Clause
# plfs compact, sourced by run: what it gives back and keeps, what it refuses, and what stat and du say of it.

log_bytes() { cat "$back"/.plfs/*/*/hostdir.*/data.* | wc -c; }

compact_whole() { # five runs that overwrite one checkpoint in place
	local i before
	for i in 1 2 3 4 5; do
		head -c 3000000 /dev/urandom >"$work/plain/w"
		"$plfs" run -m "$map" dd if="$work/plain/w" of=/plfs/w bs=100000 conv=notrunc status=none
	done
	[ "$(log_bytes)" -gt 15000000 ]
	"$plfs" stat "$back/w" | grep "plfs compact $back/w"
	"$plfs" du "$back/w" | grep 'plfs compact'
	"$plfs" du --json "$back/w" | python3 -c 'import json, sys; [json.loads(line) for line in sys.stdin]'
	"$plfs" compact -n "$back/w" | grep 'in 5 logs would become about .* in 1$'
	[ "$(log_bytes)" -gt 15000000 ]
	chmod 1604 "$back/w"
	touch -d 2020-02-02 "$back/w"
	before=$(stat -c '%a %U %Y %i %s' "$back/w")
	"$plfs" compact -m "$map" /plfs/w | grep 'in 5 logs became .* in 1$'
	[ "$(log_bytes)" -lt 3200000 ]
	[ "$(stat -c '%a %U %Y %i %s' "$back/w")" = "$before" ]
	"$plfs" run -m "$map" cmp "$work/plain/w" /plfs/w
	"$plfs" check "$back/w"
	"$plfs" compact "$back/w" | grep 'nothing to gain'
	! "$plfs" stat "$back/w" | grep "plfs compact" || return 1
}

written_over_and_over() { # five runs again, of a file that is large enough for their logs to go by themselves
	local i
	for i in 1 2 3 4 5; do
		head -c 20000000 /dev/urandom >"$work/plain/w"
		"$plfs" run -m "$map" dd if="$work/plain/w" of=/plfs/w bs=1000000 conv=notrunc status=none
		[ "$(log_bytes)" -lt 45000000 ]
		"$plfs" run -m "$map" cmp "$work/plain/w" /plfs/w
	done
	"$plfs" du "$back/w" | grep 'plfs compact'
	"$plfs" check "$back/w"
}

compact_parts() { # what is left of old runs is copied
	head -c 3000000 /dev/urandom >"$work/plain/p"
	"$plfs" run -m "$map" cp "$work/plain/p" /plfs/p
	for i in 3 7 11; do
		head -c 600000 /dev/urandom >"$work/part"
		dd if="$work/part" of="$work/plain/p" bs=100000 seek=$i conv=notrunc status=none
		"$plfs" run -m "$map" dd if="$work/part" of=/plfs/p bs=100000 seek=$i conv=notrunc status=none
	done
	truncate -s 2500000 "$work/plain/p"
	truncate -s 2900000 "$work/plain/p"
	"$plfs" run -m "$map" truncate -s 2500000 /plfs/p
	"$plfs" run -m "$map" truncate -s 2900000 /plfs/p
	"$plfs" compact "$back/p" | grep 'became'
	[ "$(log_bytes)" -lt 2700000 ]
	"$plfs" run -m "$map" cmp "$work/plain/p" /plfs/p
	"$plfs" check "$back/p"
	"$plfs" run -m "$map" dd if="$work/part" of=/plfs/p bs=100000 seek=1 conv=notrunc status=none
	dd if="$work/part" of="$work/plain/p" bs=100000 seek=1 conv=notrunc status=none
	"$plfs" run -m "$map" cmp "$work/plain/p" /plfs/p
}

compact_refused() {
	head -c 300000 /dev/urandom >"$work/plain/r"
	for _ in 1 2; do
		"$plfs" run -m "$map" dd if="$work/plain/r" of=/plfs/r bs=100000 conv=notrunc status=none
	done
	"$plfs" run -m "$map" sh -c 'exec 3<>/plfs/r; echo x >&3; echo ready; read _' \
		< <(sleep 0.1; while [ ! -e "$work/compact.go" ]; do sleep 0.1; done; echo) >"$work/compact.ready" &
	until grep -q ready "$work/compact.ready" 2>/dev/null; do sleep 0.05; done
	wrong 1 'is being written by process' "$plfs" compact "$back/r"
	touch "$work/compact.go"
	wait $!
	cp "$back/r" "$back/copy"
	wrong 1 'was copied or restored' "$plfs" compact "$back/copy"
	rm "$back/copy"
	echo plain >"$back/plain"
	"$plfs" compact "$back/plain" | grep 'nothing to gain: is a plain file'
	wrong 2 'no file given' "$plfs" compact
	"$plfs" compact --help | grep -q '^usage: plfs compact'
}

# A quota on btrfs counts what is written over, too.
compact_over_quota() {
	local disk=$work/quota map=/plfs=$work/quota/b{small=0} used
	mkdir "$disk"
	truncate -s 200M "$work/quota.image" && mkfs.btrfs -q "$work/quota.image"
	mount -o loop "$work/quota.image" "$disk" || { echo "no btrfs here"; exit 77; }
	trap 'umount -l "$disk"' EXIT
	btrfs quota enable "$disk" && btrfs -q subvolume create "$disk/b" || { echo "no quota here"; exit 77; }
	for _ in 1 2; do
		head -c 3000000 /dev/urandom >"$work/plain/q"
		"$plfs" run -m "$map" dd if="$work/plain/q" of=/plfs/q bs=100000 conv=notrunc status=none
	done
	sync -f "$disk"
	btrfs quota rescan -w "$disk" >/dev/null
	used=$(btrfs qgroup show --raw -f "$disk/b" | awk 'END { print $2 }')
	btrfs qgroup limit "$used" "$disk/b"
	wrong 1 'Disk quota exceeded' "$plfs" compact "$disk/b/q"
	btrfs quota disable "$disk"
	"$plfs" compact "$disk/b/q"
	"$plfs" run -m "$map" cmp /plfs/q "$work/plain/q"
	umount -l "$disk"
	trap - EXIT
}

compact_damaged() { # a bad chunk ends it, and nothing has changed
	local log
	head -c 3000000 /dev/urandom >"$work/plain/d"
	"$plfs" run -m "$map" cp "$work/plain/d" /plfs/d
	log=$(ls "$back"/.plfs/*/*/hostdir.*/data.*)
	"$plfs" run -m "$map" dd if="$work/plain/d" of=/plfs/d bs=100000 count=3 seek=20 conv=notrunc status=none
	printf garbage | dd of="$log" bs=1 seek=$((65536 + 1000000)) conv=notrunc status=none
	ls "$back"/.plfs/*/*/hostdir.*/data.* >"$work/before"
	wrong 1 'are not those that were written' "$plfs" compact "$back/d"
	ls "$back"/.plfs/*/*/hostdir.*/data.* | diff "$work/before" -
}

compact_unchecked() { # what a killed process left without checksums gets new ones, by a copy too
	"$plfs" run -m "$map" /usr/bin/python3 - <<-'EOF' || [ $? = 137 ]
	import os
	fd = os.open("/plfs/u", os.O_RDWR | os.O_CREAT, 0o644)
	os.write(fd, b"x" * 300000)
	for i in range(3000):
	    os.pwrite(fd, b"y" * 100, i * 7919 % 3000 * 200)
	os.fsync(fd)
	os.kill(os.getpid(), 9)
	EOF
	rm "$back"/.plfs/*/*/hostdir.*/live.*
	! "$plfs" check "$back/u" || return 1
	"$plfs" run -m "$map" cp /plfs/u /plfs/copy
	"$plfs" check "$back/copy"
	"$plfs" compact "$back/u" | grep 'became'
	"$plfs" check "$back/u"
	"$plfs" run -m "$map" cmp /plfs/u /plfs/copy
}
