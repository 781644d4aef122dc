# SPDX-License-Identifier: BSD-3-Clause
# README's quick start, run as it is printed, sourced by run. Its directory and the build directory are those of the test.

# The commands and what is printed below them, from the page: "$ COMMAND # comment", or a line of output.
quick_start() {
	sed -n '/^## Quick start/,/^## /s/^    //p' ../../README.md
}

# What differs from run to run: seconds, and in the output of plfs stat the numbers below Records, and the container.
steady() {
	sed -E -e "s|$work/ckpt|/tmp/ckpt|g" -e 's/^[0-9]+\.[0-9]+$/SECONDS/' \
		-e 's/^(Records|In logs|In indexes|On disk|Container)( +).*/\1\2.../'
}

readme_quick_start() {
	local line rc=0
	mkdir -p "$work/top/scripts"
	ln -s "$BUILD" "$work/top/build"
	cp ../../scripts/demo.c "$work/top/scripts/"
	quick_start | sed 's/^\$ .*/$/' | steady >"$work/want"
	grep -c '^\$' "$work/want" | grep -x 6
	quick_start | grep '^\$ ' | while IFS= read -r line; do
		line=${line#'$ '}
		echo '$'
		(cd "$work/top" && bash -c "${line//\/tmp\/ckpt/$work/ckpt}") || echo "exit code $?: $line"
	done >"$work/out" 2>&1 || rc=$?
	steady <"$work/out" | diff "$work/want" -
}
