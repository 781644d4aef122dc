# SPDX-License-Identifier: BSD-3-Clause
# Backends in one another, sourced by run: gc, check, repair and flatten by either, of files that have their containers in the other.

# A file by each mapping, below the inner: ours of the outer, theirs of the inner.
nested_files() {
	mkdir -p "$inner" "$back/run8"
	"$plfs" run -m "$map" sh -c 'seq 30000 >/plfs/run7/ours; seq 20000 >/plfs/top'
	"$plfs" run -m "/plfs=$inner{small=0}" sh -c 'seq 10000 >/plfs/theirs' 2>&1 | grep "lies in the backend $back"
	[ "$(containers_of "$back") $(containers_of "$inner")" = "2 1" ]
}

containers_of() {
	find "$1/.plfs" -mindepth 2 -maxdepth 2 -type d | wc -l
}

# Both mappings, and the command on paths of the backend, have the bytes.
nested_are_whole() {
	local dir
	"$plfs" run -m "$map" cmp /plfs/top <(seq 20000)
	for dir in "$map /plfs/run7" "/inner=$inner{small=0} /inner"; do
		"$plfs" run -m "${dir% *}" cmp "${dir#* }/ours" <(seq 30000)
		"$plfs" run -m "${dir% *}" cmp "${dir#* }/theirs" <(seq 10000)
	done
}

nested_gc() {
	nested_files
	for dir in "$back" "$inner" "$back" "$inner"; do
		"$plfs" gc -a 0 "$dir" | tee "$work/got"
		grep -x "$dir: .* removed 0 .*" "$work/got"
		nested_are_whole
	done
	# Orphans of both go, each by its own.
	rm "$inner/ours" "$inner/theirs"
	sleep 0.05
	"$plfs" gc -a 0 "$inner" && "$plfs" gc -a 0 "$inner"
	[ "$(containers_of "$back") $(containers_of "$inner")" = "2 0" ]
	"$plfs" gc -a 0 "$back"
	[ "$(containers_of "$back") $(containers_of "$inner")" = "1 0" ]
	"$plfs" run -m "$map" cmp /plfs/top <(seq 20000)
}

# mv without the library parts a file from the inner backend: an error until it is back, and no gc takes its bytes meanwhile.
nested_gc_moved() {
	nested_files
	mv "$inner/theirs" "$back/run8/theirs"
	rc=0
	"$plfs" run -m "$map" cat /plfs/run8/theirs >"$work/got" 2>"$work/err" || rc=$?
	[ $rc = 1 ] && [ ! -s "$work/got" ] && grep "/plfs/run8/theirs: .*missing or empty" "$work/err"
	sleep 0.05
	"$plfs" gc -a 0 "$inner"
	"$plfs" gc -a 0 "$back"
	[ "$(containers_of "$inner")" = 1 ]
	mv "$back/run8/theirs" "$inner/"
	mv "$inner/ours" "$back/run8/ours"
	"$plfs" run -m "$map" cmp /plfs/run8/ours <(seq 30000)
	"$plfs" gc -a 0 "$inner"
	mv "$back/run8/ours" "$inner/"
	nested_are_whole
	# What cannot be read there may lead to it.
	mv "$inner/theirs" "$back/run8/theirs"
	printf garbage | dd of="$back/run8/theirs" bs=1 seek=30 conv=notrunc status=none
	rc=0
	"$plfs" gc -a 0 "$inner" 2>"$work/err" || rc=$?
	cat "$work/err"
	[ $rc = 2 ] && grep "$inner/\.\./run8/theirs: the stub is damaged" "$work/err" && [ "$(containers_of "$inner")" = 1 ]
}

nested_check() {
	nested_files
	"$plfs" check -r "$back" | tee "$work/got"
	grep -x "$inner: note: a separate backend.*" "$work/got" && grep '^1 logical files.* 0 damaged' "$work/got"
	"$plfs" check -r "$inner" | tee "$work/got"
	grep -x "$inner: note: lies in the backend $back, .*" "$work/got" && grep '^2 logical files.* 0 damaged' "$work/got"
	"$plfs" check "$inner/ours" "$inner/theirs" | grep '^2 logical files.* 0 damaged'
	"$plfs" stat --json "$inner/ours" >"$work/got"
	[ "$(field container)" = "$(echo "$back"/.plfs/??/"$(field id)")" ]
	"$plfs" map "$inner/ours" | head -1 | grep "$back/.plfs/"
	"$plfs" du "$inner" | tail -1
	# Damage is found and mended wherever it is.
	rm "$back"/.plfs/*/"$(field id)"/hostdir.*/index.*
	rc=0
	"$plfs" check -r "$inner" >"$work/got" || rc=$?
	[ $rc = 1 ] && grep "$inner/ours: damage" "$work/got"
	"$plfs" repair -r "$inner"
	"$plfs" check -r "$inner"
	nested_are_whole
}

nested_flatten() {
	nested_files
	"$plfs" flatten -o "$work/got" "$inner/ours" && cmp "$work/got" <(seq 30000)
	"$plfs" flatten "$inner/ours" "$inner/theirs" "$back/top"
	cmp "$inner/ours" <(seq 30000) && cmp "$inner/theirs" <(seq 10000) && cmp "$back/top" <(seq 20000)
	[ "$(containers_of "$back") $(containers_of "$inner")" = "0 0" ]
	no_temporary_left
}

# A copy does not become the owner of a container while the first lies in the other backend: its end would be the first's.
nested_repair_of_a_copy() {
	nested_files
	for pair in "$inner/ours $back/copy $back" "$inner/theirs $inner/copy $inner"; do
		set -- $pair
		cp -p "$1" "$2"
		[ "$3" = "$back" ] || mv "$1" "$back/away"
		rc=0
		"$plfs" repair -r "$3" >"$work/got" || rc=$?
		cat "$work/got"
		! grep 'belongs to this file again' "$work/got" || return 1
		grep "$2: remains: a copy made without the library" "$work/got" || grep "$2: damage: a copy made without the library" "$work/got"
		"$plfs" run -m "$3{small=0}" rm "$2"
		[ "$3" = "$back" ] || mv "$back/away" "$1"
		nested_are_whole
	done
	# Where it is the only one it does.
	cp -p "$inner/ours" "$back/copy" && mv "$back/copy" "$inner/ours"
	"$plfs" repair -r "$inner" | grep "$inner/ours: repaired: the container belongs to this file again"
	"$plfs" check -r "$inner" | tee "$work/got"
	! grep moved "$work/got" || return 1
	nested_are_whole
}
