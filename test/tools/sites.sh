# SPDX-License-Identifier: BSD-3-Clause
# What man/plfs-sites.7 says in numbers, sourced by run.

# The page's row of @1 processes: inodes of one file that they write on one host.
row_of() { # PROCESSES
	sed -n "s/^\.It $1 Ta \([0-9]*\)$/\1/p" ../../man/plfs-sites.7
}

# As many as plfs du counts, and find(1) sees: the stub, and all that is in its container.
inodes_of_a_file() {
	local ranks i container
	for ranks in 1 4 16; do
		for ((i = 0; i < ranks; i++)); do
			"$plfs" run -m "$map" "$bin/writer" "/plfs/n$ranks" $i $ranks 50 1000 close
		done
		"$plfs" du --json "$back/n$ranks" >"$work/got"
		container=$("$plfs" stat --json "$back/n$ranks" | sed 's/.*"container": "\([^"]*\)".*/\1/')
		[ "$(field inodes)" = $((1 + $(find "$container" | wc -l))) ]
		[ "$(field inodes)" = "$(row_of $ranks)" ] || { echo "$ranks processes: $(field inodes), the page: $(row_of $ranks)"; return 1; }
	done
	"$plfs" run -m "/plfs=$back" sh -c 'echo small >/plfs/small'
	"$plfs" du --json "$back/small" >"$work/got"
	[ "$(field inodes)" = 1 ]
	"$plfs" flatten "$back/n16"
	"$plfs" du --json "$back/n16" >"$work/got"
	[ "$(field inodes)" = 1 ]
}

# A backend has these besides its files.
inodes_of_a_backend() {
	strided f
	"$plfs" run -m "$map" rm /plfs/f
	find "$back/.plfs" -type f -printf '%f\n' | sed 's/^writers\..*/writers/' | sort >"$work/got"
	printf '%s\n' format writers | diff - "$work/got"
	[ "$(find "$back/.plfs" -mindepth 1 -type d | wc -l)" -le 256 ]
}
