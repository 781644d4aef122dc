# SPDX-License-Identifier: BSD-3-Clause
# Beside Darshan, sourced by run: both in front of one program, both reports right. Needs Darshan's library without MPI,
# named by DARSHAN or found where libraries are, and its package for Python, of DARSHAN_PYTHON.

find_darshan() {
	darshan=${DARSHAN:-$(ldconfig -p | sed -n 's/.*libdarshan\.so .*=> //p' | head -n 1)}
	[ -e "$darshan" ] && "${DARSHAN_PYTHON:-python3}" -c 'import darshan' 2>/dev/null
}

beside_darshan() {
	local logs=$work/darshan
	rm -rf "$logs" "$work/d.jsonl"
	mkdir -p "$logs"
	DARSHAN_LOGFILE=$logs/one.darshan "$plfs" run -q -m "$map" --stats="$work/d.jsonl" sh -c 'export DARSHAN_ENABLE_NONMPI=1
		LD_PRELOAD=$0:$LD_PRELOAD exec "$@"' "$darshan" \
		"$bin/writer" /plfs/darshan 1 4 500 1000 close
	[ "$(sums "$work/d.jsonl" '[(l["file"], w["calls"], w["bytes"]) for l, w in zip(L, W)]')" = "[('/plfs/darshan', 500, 500000)]" ]
	"${DARSHAN_PYTHON:-python3}" - "$logs/one.darshan" <<-'EOF'
		import sys, warnings
		warnings.simplefilter("ignore")
		import darshan
		counters = darshan.DarshanReport(sys.argv[1], read_all=True).records["POSIX"].to_df()["counters"]
		got = [(int(r["POSIX_OPENS"]), int(r["POSIX_WRITES"]), int(r["POSIX_BYTES_WRITTEN"])) for _, r in counters.iterrows()]
		assert (1, 500, 500000) in got, got
	EOF
}
