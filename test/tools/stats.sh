# SPDX-License-Identifier: BSD-3-Clause
# PLFS_STATS and plfs stats, sourced by run: what is counted is what programs did, also where they were killed.

# sums FILE EXPRESSION...: of the lines of a stats file, as Python; L has them.
sums() {
	python3 - "$@" <<-'EOF'
		import json, sys
		L = [json.loads(line) for line in open(sys.argv[1])]
		W = [l.get("write", {}) for l in L]
		print(*(eval(e) for e in sys.argv[2:]))
	EOF
}

stats_count_what_was_written() {
	local i
	rm -f "$work"/s.jsonl
	for i in 0 1 2 3; do
		PMI_RANK=$i PMI_SIZE=4 "$plfs" run -m "$map" --stats="$work/s.jsonl" "$bin/writer" /plfs/counted $i 4 500 1000 close
	done
	[ ! -e "$work/s.jsonl.parts" ]
	[ "$(sums "$work/s.jsonl" 'len(L)' 'sorted(l["rank"] for l in L)' '{l["ranks"] for l in L}')" = '4 [0, 1, 2, 3] {4}' ]
	[ "$(sums "$work/s.jsonl" '[w["calls"] for w in W]' '{w["bytes"] for w in W}')" = '[500, 500, 500, 500] {500000}' ]
	[ "$(sums "$work/s.jsonl" '{(l["file"], l["stored"], l["ended"], l["opens"], l["closes"]) for l in L}')" = \
		"{('/plfs/counted', 'logs', True, 1, 1)}" ]
	# the first two calls tell the stride
	[ "$(sums "$work/s.jsonl" '{(w["strided"], w["random"]) for w in W}' '{w["sizes"][9] for w in W}')" = '{(498, 2)} {500}' ]
	[ "$(sums "$work/s.jsonl" '{(w["common"][0]["len"], w["common"][0]["stride"]) for w in W}')" = '{(1000, 4000)}' ]
	[ "$(sums "$work/s.jsonl" 'max(l["end"] for l in L)' 'sum(sum(l["rate"]["written"]) for l in L)')" = '2000000 2000000' ]
	sums "$work/s.jsonl" 'all(l["first"] <= w["first"] <= w["last"] <= l["last"] for l, w in zip(L, W))' | grep -x True
	sums "$work/s.jsonl" 'all(0 < w["seconds"] < 60 and l["backend"]["write_bytes"] >= 500000 for l, w in zip(L, W))' | grep -x True
	"$plfs" stats --json "$work/s.jsonl" >"$work/got"
	[ "$(field processes) $(field writers) $(field killed)" = "4 4 0" ]
	"$plfs" stats "$work/s.jsonl" | grep -F '/plfs/counted'
}

# A killed process's counts are there, and nobody repairs anything.
stats_of_the_killed() {
	local i
	rm -rf "$work"/k.jsonl*
	for i in 0 1 2 3; do
		PMI_RANK=$i PLFS_STATS=$work/k.jsonl "$plfs" run -m "$map" "$bin/writer" /plfs/killed $i 4 500 1000 \
			"$([ $i -lt 2 ] && echo close || echo kill)" || [ $i -ge 2 ]
	done
	[ -e "$work/k.jsonl.parts" ]
	[ "$("$plfs" stats --json "$work/k.jsonl" | tee "$work/got" | wc -l)" = 1 ]
	[ "$(field processes) $(field killed)" = "4 2" ]
	[ ! -e "$work/k.jsonl.parts" ]
	[ "$(sums "$work/k.jsonl" 'sorted((l["rank"], l["ended"], w["calls"], w["bytes"]) for l, w in zip(L, W))')" = \
		'[(0, True, 500, 500000), (1, True, 500, 500000), (2, False, 500, 500000), (3, False, 500, 500000)]' ]
	# plfs run completes the file itself
	rm -rf "$work"/k.jsonl*
	"$plfs" run -m "$map" --stats="$work/k.jsonl" sh -c "'$bin/writer' /plfs/killed2 0 2 50 100 kill; '$bin/writer' /plfs/killed2 1 2 50 100 kill
		exit 7" || [ $? = 7 ]
	[ "$(sums "$work/k.jsonl" '[(l["ended"], w["bytes"]) for l, w in zip(L, W)]')" = '[(False, 5000), (False, 5000)]' ]
}

# Without a mapping, files are stored as ever, and calls on them are counted.
stats_of_plain_files() {
	rm -rf "$work"/p.jsonl*
	(cd "$work/plain" && PBS_JOBID=77.srv "$plfs" run --stats sh -c "'$bin/writer' $work/plain/p 1 2 50 3000 close; cat p >q") 2>"$work/err"
	grep -F 'plfs-stats.77.srv.jsonl: plfs stats shows them' "$work/err"
	mv "$work/plain/plfs-stats.77.srv.jsonl" "$work/p.jsonl"
	[ ! -e "$work/plain/plfs-stats.77.srv.jsonl.parts" ]
	[ ! -k "$work/plain/p" ]
	[ "$(sums "$work/p.jsonl" 'sorted((l["job"], l["file"][-7:], l["stored"], w["bytes"]) for l, w in zip(L, W) if w)')" = \
		"[('77.srv', 'plain/p', 'plain', 150000), ('77.srv', 'plain/q', 'plain', 300000)]" ]
	[ "$(sums "$work/p.jsonl" '[(w["calls"], w["strided"]) for l, w in zip(L, W) if l["file"][-1] == "p"]')" = '[(50, 48)]' ]
}

stats_below_a_prefix() {
	rm -rf "$back"/st.jsonl*
	"$plfs" run -m "$map" --stats=/plfs/st.jsonl "$bin/writer" /plfs/beside 0 1 50 1000 close
	[ ! -k "$back/st.jsonl" ]
	[ "$(sums "$back/st.jsonl" '[w["bytes"] for w in W]')" = '[50000]' ]
	"$plfs" run -m "$map" cat /plfs/st.jsonl | cmp - "$back/st.jsonl"
}

# Whatever is wrong with it, the job goes on, and one line says what it is.
stats_that_cannot_be() {
	local rc
	for name in /nonexistent/s "$back/.plfs/s" /proc/s; do
		PLFS_STATS=$name "$plfs" run -m "$map" "$bin/writer" /plfs/wrong 0 1 50 100 close 2>"$work/err"
		[ "$(grep -c PLFS_STATS: "$work/err")" = 1 ] || { echo "$name: $(cat "$work/err")"; return 1; }
	done
	[ -z "$(find "$back/.plfs" -name 's.*')" ]
	rm -rf "$work"/w.jsonl*
	"$plfs" run -m "$map" --stats="$work/w.jsonl" "$bin/writer" /plfs/wrong 0 1 50 100 close
	head -c 300 "$work/w.jsonl" >"$work/cut.jsonl" # in the middle of the line, and the next job adds to it
	"$plfs" run -m "$map" --stats="$work/cut.jsonl" "$bin/writer" /plfs/wrong 0 1 50 100 close
	[ "$("$plfs" stats --json "$work/cut.jsonl" 2>"$work/err" | wc -l)" = 1 ]
	grep -xF "plfs: $work/cut.jsonl: 1 lines are cut or damaged, and are left out" "$work/err"
	sed 's/"plfs_stats":1/"plfs_stats":2/' "$work/w.jsonl" >"$work/new.jsonl"
	lines=1 wrong 0 "1 lines are of a newer version" "$plfs" stats "$work/new.jsonl"
	wrong 1 "no stats file" "$plfs" stats /etc/passwd
	wrong 1 "No such file" "$plfs" stats "$work/none.jsonl"
	cat "$work/w.jsonl" "$work/w.jsonl" >"$work/twice.jsonl" # by a process that was killed meanwhile
	"$plfs" stats --json "$work/twice.jsonl" >"$work/got"
	[ "$(field processes)" = 1 ]
}

# Ranks of another host, all killed: nobody there is left to add what they counted, and plfs run does it.
stats_of_two_hosts() {
	rm -rf "$work"/h.jsonl*
	"$plfs" run -q -m "$map" --stats="$work/h.jsonl" sh -c "
		PMI_RANK=0 '$bin/writer' /plfs/hosts 0 4 50 1000 close
		PMI_RANK=1 '$bin/writer' /plfs/hosts 1 4 50 1000 kill
		unshare -u sh -c 'hostname far; for i in 2 3; do PMI_RANK=\$i \"\$0\" /plfs/hosts \$i 4 50 1000 kill; done; sleep 0' '$bin/writer'
		unshare -u sh -c 'hostname far2; PMI_RANK=4 \"\$0\" /plfs/hosts 4 5 50 1000 kill; kill -KILL \$\$' '$bin/writer'" || :
	[ ! -e "$work/h.jsonl.parts" ]
	[ "$(sums "$work/h.jsonl" 'sorted((l["host"].rsplit("-", 1)[0], l["rank"], l["ended"], w["bytes"]) for l, w in zip(L, W))')" = \
		"[('far', 2, False, 50000), ('far', 3, False, 50000), ('far2', 4, False, 50000), ('$(hostname)', 0, True, 50000), ('$(hostname)', 1, False, 50000)]" ]
}

# Both MPI libraries: ranks are known, and the sums right.
stats_of_mpi() {
	local launcher
	for launcher in mpirun.openmpi mpiexec.mpich; do
		command -v $launcher >/dev/null || { echo "no $launcher"; continue; }
		rm -rf "$work"/m.jsonl* "$back/mpi"
		"$plfs" run -q -m "$map" --stats="$work/m.jsonl" $launcher -n 4 sh -c \
			'exec "$0" /plfs/mpi ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} 4 100 1000 close' "$bin/writer"
		[ "$(sums "$work/m.jsonl" 'sorted((l["rank"], l["ranks"], l["ended"], w["calls"], w["bytes"]) for l, w in zip(L, W))')" = \
			"$(python3 -c 'print([(r, 4, True, 100, 100000) for r in range(4)])')" ]
	done
}

# Root takes in a user's parts with the user's rights: what he leads to another file by a link stays as it is.
stats_of_a_user_by_root() {
	rm -rf "$work/user" && mkdir "$work/user" && chown nobody "$work/user" && chmod 755 "$work"
	cp "$bin/writer" "$work/user/writer"
	setpriv --reuid nobody --clear-groups env PLFS_STATS="$work/user/s.jsonl" LD_PRELOAD="$work/libplfs.so" \
		"$work/user/writer" "$work/user/plain" 0 1 50 1000 kill || :
	[ -d "$work/user/s.jsonl.parts" ]
	echo "of root" >"$work/roots" && chmod 600 "$work/roots"
	ln -s "$work/roots" "$work/user/s.jsonl"
	"$plfs" stats "$work/user/s.jsonl" || :
	[ "$(cat "$work/roots")" = "of root" ]
	rm "$work/user/s.jsonl"
	"$plfs" stats --json "$work/user/s.jsonl" >"$work/got"
	[ "$(field killed)" = 1 ]
	[ "$(stat -c %U "$work/user/s.jsonl")" = nobody ]
}
