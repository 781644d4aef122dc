# SPDX-License-Identifier: BSD-3-Clause
# Programs that the library does not reach (linked statically, or making their own system calls, as Go's do), and paths that
# it does not know (a bind mount of the backend). What such a program does to a logical file either is right or ends in a
# clear error; libplfs.7, LIMITS, says which.
. "$HERE/alone.bash"

# Both kinds do the same.
_strangers() { # FUNCTION
	local stranger seen=
	for stranger in "$BIN/stranger" "$BIN/store"; do
		[ -x "$stranger" ] || continue
		[ -z "$SANITIZED" ] || [ "$stranger" != "$BIN/store" ] || continue
		rm -rf "${B:?}"/* "$B/.plfs"
		"$1" "$stranger"
		seen=yes
	done
	[ "$seen" ] || _skip "neither a static C library nor Go"
}

_content() { # WANT
	_under cat $PFX/a >"$W/out"
	[ $rc = 0 ] || _fail "cat: $(cat "$W/err")"
	cmp -s "$W/out" <(printf %s "$1") || _fail "content is '$(head -c 300 "$W/out" | tr '\0' .)', not '$1'"
}

# The file gives an error that names it, is left alone, and can be made anew.
_is_damaged() {
	cp "$B/a" "$W/damaged"
	_under cat $PFX/a >"$W/out"
	[ $rc != 0 ] && [ ! -s "$W/out" ] || _fail "an error: $(head -c 300 "$W/out")"
	grep -q 'Input/output error' "$W/err" && grep -q '^libplfs.*/a: damaged stub' "$W/err" || _fail "a clear one: $(cat "$W/err")"
	_under sh -c "echo more >>$PFX/a"
	[ $rc != 0 ] || _fail "no appending"
	cmp -s "$B/a" "$W/damaged" || _fail "it was changed"
	_under sh -c "rm $PFX/a; echo anew >$PFX/a"
	_content $'anew\n'
}

# Nothing of the stub is left: the file is what the stranger wrote, and one line says so.
_is_plain() {
	_content $'by the stranger\n'
	_is "lines" "$(grep -c '^libplfs.*/a: a program without libplfs has written it anew' "$W/err")" 1
	_content $'by the stranger\n'
	[ ! -s "$W/err" ] || _fail "once: $(cat "$W/err")"
	_under sh -c "echo more >>$PFX/a"
	_is "for everybody" "$(cat "$B/a")" $'by the stranger\nmore'
	_under rm $PFX/a
}

_nothing_left() {
	_under rm -f $PFX/a
	[ -z "$(find "$B" -type f ! -path '*/.plfs/format' ! -path '*/.plfs/writers.*')" ] || _fail "left behind: $(find "$B" -type f)"
}

_reads_by_name() {
	_under sh -c "printf 'the content' >$PFX/a"
	_under "$1" read "$B/a" >"$W/out"
	_is "exit code" $rc 0
	head -c 4096 "$W/out" | tr '\0' '\n' | grep -q 'plfs flatten' || _fail "what it reads says how to get the content"
	grep -qa 'the content' "$W/out" && _fail "the content is not in there"
	_under "$1" stat "$B/a" >"$W/out"
	grep -q '^4107 ' "$W/out" || _fail "it sees the stub's length: $(cat "$W/out")"
	_content 'the content'
	_under "$1" read $PFX/a >"$W/out"
	[ $rc != 0 ] || _fail "a virtual prefix does not exist for it"
	_nothing_left
}
reads_by_name() { _strangers _reads_by_name; }

_writes_inherited() {
	_under sh -c "echo first >$PFX/a; $1 say second >>$PFX/a; echo third >>$PFX/a"
	_content $'first\nsecond\nthird\n'
	_under sh -c "(echo first; $1 say second; echo third; $1 say fourth) >$PFX/a; echo fifth >>$PFX/a"
	_content $'first\nsecond\nthird\nfourth\nfifth\n'
	_under sh -c "$1 say alone >$PFX/a"
	_content $'alone\n'
	_under sh -c "seq 1 30000 | $1 copy >$PFX/a"
	_content "$(seq 1 30000)"$'\n'
	_under sh -c "rm $PFX/a; $1 say first >$PFX/a; echo second >>$PFX/a; $1 say third 1<>$PFX/a"
	_under cat $PFX/a >"$W/out"
	_is "the first line, written over at the beginning by a stranger" "$(head -n 1 "$W/out")" third
	_nothing_left
}
writes_to_an_inherited_descriptor() { _strangers _writes_inherited; }

_reads_inherited() {
	local how
	_under sh -c "seq 1 30000 >$PFX/a; $1 copy <$PFX/a" >"$W/out"
	cmp -s "$W/out" <(seq 1 30000) || _fail "what it reads: $(head -c 100 "$W/out" | tr '\0' .)"
	_under sh -c "(read -r x; $1 copy) <$PFX/a" >"$W/out"
	cmp -s "$W/out" <(seq 2 30000) || _fail "what it reads behind the first line: $(head -c 100 "$W/out" | tr '\0' .)"
	for how in posix_spawn posix_spawnp; do
		_under sh -c "rm $PFX/a; seq 1 30000 >$PFX/a; python3 -c 'import os, sys
sys.exit(os.waitpid(os.$how(sys.argv[1], sys.argv[1:], os.environ), 0)[1])' $1 copy <$PFX/a" >"$W/out"
		cmp -s "$W/out" <(seq 1 30000) || _fail "what it reads, begun by $how: $(head -c 100 "$W/out" | tr '\0' .)"
	done
	_content "$(seq 1 30000)"$'\n'
	_under sh -c "seq 1 20 >$PFX/a; $1 copy <$PFX/a >$PFX/b; $1 copy <$PFX/b >>$PFX/a; rm $PFX/b"
	_content "$(seq 1 20; seq 1 20)"$'\n'
	_under sh -c "printf 0123456789 >$PFX/a; (printf ab; $1 say X; printf cd) 1<>$PFX/a"
	_content $'abX\ncd6789'
	_nothing_left
}
reads_from_an_inherited_descriptor() { _strangers _reads_inherited; }

# The dynamic linker loads no library that the user names into a program that gets somebody else's privileges.
reads_what_a_privileged_program_inherits() {
	[ "$(id -u)" = 0 ] || _skip "needs root, to become another user"
	cp "$(command -v cat)" "$W/cat"
	printf '#!%s\n' "$W/cat" >"$W/script"
	chmod 4755 "$W/cat" # as root's it is one for everybody else
	chmod 755 "$W/script"
	findmnt -no OPTIONS -T "$W" | grep -qw nosuid && _skip "$W is mounted nosuid"
	chmod 1777 "$B"
	_user sh -c "seq 1 30000 >$PFX/a; $W/cat <$PFX/a" >"$W/out"
	cmp -s "$W/out" <(seq 1 30000) || _fail "what it reads: $(head -c 100 "$W/out" | tr '\0' .)"
	_user sh -c "seq 1 20 >$PFX/a; $W/script - <$PFX/a" >"$W/out"
	cmp -s "$W/out" <(cat "$W/script"; seq 1 20) || _fail "what a script of it reads: $(head -c 100 "$W/out" | tr '\0' .)"
	_nothing_left
}

# In place it finds the name; its bytes go behind the stub, where the end of the file is.
_appends_by_name() {
	_under sh -c "echo first >$PFX/a"
	_under "$1" append "$B/a"
	_content $'first\nby the stranger\n'
	_under sh -c "echo last >>$PFX/a"
	_content $'first\nby the stranger\nlast\n'
	_under sh -c "rm $PFX/a; : >$PFX/a" # a stub that is empty still
	_under "$1" append "$B/a"
	_is_plain
}
appends_by_name() { _strangers _appends_by_name; }

_writes_by_name() {
	_under sh -c "echo first >$PFX/a"
	_under "$1" write "$B/a"
	_is_damaged
	rm -rf "${B:?}"/* "$B/.plfs"
	_under sh -c "seq 1 5000 >$PFX/a"
	_under "$1" create "$B/a"
	_is_plain
}
writes_over_a_stub() { _strangers _writes_by_name; }

_truncates() {
	_under sh -c "seq 1 5000 >$PFX/a"
	_under "$1" truncate "$B/a"
	_content ''
	_under sh -c "echo new >>$PFX/a"
	_content $'new\n'
	_under "$1" unlink "$B/a"
	_under cat $PFX/a >"$W/out"
	grep -q 'No such file' "$W/err" || _fail "it is gone: $(cat "$W/err")"
	_under sh -c "echo anew >$PFX/a"
	_content $'anew\n'
}
truncates_and_unlinks() { _strangers _truncates; }

# Its own new files are plain, and stay so.
_creates() {
	_under "$1" create "$B/a"
	_content $'by the stranger\n'
	_under sh -c "echo more >>$PFX/a"
	_is "the plain file" "$(cat "$B/a")" $'by the stranger\nmore'
	_under "$1" read "$B/a" >"$W/out"
	_is "for the stranger" "$(cat "$W/out")" $'by the stranger\nmore'
	_nothing_left
}
creates_plain_files() { _strangers _creates; }

# ---- another name of the backend ----

_need_mounts() {
	[ "$(id -u)" = 0 ] || _skip "needs root, to mount"
	unshare -m true 2>/dev/null || _skip "cannot unshare the mounts"
	mkdir -p "$W/other"
	export B PFX PRE W MAP
}

# A shell without the library opens a file only to write it, for a program that has the library.
inherits_what_a_stranger_opened() {
	local what
	for what in empty small logs; do
		_under sh -c "rm -f $PFX/a; : >$PFX/a; [ $what != small ] || seq 100 >$PFX/a; [ $what != logs ] || seq 100000 >$PFX/a"
		{ _under seq 5; } >"$B/a"
		_is "exit code" $rc 0
		[ ! -s "$W/err" ] || _fail "$what: $(cat "$W/err")"
		_content "$(seq 5)"$'\n'
		{ _under sh -c "seq 100000 >$PFX/a"; _under sh -c 'echo X; echo Y'; _under sh -c 'echo Z >&3' 3>&1; } >"$B/a"
		_is "exit code" $rc 0
		_content $'X\nY\nZ\n'"$(seq 4 100000)"$'\n'
	done
}

# A bind mount that is mapped too is one more name of the same files.
bind_mount_that_is_mapped() {
	_need_mounts
	MAP="$PFX=$B:$W/other"
	unshare -m bash -c '. "$HERE/alone.bash"; mount --bind "$B" "$W/other" || exit 77
		_under sh -c "echo one >$PFX/a; cat $W/other/a; echo two >>$W/other/a; cat $PFX/a; stat -c %s $PFX/a $W/other/a" >"$W/out"
		_is "what is read" "$(tr "\n" " " <"$W/out")" "one one two 8 8 "
		_under sh -c "exec 3<>$PFX/a; cat <&3 | wc -l; printf X >$W/other/b; mv $W/other/b $W/other/c; cat $PFX/c; rm $PFX/c; ls $W/other" >"$W/out"
		_is "what is read" "$(tr "\n" " " <"$W/out")" "2 Xa "'
}

# Across the border of a mapping link and rename find the same wrong as across that of a mounted file system.
errors_across_the_border() {
	_need_mounts
	mkdir -p "$W/d" "$W/out.d"
	cat >"$W/across.py" <<'PY'
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
inside, outside = sys.argv[1:]
for top in inside, outside:
    for name in "a", "b":
        open(top + "/" + name, "w").write("x")
    os.mkdir(top + "/dir")
names = ("a", "b", "none", "none/x", "a/x", "dir", "none/", "a/", "", "n" * 256)
for near, far in (inside, outside), (outside, inside):
    for old in names:
        for new in names:
            paths = [(top + "/" + name if name else "").encode() for top, name in ((near, old), (far, new))]
            for call, flags in ("link", 0), ("rename", 0), ("rename", 1):
                function, more = (libc.renameat2, [flags]) if call == "rename" else (libc.linkat, [flags])
                r = function(-100, paths[0], -100, paths[1], *more)
                print(["in", "out"][near == outside], call, flags, old or '""', new or '""',
                      errno.errorcode[ctypes.get_errno()] if r else "done")
PY
	unshare -m bash -c 'mount -t tmpfs none "$W/d" && python3 "$W/across.py" "$W/d" "$W/out.d"' >"$W/want" || _fail "without the library"
	rm -rf "$W/out.d"; mkdir "$W/out.d"
	_under python3 "$W/across.py" "$PFX" "$W/out.d" >"$W/out"
	_is "exit code" $rc 0
	diff "$W/want" "$W/out" >"$W/diff" || _fail "$(cat "$W/diff")"
}

# What was mounted anew for reading alone is read and synced as any file.
sync_of_a_file_mounted_read_only() {
	_need_mounts
	MAP="$PFX=$B{small=0}"
	unshare -m bash -c '. "$HERE/alone.bash"; mount -t tmpfs none "$B" || exit 77
		_under sh -c "seq 50000 >$PFX/a; seq 10 >$PFX/b; (seq 20000; kill -9 \$\$) >$PFX/k"
		mount -o remount,ro "$B" || exit 77
		_under sh -c "sync $PFX/a && sync -d $PFX/b && sync $PFX/k && md5sum <$PFX/a && wc -l <$PFX/k" >"$W/out"
		_is "exit code" $rc 0
		[ ! -s "$W/err" ] || _fail "$(cat "$W/err")"
		_is "what is read" "$(cat "$W/out")" "$(seq 50000 | md5sum; echo 20000)"'
}

# One that is not: a stub there explains itself, and says so where it can be told.
bind_mount_that_is_not_mapped() {
	_need_mounts
	unshare -m bash -c '. "$HERE/alone.bash"; mount --bind "$B" "$W/other" || exit 77
		_under sh -c "echo one >$PFX/a; echo kept >$PFX/k"
		_under cat "$W/other/a" >"$W/out"
		tr "\0" "\n" <"$W/out" | grep -q "plfs flatten" || _fail "the stub explains itself: $(head -c 100 "$W/out")"
		_under sh -c "echo two >>$W/other/a; cat $PFX/a" >"$W/out"
		_is "appended to" "$(cat "$W/out")" "one
two"
		_under sh -c "echo over >$W/other/k; cat $PFX/k" >"$W/out"
		_is "written over" "$(cat "$W/out")" over
		_under sh -c "mv $W/other/a $PFX/b" >"$W/out"
		_under ls $PFX $W/other >"$W/out"
		grep -q b "$W/out" || _fail "moved"'
}
