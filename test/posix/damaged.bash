# SPDX-License-Identifier: BSD-3-Clause
# Backends that something is wrong with: containers, logs, indexes and stubs that are missing, cut, strange, newer or copied.
. "$HERE/alone.bash"

container_is_gone() {
	_under sh -c "echo content >$PFX/a"
	rm -r "$(_container)"
	_under cat $PFX/a >"$W/out"
	_is "exit code" $rc 1
	grep -q 'Input/output error' "$W/err" || _fail "EIO: $(cat "$W/err")"
	grep '^libplfs' "$W/err" | grep -q "$B/a\|$PFX/a" || _fail "a line names the file: $(cat "$W/err")"
	_under ls -l $PFX >"$W/out"
	_is "ls" $rc 0
	_under rm $PFX/a
	[ $rc = 0 ] && [ ! -e "$B/a" ] || _fail "it can be removed"
}

one_log_is_missing() {
	_under sh -c "echo first >$PFX/a"
	_under sh -c "echo second >>$PFX/a"
	rm "$(find "$B/.plfs" -name 'data.*' | sort | head -n 1)"
	_under cat $PFX/a >"$W/out"
	[ $rc != 0 ] && grep -q 'Input/output error' "$W/err" || _fail "EIO: $(cat "$W/err" "$W/out")"
	grep '^libplfs' "$W/err" | grep -q data || _fail "a line names the log: $(cat "$W/err")"
	grep -q . <<<"$(tr -d '\0' <"$W/out" | grep -v '^second$\|^libplfs\|^cat:')" && _fail "no other bytes: $(cat "$W/out")"
	[ "$(find "$B/.plfs" -name 'data.*')" ] || _fail "the other log is still there"
}

log_is_cut_short() {
	_under sh -c "seq 1 5000 >$PFX/a"
	local log
	log=$(find "$B/.plfs" -name 'data.*')
	truncate -s $(($(stat -c %s "$log") - 8000)) "$log"
	_under cat $PFX/a >"$W/out"
	[ $rc != 0 ] && grep -q 'Input/output error' "$W/err" || _fail "EIO: $(cat "$W/err")"
	grep '^libplfs' "$W/err" | grep -q data || _fail "a line names the log: $(cat "$W/err")"
	cmp -n $(($(grep -v '^libplfs\|^cat:' "$W/out" | wc -c) / 4096 * 4096)) "$W/out" <(seq 1 5000) || _fail "no wrong bytes"
}

log_is_unreadable() {
	_need_root
	chmod 755 "$B"
	_under sh -c "echo content >$PFX/a"
	find "$B/.plfs" -name 'data.*' -exec chmod 000 {} +
	_user cat $PFX/a >"$W/out"
	[ $rc != 0 ] || _fail "an error: $(cat "$W/out")"
	grep -q 'Permission denied\|Input/output error' "$W/err" || _fail "an errno: $(cat "$W/err")"
	find "$B/.plfs" -name 'data.*' -exec chmod 644 {} +
	_user cat $PFX/a >"$W/out"
	_is content "$(cat "$W/out")" content
}

index_is_damaged() {
	_under sh -c "seq 1 5000 >$PFX/a"
	local index
	index=$(find "$B/.plfs" -name 'index.*' | head -n 1)
	printf 'XXXXXXXX' | dd of="$index" bs=1 seek=20 conv=notrunc status=none
	_under cat $PFX/a >"$W/out"
	if [ $rc = 0 ]; then
		seq 1 5000 | cmp - "$W/out" || _fail "wrong bytes"
	else
		grep -q 'Input/output error' "$W/err" || _fail "EIO: $(cat "$W/err")"
		grep '^libplfs' "$W/err" | grep -q index || _fail "a line names the index: $(cat "$W/err")"
	fi
}

index_is_missing() {
	_under sh -c "seq 1 5000 >$PFX/a"
	find "$B/.plfs" -name 'index.*' -delete
	_under cat $PFX/a >"$W/out"
	if [ $rc = 0 ]; then
		seq 1 5000 | cmp - "$W/out" || _fail "wrong bytes: $(head -c 100 "$W/out" | od -c | head -n 3)"
	else
		grep -q 'Input/output error' "$W/err" || _fail "EIO: $(cat "$W/err")"
	fi
}

newer_stub() {
	_under sh -c "echo content >$PFX/a"
	cp -p "$B/a" "$W/copy"
	printf '\2' | dd of="$B/a" bs=1 seek=8 conv=notrunc status=none # the version
	_under cat $PFX/a >"$W/out"
	[ $rc != 0 ] || _fail "an error: $(cat "$W/out")"
	grep -q "^libplfs.*$B/a\|^libplfs.*$PFX/a" "$W/err" || _fail "a line names it: $(cat "$W/err")"
	_under sh -c "echo more >>$PFX/a"
	[ $rc != 0 ] || _fail "no writing"
	_under sh -c ": >$PFX/a"
	[ $rc != 0 ] || _fail "no truncating"
	dd if="$W/copy" of="$B/a" conv=notrunc status=none
	_under cat $PFX/a >"$W/out"
	_is content "$(cat "$W/out")" content
}

unknown_feature_of_a_stub() {
	_under sh -c "echo content >$PFX/a"
	cp -p "$B/a" "$W/copy"
	printf '\200' | dd of="$B/a" bs=1 seek=23 conv=notrunc status=none # incompatible features
	_under cat $PFX/a >"$W/out"
	[ $rc != 0 ] || _fail "an error: $(cat "$W/out")"
	dd if="$W/copy" of="$B/a" conv=notrunc status=none
	_under cat $PFX/a >"$W/out"
	_is content "$(cat "$W/out")" content
}

newer_backend() {
	_under sh -c "echo content >$PFX/a"
	local format=$B/.plfs/format
	cp -p "$format" "$W/format"
	sed -i 's/^plfs-format 1/plfs-format 2/' "$format"
	cmp -s "$format" "$W/format" && _fail "the format file has a version"
	chmod "$(stat -c %a "$W/format")" "$format"
	_under sh -c "echo more >$PFX/b"
	[ $rc != 0 ] || _fail "an error"
	grep -q '^libplfs.*format' "$W/err" || _fail "a line says why: $(cat "$W/err")"
	_under cat $PFX/a >"$W/out"
	[ $rc = 0 ] && [ "$(cat "$W/out")" != content ] && _fail "right bytes or none"
	cat "$W/format" >"$format"
	_under sh -c "cat $PFX/a; echo x >$PFX/c; cat $PFX/c" >"$W/out"
	_is content "$(cat "$W/out")" $'content\nx'
}

garbage_format_file() {
	_under sh -c "echo content >$PFX/a"
	head -c 300 /dev/urandom >"$B/.plfs/format"
	_under sh -c "echo more >$PFX/b"
	[ $rc != 0 ] || _fail "an error"
	grep -q '^libplfs.*format' "$W/err" || _fail "a line says why: $(cat "$W/err")"
	[ -d "$(_container)" ] || _fail "the container is still there"
}

# The first sector of a stub is lost: the rest of its page says that it was one.
garbage_stub() {
	_under sh -c "seq 1 2000 >$PFX/g"
	head -c 512 /dev/urandom | dd of="$B/g" conv=notrunc status=none
	cp -p "$B/g" "$W/copy"
	_under cat $PFX/g >"$W/out"
	[ $rc != 0 ] && grep -q 'Input/output error' "$W/err" || _fail "EIO: $(cat "$W/err")"
	grep -q "^libplfs.*/g" "$W/err" || _fail "a line names it: $(cat "$W/err")"
	_under sh -c "echo more >>$PFX/g"
	[ $rc != 0 ] || _fail "no writing"
	_under ls -l $PFX >"$W/out"
	_is ls $rc 0
	cmp "$B/g" "$W/copy" || _fail "it is untouched"
	_under rm $PFX/g
	[ ! -e "$B/g" ] || _fail "it can be removed"
}

half_a_stub() {
	_under sh -c "echo content >$PFX/a"
	cp -p "$B/a" "$W/copy"
	printf 'XX' | dd of="$B/a" bs=1 seek=30 conv=notrunc status=none
	_under cat $PFX/a >"$W/out"
	[ $rc != 0 ] && grep -q 'Input/output error' "$W/err" || _fail "EIO for a wrong checksum: $(cat "$W/err")"
	dd if="$W/copy" of="$B/a" conv=notrunc status=none
	_under cat $PFX/a >"$W/out"
	_is content "$(cat "$W/out")" content
}

bytes_by_another_road_are_the_oldest_layer() {
	_under sh -c "printf 0123456789 >$PFX/a; printf AB | dd of=$PFX/a bs=1 seek=4 conv=notrunc status=none"
	printf xyz | dd of="$B/a" bs=1 seek=$((4096 + 12)) conv=notrunc status=none
	_under cat $PFX/a >"$W/out"
	_is content "$(tr '\0' . <"$W/out")" "0123AB6789..xyz"
}

copied_stub_without_the_library() {
	_under sh -c "echo content >$PFX/a"
	cp -p "$B/a" "$B/b"
	cp "$B/a" "$W/note"
	grep -aq 'plfs flatten' "$W/note" || _fail "a stub explains itself"
	_under cat $PFX/a $PFX/b >"$W/out"
	_is content "$(cat "$W/out")" $'content\ncontent'
}
