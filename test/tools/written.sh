# SPDX-License-Identifier: BSD-3-Clause
# What earlier versions have written, sourced by run: all later ones read it and go on with it.
#
# written-VERSION.tar.xz has a backend, VERSION/, with a file in its stub (d/small), one of four ranks (d/strided), one of two
# that were killed (killed), one that was written over, cut and continued (over, second, link), and one with a hole (holes).
# Those that were killed had synced it: of what they had not, nothing is sure on a machine that has been started since.
# A release that changes what is written adds one of its own, made in the same way; none is ever changed.

written_sums() {
	cat <<-'END'
		d632eba71107bf7bc3ec423eab256d78  d/small
		a3d52aca9f6da21ea3dacd8a1a7b8e0e  d/strided
		6a72e91bf538c53e0bd02f2f09ba81dc  killed
		0e61d1fdca111dadb1aaef363b97d209  over
		66f4c78287e68910d1a97fb35a764f50  holes
		0e61d1fdca111dadb1aaef363b97d209  second
		0e61d1fdca111dadb1aaef363b97d209  link
	END
}

written_by_earlier_versions() {
	local archive version old rank
	written_sums >"$work/sums"
	for archive in written-*.tar.xz; do
		version=${archive#written-} version=${version%.tar.xz}
		old=$work/$version
		tar -C "$work" --no-same-owner -xpJf "$archive"
		"$plfs" run -m "/plfs=$old" sh -c "cd /plfs && md5sum -c '$work/sums'"
		"$plfs" check -q -r "$old"
		# Its ranks go on, as jobs do after an update, and the killed file is repaired.
		for rank in 0 1 2 3; do
			"$plfs" run -m "/plfs=$old" "$bin/writer" /plfs/d/strided $rank 4 70 1000 close
			"$bin/writer" "$work/plain/strided" $rank 4 70 1000 close
		done
		"$plfs" run -m "/plfs=$old" cmp /plfs/d/strided "$work/plain/strided"
		"$plfs" repair -q -r "$old"
		"$plfs" flatten -q -r "$old/d" "$old/killed" "$old/holes"
		(cd "$old" && grep -E 'small|killed|holes' "$work/sums" | md5sum -c && cmp d/strided "$work/plain/strided")
		"$plfs" run -m "/plfs=$old" sh -c 'rm /plfs/second && md5sum </plfs/over' | grep ^0e61d1fd
		rm -r "$old" "$work/plain/strided"
	done
}
