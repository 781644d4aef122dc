# SPDX-License-Identifier: BSD-3-Clause
# What people do to a backend without the library, by habit: chmod, copy, move, archive, write over. Under the library the files
# have the bytes that a plain directory has after the same commands, or give EIO with a line that names them (plfs-habits.7).
. "$HERE/alone.bash"

# Each case with a virtual prefix and in place, with all files in logs and with small ones in their stubs. With
# PLFS_TEST_SPARSE (make check) two of these four, which have both of each: others for another case.
_mapped() { # FUNCTION
	local how nr=0 turn=$((${#FUNCNAME[1]} + ${PLFS_TEST_TURN:-0}))
	for how in virtual inplace; do
		for small in '{small=0}' ''; do
			nr=$((nr + 1))
			[ "${PLFS_TEST_SPARSE:-1}" = 1 ] || [ $(((turn + nr + (nr - 1) / 2) % 2)) = 0 ] || continue
			rm -rf "${B:?}" "$W/plain" "$W/there" "$W/empty"
			mkdir "$B" "$W/plain"
			P=$B MAP=$B$small
			[ $how = inplace ] || { P=$PFX MAP=$PFX=$MAP; }
			echo "--- $MAP"
			"$1"
		done
	done
}

# The same files below the library and in a plain directory.
_files() {
	local script='mkdir d; seq 1 30000 >big; seq 1 20 >small; : >empty; seq 1 3000 >d/cut; seq 1 500 >d/cut; seq 1 9000 >d/file'
	_under sh -c "cd $P && $script"
	[ $rc = 0 ] || _fail "making the files"
	(cd "$W/plain" && sh -c "$script")
}

# NAME is as the plain file of that name, or gives an error and a line that names it. With "same" or "opened" an error is none;
# with "opened" or "either" the size is asked for after an open.
_agrees() { # NAME [same|opened|either]
	local size
	_under stat -c %s "$P/$1" >"$W/out" 2>"$W/err2"
	size=$(cat "$W/out")
	[[ $2 != opened && $2 != either ]] || {
		_under head -c 0 "$P/$1" >"$W/out"
		_under stat -c %s "$P/$1" >"$W/out"
		size=$(cat "$W/out")
	} 2>"$W/err2"
	_under cat "$P/$1" >"$W/out" 2>"$W/err2"
	if [ $rc = 0 ]; then
		cmp "$W/out" "$W/plain/$1" || _fail "$1: other bytes${2+ ($2)}: $(head -c 200 "$W/out" | tr '\0' .)"
		_is "$1: its size" "$size" "$(stat -c %s "$W/plain/$1")"
		return
	fi
	[[ $2 != same && $2 != opened ]] || _fail "$1: cannot be read: $(cat "$W/err")"
	grep -q 'Input/output error' "$W/err" && grep '^libplfs' "$W/err" | grep -q "${1##*/}" || _fail "$1: a clear error: $(cat "$W/err")"
	[ ! -s "$W/out" ] || _fail "$1: bytes before the error: $(head -c 200 "$W/out" | tr '\0' .)"
}

_all_agree() { # [same|opened|either]
	local name
	while read -r name; do
		_agrees "$name" "$@"
	done < <(cd "$W/plain" && find . -type f -printf '%P\n')
}

_is_marked() { # NAME...
	local name
	for name; do
		[ -k "$B/$name" ] || _fail "$name has its mark"
	done
}

_checked() { # WORDS: plfs check -r prints them; 0 damaged
	"$BUILD/plfs" check -r "$B" >"$W/check" 2>&1 || _fail "check: $(cat "$W/check")"
	grep -qF -- "$1" "$W/check" || _fail "check does not say '$1': $(cat "$W/check")"
}

# ---- the mark is gone ----

_without_mark() {
	[ -z "$SANITIZED" ] || _skip "not under the sanitizer, which ends dd"
	_files
	chmod 644 "$B"/* "$B"/d/* 2>/dev/null; chmod 755 "$B/d"
	[ ! -k "$B/big" ] || _fail "chmod takes it away"
	_checked 'mark of a stub'
	[ ! -k "$B/big" ] || _fail "check changes nothing"
	"$BUILD/plfs" gc -a 0 "$B" >/dev/null || _fail "gc"
	_all_agree same
	_is_marked big small d/file
	# Each first use by itself.
	local use
	for use in 'cat big' 'tail -c 5 big' 'ls -l big | cut -d " " -f 5' 'stat -L -c %s big' 'wc -c <big' 'find . -name big -size +160k' \
		'echo more >>big; cat big' 'printf XYZ | dd of=big bs=1 seek=3 conv=notrunc status=none; cat big' 'echo anew >big; cat big' \
		'truncate -s 7 big; cat big' 'truncate -s 500000 big; md5sum <big' 'cp big x; cat x; rm x' 'mv big x; cat x; mv x big' \
		'ln big x; cat x; rm x' 'ln -s big x; cat x; rm x' 'tar cf - big | md5sum >/dev/null; tar cf - big | tar xOf -' \
		'python3 -c "import os, mmap; f = open(\"big\", \"r+b\"); m = mmap.mmap(f.fileno(), 0); m[1:3] = b\"##\"; m.flush()"; cat big' \
		'sed -i s/9/8/ big; cat big' 'exec 3<>big; read x <&3; echo $x; cat <&3' 'chmod 600 big; cat big' 'echo x >y; mv y big; cat big'; do
		(cd "$W/plain" && rm -f big x && seq 1 30000 >big && sh -c "$use" >"$W/want")
		_under sh -c "cd $P; rm -f big x; seq 1 30000 >big"
		chmod 644 "$B/big"
		_under sh -c "cd $P; $use" >"$W/out"
		cmp "$W/want" "$W/out" || _fail "$use: $(head -c 200 "$W/out" | tr '\0' .)"
	done
	chmod 644 "$B"/* "$B"/d/* 2>/dev/null; chmod 755 "$B/d"
	_under sh -c "rm -r $P/*"
	"$BUILD/plfs" gc -a 0 "$B" >/dev/null || _fail "gc"
	[ -z "$(find "$B" -type f ! -path '*/.plfs/format' ! -path '*/.plfs/writers.*')" ] || _fail "left behind: $(find "$B" -type f)"
}
mark_taken_away() { _mapped _without_mark; }

_repaired() {
	_files
	chmod 644 "$B/big"
	"$BUILD/plfs" repair -r "$B" >"$W/out" || _fail "repair: $(cat "$W/out")"
	_is_marked big
	chmod 644 "$B/big"
	_under "$BUILD/plfs" flatten "$P/big" >"$W/out"
	cmp "$B/big" "$W/plain/big" || _fail "flattened"
}
mark_repaired_and_flattened() { _mapped _repaired; }

# Who may not change the mode reads and sees the file all the same.
_without_mark_as_another() {
	_files
	chmod 644 "$B"/* "$B"/d/* 2>/dev/null; chmod 755 "$B" "$B/d"
	chmod -R a+rX "$B"
	_user cat "$P/big" >"$W/out"
	cmp "$W/out" "$W/plain/big" || _fail "big: $(cat "$W/err")"
	_user sh -c "stat -c %s $P/big; stat -c %s $P/big; wc -c <$P/big" >"$W/out"
	_is "its size" "$(sort -u "$W/out")" "$(stat -c %s "$W/plain/big")"
	_user cat "$P/small" >"$W/out"
	cmp "$W/out" "$W/plain/small" || _fail "small: $(cat "$W/err")"
	chmod 666 "$B/big"
	chmod -R a+rwX "$B/.plfs"
	_user sh -c "echo more >>$P/big" && echo more >>"$W/plain/big"
	_user cat "$P/big" >"$W/out"
	[ $rc != 0 ] || cmp "$W/out" "$W/plain/big" || _fail "appended to: $(cat "$W/err")"
}
mark_taken_away_seen_by_another() {
	_need_root
	_mapped _without_mark_as_another
}

# A whole backend, copied with its .plfs by what keeps no mark.
_copied() {
	local copy
	for copy in 'cp -r back/. there' 'rsync -rt back/ there' 'tar cf x.tar -C back . && tar xf x.tar --no-same-permissions -C there' \
		'(cd back && zip -qr ../x.zip .) && (cd there && unzip -q ../x.zip)' 'cp -a back/. there' \
		'(cd back && find . | cpio -o --quiet) | (cd there && cpio -id --quiet)' 'cp -r --sparse=never back/. there' \
		'cp -r back/. there; chmod -R u+rwX,go+rX there'; do
		# shellcheck disable=SC2001 # no pattern of bash's does it
		command -v "$(sed 's/.*\(zip\|cpio\|rsync\|tar\|cp\) .*/\1/' <<<"$copy")" >/dev/null || continue
		rm -rf "$W/there" "$W/plain" "$W/x.tar" "$W/x.zip" "${B:?}"/* "$B/.plfs"
		mkdir "$W/there" "$W/plain"
		_files
		(cd "$W" && umask 077 && sh -c "$copy") || _fail "$copy"
		(
			P=$W/there
			[ "${MAP%%=*}" = "$MAP" ] || P=$PFX
			B=$W/there
			MAP=$B$small
			[ "$P" = "$B" ] || MAP=$P=$MAP
			echo "$copy"
			_all_agree same
			_checked '0 damaged'
			_under sh -c "echo more >>$P/big"
			echo more >>"$W/plain/big"
			_all_agree same
		) || exit
	done
}
backend_copied_without_marks() { _mapped _copied; }

# ---- another directory has its name ----

# While a program runs. What it writes then is read by others, in whichever of the two it is.
_exchange_backend() {
	local dir name
	cat >"$W/goes_on.py" <<-'END'
		import os, sys
		top, ready = sys.argv[1:]
		def write(name, last):
		    fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
		    os.pwrite(fd, (os.path.basename(name) + "\n").encode() * 20000, 0)
		    if last:
		        os.close(fd)
		    return fd
		os.chdir(top)
		os.chdir("..")
		below = os.path.basename(top) + "/"
		held = write(top + "/held", False)
		write(top + "/before", True)
		open(ready, "w").close()
		sys.stdin.readline()
		os.pwrite(held, b"more\n", 100000)
		os.close(held)
		write(below + "relative", True)
		write(top + "/absolute", True)
		fd = os.open(below + "there", os.O_RDWR)
		os.pwrite(fd, b"more\n", 120000)
		os.fsync(fd)
		os.close(fd)
		os.unlink(below + "gone")
		os.chdir(top)
		write("inside", True)
	END
	for name in held before relative absolute there inside; do
		yes $name | head -n 20000 >"$W/want.$name"
	done
	echo more | tee >(cat >>"$W/want.held") >>"$W/want.there"
	rm -f "$W/ready"
	[ -p "$W/go" ] || mkfifo "$W/go"
	_under timeout 60 python3 "$W/goes_on.py" "$B" "$W/ready" <"$W/go" &
	exec 7>"$W/go"
	until [ -e "$W/ready" ] || ! kill -0 $! 2>/dev/null; do sleep .01; done
	mv "$B" "$B.old"
	mkdir "$B"
	_under sh -c "yes there | head -n 20000 >$B/there; cp $B/there $B/gone"
	exec 7>&-
	wait $!
	for dir in "$B" "$B.old"; do
		for name in held before relative absolute there inside; do
			[ -e "$dir/$name" ] || continue
			MAP="$dir$small" _under cat "$dir/$name" >"$W/out"
			cmp "$W/out" "$W/want.$name" || _fail "${dir##*/}/$name: $rc, $(cat "$W/err")"
		done
	done
	for name in there relative inside; do
		[ -e "$B/$name" ] || _fail "$name"
	done
	[ ! -e "$B/gone" ] || _fail "it is removed"
	"$BUILD/plfs" gc -n -a 0 "$B" >"$W/out" || _fail "gc: $(cat "$W/out")"
	rm -rf "$B.old"
}
exchanged_while_a_program_runs() {
	local small
	for small in '{small=0}' '{small=0,near=$W/near}'; do
		rm -rf "${B:?}"
		mkdir "$B"
		MAP=$B$small
		_exchange_backend
	done
}

# Another file system is mounted there while a program runs. A stub in it is one, by a relative name.
_mount_over_backend() {
	cat >"$W/mounted.py" <<-'END'
		import os, sys
		top, ready = sys.argv[1:]
		os.chdir(os.path.dirname(top))
		below = os.path.basename(top) + "/"
		open(below + "before", "w").close()
		open(ready, "w").close()
		sys.stdin.readline()
		size = os.stat(below + "there").st_size
		fd = os.open(below + "there", os.O_RDWR)
		print(size, os.fstat(fd).st_size, os.pread(fd, 100, 0))
		os.pwrite(fd, b"THERE", 0)
		os.close(fd)
		with open(below + "made", "w") as f:
		    f.write("made\n")
	END
	rm -f "$W/ready"
	[ -p "$W/go" ] || mkfifo "$W/go"
	_under timeout 60 python3 "$W/mounted.py" "$B" "$W/ready" <"$W/go" >"$W/said" &
	exec 7>"$W/go"
	until [ -e "$W/ready" ] || ! kill -0 $! 2>/dev/null; do sleep .01; done
	mount -t tmpfs none "$B" || exit 77
	_under sh -c "echo there it is >$B/there"
	exec 7>&-
	wait $!
	[ "$(cat "$W/said")" = "12 12 b'there it is\\n'" ] || _fail "$(cat "$W/said" "$W/err")"
	_under cat "$B/there" "$B/made" >"$W/out"
	[ "$(cat "$W/out")" = $'THERE it is\nmade' ] || _fail "$(cat "$W/out" "$W/err")"
	umount -l "$B"
}
mounted_over_while_a_program_runs() {
	unshare -m true 2>/dev/null || _skip "cannot unshare the mounts"
	command -v python3 >/dev/null || _skip "needs python3"
	MAP="$B{small=0}"
	export B PFX PRE W MAP
	unshare -m bash -c '. "$HERE/habits.bash"; _mount_over_backend'
}

# ---- a run without the library ----

# The stub is written anew, and keeps its mark: it is a plain file, and says so once. What the library had of it is an orphan.
_written_anew() {
	local nr
	_files
	for write in 'seq 1 44444 >big; seq 1 3 >small; seq 1 5 >empty; head -c 5000 /dev/zero | tr "\\0" x >d/file; seq 1 9000 >d/cut' \
		'cp d/file big; cp big small; cp small empty' 'head -c 20000 /dev/zero >x; seq 1 9999 >>x; cp x d/cut; rm x; seq 1 4 >>d/cut'; do
		(cd "$B" && sh -c "$write")
		(cd "$W/plain" && sh -c "$write")
	done
}
_run_without() {
	_written_anew
	_checked 'is a plain file with the mark of a stub'
	_under cat "$P/big" "$P/big" >"$W/out"
	_is "lines" "$(grep -c '^libplfs.*/big: a program without libplfs has written it anew' "$W/err")" 1
	_all_agree opened
	[ ! -k "$B/big" ] || _fail "the mark is off"
	"$BUILD/plfs" gc -a 0 "$B" >"$W/out" || _fail "gc: $(cat "$W/out")"
	[ -z "$(find "$B/.plfs" -name 'data.*')" ] || _fail "the old container is an orphan"
	_under sh -c "cd $P; echo more >>big; echo anew >d/file; printf XX | dd of=d/cut bs=1 seek=3 conv=notrunc status=none"
	(cd "$W/plain"; echo more >>big; echo anew >d/file; printf XX | dd of=d/cut bs=1 seek=3 conv=notrunc status=none)
	_all_agree opened
}
written_anew_without_the_library() { _mapped _run_without; }

# Before anybody opens it, gc knows it; and by a program that only writes.
_run_without_then() {
	[ -z "$SANITIZED" ] || _skip "not under the sanitizer, which ends dd"
	_written_anew
	"$BUILD/plfs" gc -a 0 "$B" >"$W/out" || _fail "gc: $(cat "$W/out")"
	[ -z "$(find "$B/.plfs" -name 'data.*')" ] || _fail "the old container is an orphan"
	_under sh -c "cd $P; printf XX | dd of=d/cut bs=1 seek=3 conv=notrunc status=none; echo more >>big; truncate -s 4 small"
	(cd "$W/plain"; printf XX | dd of=d/cut bs=1 seek=3 conv=notrunc status=none; echo more >>big; truncate -s 4 small)
	_all_agree opened
}
written_anew_and_collected() { _mapped _run_without_then; }

# In place the sizes are right before anything is opened.
_sizes() {
	_written_anew
	[ "$P" = "$B" ] || return
	_under sh -c "cd $P; find . -name .plfs -prune -o -type f -printf '%p %s\n'" >"$W/out"
	cmp <(sort "$W/out") <(cd "$W/plain"; find . -type f -printf '%p %s\n' | sort) || _fail "sizes: $(cat "$W/out")"
}
sizes_of_what_was_written_anew() { _mapped _sizes; }

# While a program has it open under the library. What that writes to it, syncs or cuts changes nothing of the new file.
_write_meanwhile() {
	local after anew
	cat >"$W/open.py" <<-'END'
		import os, sys
		name, before, after, ready = sys.argv[1:]
		fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
		os.pwrite(fd, b"o" * 100000, 0)
		acts = {
		    "write": lambda: os.pwrite(fd, b"w" * 10, 50), "far": lambda: os.pwrite(fd, b"w" * 10, 200000),
		    "sync": lambda: os.fsync(fd), "cut": lambda: os.ftruncate(fd, 10), "grow": lambda: os.ftruncate(fd, 300000),
		    "empty": lambda: os.ftruncate(fd, 0), "nothing": lambda: 0,
		}
		acts[before]()
		open(ready, "w").close()
		sys.stdin.readline()
		try:
		    acts[after]()
		except OSError:
		    pass
		os.close(fd)
	END
	mkfifo "$W/go"
	for anew in 3 50000 250000; do
		seq 1 99999 | head -c $anew >"$W/new"
		for after in 'nothing nothing' 'sync nothing' 'nothing write' 'sync write' 'sync far' 'nothing sync' 'sync sync' 'sync cut' \
			'sync grow' 'sync empty'; do
			rm -f "$B/f" "$W/ready"
			_under timeout 60 python3 "$W/open.py" "$P/f" $after "$W/ready" <"$W/go" &
			exec 7>"$W/go"
			until [ -e "$W/ready" ] || ! kill -0 $! 2>/dev/null; do sleep .01; done
			cp "$W/new" "$B/f"
			exec 7>&-
			wait $! || _fail "$after: the program"
			cmp "$B/f" "$W/new" || _fail "$anew bytes, then $after: other bytes: $(head -c 30 "$B/f" | tr '\0' .)"
			_under cat "$P/f" >"$W/out"
			cmp "$W/out" "$W/new" || _fail "$anew bytes, then $after: read as $(head -c 30 "$W/out" | tr '\0' .)"
		done
	done
	rm -f "$W/go" "$B/f"
}
written_anew_while_it_is_open() { _mapped _write_meanwhile; }

# Bits of the header are lost: that is damage, and what belongs to it stays.
_damaged_header() {
	local seek byte
	for seek in 0 7 12 16 30 127; do
		_files
		byte=$(od -An -tu1 -j$seek -N1 "$B/big")
		# shellcheck disable=SC2059 # the format is the byte
		printf "\\x$(printf %x $((byte ^ 255)))" | dd of="$B/big" bs=1 seek=$seek conv=notrunc status=none
		_agrees big
		[ $rc != 0 ] || [ $seek = 16 ] || _fail "byte $seek: an error"
		"$BUILD/plfs" gc -a 0 "$B" >"$W/out" 2>&1
		printf x | dd of="$B/big" bs=128 conv=notrunc status=none
		[ "$(find "$B/.plfs" -name 'data.*')" ] || _fail "byte $seek: its log stays"
		_under rm -r $P/big $P/small $P/empty $P/d
		rm -rf "$W"/plain/*
	done
	_files
	head -c 512 /dev/zero | dd of="$B/big" conv=notrunc status=none
	_agrees big
	[ $rc != 0 ] && [ -k "$B/big" ] || _fail "a header of zeros: an error, and the mark stays"
	rm "$B/small" "$B"/d/*
	! "$BUILD/plfs" gc -a 0 "$B" >"$W/out" 2>&1 && [ "$(find "$B/.plfs" -name 'data.*')" ] || _fail "its log stays: $(cat "$W/out")"
	! "$BUILD/plfs" check "$B/big" >"$W/out" || _fail "check: $(cat "$W/out")"
}
damaged_header_is_no_plain_file() { _mapped _damaged_header; }

# Bytes of a program that does not have the library, through a descriptor of one that has: the stub's header says nothing of them.
_inherited() {
	local script='env -u LD_PRELOAD seq 1 2000 >c; dd if=/dev/null of=c conv=notrunc,fsync count=0 status=none; env -u LD_PRELOAD seq 1 9 >>c'
	_under sh -c "cd $P && $script"
	(cd "$W/plain" && sh -c "$script")
	_agrees c same
	_under head -c 100 "$P/c" >"$W/out"
	_agrees c same
	_is mark "$([ -k "$B/c" ] && echo kept)" kept
}
written_through_a_descriptor() { _mapped _inherited; }

# Nobody opens and closes a plain file behind the program's back: its record locks would go, those of before an exec too.
_locked() {
	command -v python3 >/dev/null || _skip "needs python3"
	seq 1 3000 >"$B/plain"
	cat >"$W/lock.py" <<-'END'
		import fcntl, os, sys
		path, step = sys.argv[1:]
		if step == "begin":
		    fd = os.open(path, os.O_RDWR)
		    fcntl.lockf(fd, fcntl.LOCK_EX)
		    os.set_inheritable(fd, True)
		    os.execv(sys.executable, [sys.executable, sys.argv[0], path, str(fd)])
		os.pwrite(int(step), b"x", 0)
		os.stat(path)
		os.close(os.open(path + ".other", os.O_RDWR | os.O_CREAT, 0o644))
		if os.fork() == 0:
		    try:
		        fcntl.lockf(os.open(f"/proc/self/fd/{step}", os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)
		        print("no lock", flush=True)
		    except OSError:
		        print("locked", flush=True)
		    os._exit(0)
		os.wait()
	END
	_under "$(python3 -c 'import sys; print(sys.executable)')" "$W/lock.py" "$P/plain" begin >"$W/out"
	_is "the lock" "$(cat "$W/out")" locked
}
locks_on_plain_files() { _mapped _locked; }

# ---- every command ----

# After each command without the library, in a directory of stubs of its own: each file is as in a plain directory after the same
# command, or gives an error and a line that names it. "same": no errors; "either": errors, and sizes are asked for after an open.
# (plfs-habits.7 has the table.) One process looks at all files.
_every_command() { # same|either
	command -v python3 >/dev/null || _skip "needs python3"
	[ -z "$SANITIZED" ] || _skip "under the sanitizer it takes a minute more"
	local command nr=0 commands=() script='touch -d "2 days ago" big small'
	mapfile -t commands
	_under sh -c 'cd "$0" && for i in $(seq 0 "$1"); do mkdir $i && (cd $i; mkdir d; seq 1 9000 >big; seq 1 20 >small; : >empty
		seq 1 3000 >d/cut; seq 1 500 >d/cut; seq 1 4000 >d/file); done' "$P" $((${#commands[@]} - 1))
	(cd "$W/plain" && for nr in "${!commands[@]}"; do mkdir $nr && (cd $nr; mkdir d; seq 1 9000 >big; seq 1 20 >small; : >empty
		seq 1 3000 >d/cut; seq 1 500 >d/cut; seq 1 4000 >d/file); done)
	for nr in "${!commands[@]}"; do
		(cd "$B/$nr" && eval "$script; ${commands[$nr]}")
		(cd "$W/plain/$nr" && eval "$script; ${commands[$nr]}")
		# one that fails, or knows the files as stubs, is no test
	done >"$W/said" 2>&1
	_looks "$1" "${commands[@]}"
	"$BUILD/plfs" gc -a 0 "$B" >"$W/said" 2>&1
	_looks "$1" "${commands[@]}"
}

_looks() { # same|either COMMAND...
	_under python3 -c '
import os, sys
root, plain, how, commands = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
for top, dirs, files in os.walk(plain):
    for name in files:
        path = os.path.join(top, name)
        rel = os.path.relpath(path, plain)
        here = os.path.join(root, rel)
        command = commands[int(rel.split("/")[0])]
        if not os.path.exists(path):
            continue
        want = open(path, "rb").read()
        try:
            size = os.stat(here).st_size if how == "same" else -1
            with open(here, "rb") as f:
                got = f.read()
            if size < 0:
                size = os.stat(here).st_size
        except OSError as e:
            if how == "same" or e.errno != 5:
                print("wrong: %s: %s: %s" % (command, rel, e))
            else:
                print("error: " + rel)
            continue
        if got != want or size != len(want):
            print("wrong: %s: %s: %d bytes, size %d, not %d; begins with %r" % (command, rel, len(got), size, len(want), got[:40]))
	' "$P" "$W/plain" "$@" >"$W/out"
	[ $rc = 0 ] || _fail "looking: $(cat "$W/err")"
	! grep -q '^wrong' "$W/out" || _fail "$(grep -c '^wrong' "$W/out") of them: $(grep '^wrong' "$W/out")"
	local path
	while read -r path; do
		grep '^libplfs' "$W/err" | grep -qF "/$path: " || _fail "a line names $path: $(cat "$W/err")"
	done < <(sed -n 's/^error: //p' "$W/out")
}

_keeping() {
	_every_command same <<'COMMANDS'
chmod 600 big small
chmod 0644 big small empty d/file
chmod -R u+rwX,go+rX big small d
chmod a+x big
chmod u+s,g+s big small
chown 0:0 big small
chgrp 0 big
touch big small
touch -d 2001-01-01 big small
touch -r d/file big
truncate -s 0 empty
mv big b2 && mv b2 big
mv big d/big; mv small d
mv d e; mv e/file f
mv -f small big
mv d/file empty
ln big b2
ln big b2 && rm big && mv b2 big
ln -s big b2
ln -f small big
ln -sf small big
cp big b2
cp -p big b2
cp -a big small d
cp -r d e
cp -a d e
cp --reflink=auto big b2
cp --sparse=always big b2
cp --sparse=never big b2
cp -l big b2
cp -s "$PWD/big" b2
install big b2
install -m 600 -p big b2
cat big >b2
cat <big >b2
dd if=big of=b2 status=none
dd if=big of=b2 bs=4096 conv=sparse status=none
tar cf x.tar big small d && rm -r big small d && tar xf x.tar && rm x.tar
tar cf x.tar big small d && rm -r big small d && tar xf x.tar --no-same-permissions && rm x.tar
tar cSf x.tar big d && rm -r big d && tar xpf x.tar && rm x.tar
mkdir e && tar cf - big small | tar xf - -C e
find big small d | cpio -o --quiet >x.cpio && rm -r big small d && cpio -id --quiet <x.cpio && rm x.cpio
mkdir e && find big d | cpio -pdm --quiet e
rsync -a big b2
rsync -rt d/ e
rsync -aS d/ e
rsync -a --inplace big d/file
zip -qr x.zip big small d && rm -r big small d && unzip -q x.zip && rm x.zip
gzip big small && gunzip big.gz small.gz
gzip -c big | gzip -dc >b2
xz big && unxz big.xz
cp big b2 && mv b2 big
cp -p big b2 && rm big && mv b2 big
setfattr -n user.a -v b big
setfacl -m u:1:r big; setfacl -b big
chattr +i big; chattr -i big
sync big
fallocate -n -l 1 empty
rm -f big
rm -r d
COMMANDS
}
commands_that_keep_the_bytes() { _mapped _keeping; }

# What a tape has is not brought back by ls: such a file has no blocks, or one.
a_stat_opens_no_file_without_blocks() {
	truncate -s 100000 "$B/tape"
	seq 1 9000 >"$B/plain"
	chmod 644 "$B/tape" "$B/plain"
	cat >"$W/watch.py" <<'PYTHON'
import ctypes, os, struct, subprocess, sys
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(os.O_NONBLOCK)
libc.inotify_add_watch(fd, sys.argv[1].encode(), 0x20)  # IN_OPEN
subprocess.run(sys.argv[2:], check=True, stdout=subprocess.DEVNULL)
try:
    events = os.read(fd, 65536)
except BlockingIOError:
    events = b""
while events:
    size = struct.unpack_from("iIII", events)[3]
    print(events[16:16 + size].rstrip(b"\0").decode())
    events = events[16 + size:]
PYTHON
	P=$PFX MAP=$PFX=$B
	python3 "$W/watch.py" "$B" env LD_PRELOAD="$PRE" PLFS_MAP="$MAP" stat "$P/tape" "$P/plain" >"$W/opened"
	_is "files that a stat opens" "$(sort -u "$W/opened" | tr '\n' ' ')" "plain "
}

# These write into stubs, with what they see of them or with something else: the new bytes, or an error.
_writing() {
	_every_command either <<'COMMANDS'
echo anew >big; echo anew >small; echo anew >empty; echo anew >d/file
seq 1 5000 >big; seq 1 5000 >small; seq 1 5000 >empty
echo more >>big; echo more >>d/file
head -c 9000 /dev/zero >big
head -c 200 /dev/zero >small; seq 1 900 >>small
printf X | dd of=big bs=1 conv=notrunc status=none
printf XYZ | dd of=small bs=1 seek=2 conv=notrunc status=none
head -c 128 /dev/urandom | dd of=big conv=notrunc status=none
head -c 512 /dev/urandom | dd of=big conv=notrunc status=none
truncate -s 0 big small
truncate -s 100 big
truncate -s 4 big
cp d/file big
cp small big; cp small d/file
cp big small
cp empty big
seq 7 >f; cp f big; mv f small
seq 1 7000 >f; install f big; cp -p f small
seq 1 7000 >f; rsync -a f big
seq 1 7000 >f; rsync --inplace f big
seq 1 7000 >f; dd if=f of=big status=none
seq 1 7000 >f; cat f >big
seq 1 7000 | tee big small >/dev/null
cp /bin/true big; cp /bin/true small
cp --remove-destination small big
COMMANDS
}
commands_that_write() { _mapped _writing; }

# ---- the mapped directory itself: a mount point, that a rename does not move ----

# Under the library the command says EBUSY, and all is where it was.
_is_busy() { # COMMAND...
	_under "$@" >"$W/out"
	[ $rc != 0 ] || _fail "$*: exit code 0"
	grep -q 'Device or resource busy' "$W/err" || _fail "$*: $(cat "$W/err")"
	[ -f "$B/d/f" ] && [ -d "$W/empty" ] && [ -z "$(find "$W" -name '*.old'; ls "$W/empty")" ] || _fail "$*: something was moved"
	_under cmp "$P/d/f" "$W/plain/f"
	_is "$*: the bytes" $rc 0
}

_renaming_the_root() {
	local name
	mkdir "$B/d" "$W/empty"
	seq 1 30000 >"$W/plain/f"
	_under sh -c "seq 1 30000 >$P/d/f"
	for name in "$P" "$B"; do
		_is_busy mv "$name" "$name.old"
		_is_busy mv "$name/" "$W/empty/back"
		_is_busy mv -T "$W/empty" "$name"
		_is_busy mv -T "$W" "$W.old"
		_is_busy sh -c "cd $W && exec mv -T ../${W##*/} ../w.old"
		_is_busy python3 -c 'import os, sys; os.rename(sys.argv[1], sys.argv[2])' "$name" "$W/empty"
	done
	# What has the same name and is not above it moves.
	_under sh -c "cd $P && mkdir ${W##*/} && mv ${W##*/} d/ && mv d e && mv e d && rmdir d/${W##*/} && cd $W && mkdir -p empty/back && mv empty/back empty/back2 && rmdir empty/back2"
	_is "moves of others" $rc 0
}
mapped_directory_is_busy() { _mapped _renaming_the_root; }

# A link leads from the backend to another directory: what is there is plain, and needs nothing of the backend.
_leading_out() {
	local name
	rm -rf "$W/there"
	mkdir "$W/there"
	ln -s "$W/there" "$B/out"
	# shellcheck disable=SC2016
	_under sh -c 'cd "$0" && seq 1 9000 >out/made && mkdir d && seq 1 8000 >d/f && seq 1 7000 >moved &&
		mv moved out/ && mv d out/ && mv out/made out/other && seq 1 6000 >linked && cp -p linked out/copied' "$P"
	[ $rc = 0 ] || _fail "making and moving files"
	# shellcheck disable=SC2016
	_under sh -c '! ln "$0/linked" "$0/out/linked" 2>/dev/null' "$P"
	[ $rc = 0 ] || _fail "a hard link out of the backend"
	_is "read without the library" "$(cat "$W"/there/{other,d/f,moved,copied} | md5sum)" \
		"$( (seq 1 9000; seq 1 8000; seq 1 7000; seq 1 6000) | md5sum)"
	_under cmp "$P/linked" "$W/there/copied"
	[ $rc = 0 ] || _fail "what stayed"
	"$BUILD/plfs" gc -a 0 "$B"
	for name in linked out/other out/d/f out/moved out/copied; do
		_under cat "$P/$name" >"$W/out"
		[ $rc = 0 ] || _fail "$name after plfs gc"
	done
}

link_that_leads_out_of_the_backend() { _mapped _leading_out; }
