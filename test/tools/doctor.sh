# SPDX-License-Identifier: BSD-3-Clause
# plfs doctor, sourced by run: what it says of sound and of sick directories; nothing is changed or left behind by it.

# doctor CODE [OPTION...] DIRECTORY: it ends with that code, and changes nothing; what it prints is in $work/got.
doctor() {
	local code=$1 rc=0 dir=${*: -1} before=
	shift
	before=$(find "$dir" -printf '%p %i %s %m %C@\n' 2>/dev/null | grep -v '/.plfs 4096\|^[^ ]*\(/.plfs\)\? ' | LC_ALL=C sort)
	find "$dir" 2>/dev/null | LC_ALL=C sort >"$work/names"
	"$plfs" doctor "$@" >"$work/got" 2>"$work/err" || rc=$?
	cat "$work/got" "$work/err"
	[ $rc = "$code" ] || { echo "exit code $rc, not $code"; return 1; }
	find "$dir" 2>/dev/null | LC_ALL=C sort | cmp - "$work/names"
	[ "$(find "$dir" -printf '%p %i %s %m %C@\n' 2>/dev/null | grep -v '/.plfs 4096\|^[^ ]*\(/.plfs\)\? ' | LC_ALL=C sort)" = "$before" ]
}

says() { # HEALTH ABOUT WORDS: one line says so
	grep -E "^$1 +$2 +" "$work/got" | grep -F -- "$3" || { echo "not said: $*"; return 1; }
}

doctor_sound() {
	doctor 0 "$back"
	says note backend 'none yet'
	grep -E "^$back on [a-z0-9]+: 0 problems, [0-9]+ notes?$" "$work/got"
	doctor 0 "$work/plain"
	strided f
	"$plfs" run -m "/plfs=$back" sh -c 'echo small >/plfs/g'
	echo plain >"$back/p"
	for name in "$back" "$back/" "$back/f"; do
		doctor 0 "$name"
		for about in owner format space 'sticky bit' locks 'shared maps' holes clock files orphans; do
			says ok "$about" ''
		done
		says ok files '2 logical and 1 plain'
		says ok orphans 'each of 1 containers'
	done
	doctor 0 -m "$map" /plfs
	under "$plfs" doctor "$back" | grep "^$back on"
	doctor 0 --quick "$back"
	! grep -E '^[a-zA-Z]+ +(files|orphans)' "$work/got" || return 1
	doctor 0 --json -j 2 "$back"
	python3 - "$work/got" "$back" <<-'END'
		import json, sys
		*found, end = [json.loads(line) for line in open(sys.argv[1])]
		assert all(f["backend"] == sys.argv[2] and f["health"] in ("ok", "note") and f["about"] and f["text"] for f in found), found
		assert {"locks", "clock", "orphans"} <= {f["about"] for f in found}
		assert end["backend"] == sys.argv[2] and end["problems"] == end["exit"] == 0 and end["file_system"] and end["mount_options"], end
	END
}

doctor_files() {
	strided f
	strided g
	strided h
	"$plfs" run -m "$map" sh -c 'echo x >/plfs/orphan; mkdir /plfs/run7'
	chmod 644 "$back/f" "$back/g"
	rm "$back/orphan"
	cp -p "$back/h" "$back/copy" && rm "$back/h"
	"$plfs" run -m "$back/run7{small=0}" sh -c "echo x >$back/run7/x" 2>/dev/null
	doctor 0 "$back"
	says note mark "$back/"
	says note mark ', and 1 more'
	says note moved "$back/copy"
	says note backend "$back/run7 is a backend of its own"
	says note orphans '1 more, younger than a day'
	grep -F "to do: plfs repair -r $back" "$work/got"
	doctor 0 "$back/run7"
	says note nested "lies in the backend $back:"
	# What it says to do does it.
	"$plfs" repair -r "$back" && "$plfs" gc -a 0 "$back"
	doctor 0 "$back"
	! grep -E '^note +(mark|moved|orphans)' "$work/got" || return 1
	rm "$(find "$back/.plfs" -name 'data.*' | head -1)"
	doctor 1 "$back"
	says PROBLEM damage "$back/"
	grep -F "to do: plfs check -r $back" "$work/got"
	doctor 1 --json "$back"
	tail -1 "$work/got" | grep '"problems": 1, .*"exit": 1}'
}

doctor_backend() {
	echo x >"$back/.plfs"
	doctor 1 "$back"
	says PROBLEM backend 'is no directory'
	ln -sf "$work" "$back/.plfs"
	doctor 1 "$back"
	says PROBLEM backend 'is no directory'
	rm "$back/.plfs"
	"$plfs" run -m "$map" sh -c 'echo x >/plfs/f'
	sed -i '/sentence/d' "$back/.plfs/format"
	doctor 0 "$back"
	says note format 'older libplfs'
	sed -i 1s/1/9/ "$back/.plfs/format"
	doctor 1 "$back"
	says PROBLEM format 'newer libplfs'
	echo x >"$back/.plfs/format"
	doctor 1 "$back"
	says PROBLEM format damaged
	rm "$back/.plfs/format"
	doctor 0 "$back"
	says note format 'the next write makes it'
	chmod 777 "$back"
	doctor 1 "$back"
	says PROBLEM owner 'is not sticky'
	"$plfs" init "$back"
	doctor 0 "$back"
	says ok owner 'mode 1777'
	rm -rf "$back/.plfs" "$back/f"
	doctor 1 "$back"
	says PROBLEM backend 'several users may write here'
	"$plfs" init "$back"
	doctor 0 "$back"
}

# What others keep for themselves is no problem of a user's.
doctor_as_another() {
	chmod 755 "$work" && chmod 1777 "$back" && cp "$plfs" "$work/plain/plfs"
	"$plfs" init "$back"
	"$plfs" run -m "$map" sh -c 'umask 077; seq 30000 >/plfs/f'
	plfs=$work/plain/plfs
	plfs_as() { setpriv --reuid 65534 --regid 65534 --clear-groups "$plfs" "$@"; }
	plfs_as doctor "$back" >"$work/got"
	cat "$work/got"
	says note unreadable "$back/f: Permission denied"
	says note orphans '1 containers could not be looked at'
	mkdir -m 755 "$back/roots"
	rc=0
	plfs_as doctor -m "$back/roots" "$back/roots" >"$work/got" || rc=$?
	cat "$work/got"
	[ $rc = 1 ] && says PROBLEM writing 'jobs of this user cannot write' && says note nested "lies in the backend $back"
}

# What no file system here lacks.
# By the type and the options of the mount: locks that count on one host.
doctor_mounts() {
	local line code health words todo
	while read -r line; do
		IFS='|' read -r SICK_MOUNT code health words todo <<<"$line"
		SICK_MOUNT=$SICK_MOUNT LD_PRELOAD=$bin/sick.so doctor "$code" --quick "$back" || return
		says "$health" locks "$words" || return
		[ -z "$todo" ] || grep -F "to do: $todo" "$work/got" || return
	done <<-'END'
		lustre rw,localflock|1|PROBLEM|count on this host only (lustre, mounted with localflock)|mount it with flock
		lustre rw,noflock|1|PROBLEM|mounted with noflock|mount it with flock
		lustre rw,flock|0|ok|they work|
		nfs4 rw,vers=4.2,local_lock=none|0|ok|they work|
		nfs rw,nolock|1|PROBLEM|count on this host only (nfs, mounted with nolock)|mount it without that option
		nfs rw,local_lock=posix|1|PROBLEM|mounted with local_lock=posix|mount it without that option
		beegfs rw,cfgFile=/etc/beegfs/beegfs-client.conf|0|note|unless its clients have tuneUseGlobalFileLocks|set tuneUseGlobalFileLocks
	END
}

doctor_sick() {
	local line health about words
	while read -r line; do
		IFS='|' read -r SICK health about words <<<"$line"
		SICK=$SICK LD_PRELOAD=$bin/sick.so doctor 1 --quick "$back" || return
		says "$health" "$about" "$words" || return
	done <<-'END'
		mark|PROBLEM|sticky bit|does not keep it
		locks|PROBLEM|locks|do not work (Function not implemented)
		weak|PROBLEM|locks|two processes got the same lock
		maps|PROBLEM|shared maps|they do not work
	END
	SICK=ahead LD_PRELOAD=$bin/sick.so doctor 0 --quick "$back"
	says note clock 'ms behind this host'
}

# File systems of all kinds, mounted where nobody else sees them.
on_disk() { # MKFS OPTIONS SCRIPT: doctor of $work/disk, after the script there
	rm -f "$work/image"; truncate -s 200M "$work/image"
	mkfs.$1 "$work/image" >/dev/null 2>&1 || mkfs.$1 -q -F "$work/image"
	disk "$work/image" "loop,$2" "$3"
}

disk() { # WHAT OPTIONS SCRIPT
	mkdir -p "$work/disk"
	export -f doctor says
	export work plfs
	unshare -m bash -e -c 'mount -o "$2" $4 "$1" "$work/disk"; cd "$work"; eval "$3"' - "$1" "$2" "$3" "$4"
}

doctor_disks() {
	on_disk ext4 noatime 'doctor 0 disk; says note "access times" noatime'
	on_disk ext4 relatime 'doctor 0 disk; says ok "access times" ""
		"$plfs" run -m "$work/disk{small=0}" sh -c "echo x >disk/f"; doctor 0 disk; says ok files "1 logical"
		dd if=/dev/zero of=disk/fill bs=1M status=none || true; doctor 1 disk; says PROBLEM space "are free"'
	on_disk ext4 ro 'doctor 1 disk; says PROBLEM writing "Read-only"'
	disk tmpfs size=1m 'doctor 1 disk; says PROBLEM space "are free"; says ok locks ""; says ok holes ""
		head -c 2M /dev/zero >disk/fill 2>/dev/null || true; doctor 1 disk' '-t tmpfs'
	disk tmpfs nr_inodes=3 'touch disk/a disk/b; doctor 1 disk; says PROBLEM writing "No space left"' '-t tmpfs'
}

doctor_vfat() {
	on_disk vfat rw 'doctor 1 disk; says PROBLEM "sticky bit" "does not keep it"; says note holes "keeps none"'
}

doctor_wrong() {
	wrong 2 "no directory given" "$plfs" doctor
	wrong 2 "more than one" "$plfs" doctor "$back" "$back"
	wrong 2 "from 1 to 64" "$plfs" doctor -j 0 "$back"
	wrong 2 "--frobnicate" "$plfs" doctor --frobnicate "$back"
	wrong 2 "$back/none: No such file" "$plfs" doctor "$back/none"
	wrong 2 "inside a container directory" sh -c "mkdir -p '$back/.plfs' && echo plfs-format 1 >'$back/.plfs/format' && '$plfs' doctor '$back/.plfs'"
	wrong 78 "create the directory" "$plfs" doctor -m "/plfs=$work/none" "$back"
}
