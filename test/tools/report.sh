# SPDX-License-Identifier: BSD-3-Clause
# plfs report, sourced by run: its numbers against what the programs are known to have done, its page, and what it says
# when something is wrong. report.py compares.

# As installed: the page's program is beside the command.
report() { # OPTION... JOB...
	[ -d "$work/usr" ] || {
		mkdir -p "$work/usr/bin" "$work/usr/share/libplfs/report"
		cp "$plfs" "$work/usr/bin/plfs"
		cp ../../tools/report/*.py "$work/usr/share/libplfs/report/"
	}
	"$work/usr/bin/plfs" report "$@"
}

facts() { # CHECK FILE [ARGUMENT...]
	report --json "$2" >"$work/got"
	python3 report.py "$1" "$work/got" "${@:3}"
}

# Each of 4 processes a quarter of its own, in one write.
segments() { # FILE
	local i
	for i in 0 1 2 3; do
		"$plfs" run -m "$map" sh -c 'head -c 100000 /dev/zero | dd of="/plfs/$1" bs=100000 seek=$2 conv=notrunc status=none' - "$1" $i
	done
}

report_strided() {
	strided s
	facts strided "$back/s" 4 50 1000
	block=47001 strided t
	facts strided "$back/t" 4 50 47001
	cp -r "$back" "$work/plain/elsewhere" # read through another name, without settings
	facts strided "$work/plain/elsewhere/s" 4 50 1000
	report -m "$map" --json /plfs/s >"$work/got"
	python3 report.py strided "$work/got" 4 50 1000
}

report_segments() {
	segments s
	facts segments "$back/s" 4 100000
}

# What processes were killed in the middle of is in the report, beside what others closed.
report_killed() {
	local i
	for i in 0 1 2 3; do
		"$plfs" run -m "$map" "$bin/writer" /plfs/k $i 4 50 1000 "$([ $((i % 2)) = 0 ] && echo close || echo kill)" || [ $((i % 2)) = 1 ]
	done
	facts strided "$back/k" 4 50 1000 2
	"$plfs" repair "$back/k"
	facts strided "$back/k" 4 50 1000
}

# Whose bytes are, is whoever wrote them last; what a truncation cut off is nobody's, and what it voided does not count.
report_overwritten() {
	segments o
	"$plfs" run -m "$map" sh -c 'head -c 200000 /dev/zero | dd of=/plfs/o bs=200000 conv=notrunc status=none'
	facts overwritten "$back/o"
	"$plfs" run -m "$map" sh -c 'exec 3</plfs/o; truncate -s 50000 /plfs/o; truncate -s 400000 /plfs/o'
	facts cut "$back/o"
	"$plfs" run -m "$map" sh -c 'exec 3</plfs/o; : >/plfs/o; head -c 100000 /dev/zero >>/plfs/o'
	facts anew "$back/o"
}

# Bytes at random places, in pieces of many sizes.
report_random() {
	"$plfs" run -m "$map" python3 report.py write_random /plfs/r
	facts random "$back/r"
}

# Bricks of a cube: runs of runs.
report_bricks() {
	local i
	for i in 0 1 2 3 4 5 6 7; do
		"$plfs" run -m "$map" python3 report.py write_brick /plfs/b $i
	done
	facts bricks "$back/b"
}

report_other_files() {
	echo plain >"$back/p"
	"$plfs" run -m "/plfs=$back" sh -c 'echo small >/plfs/small; : >/plfs/empty'
	for name in p small empty; do
		report -o "$work/page.html" "$back/$name"
		python3 report.py page "$work/page.html"
	done
	report --json "$back/small" >"$work/got"
	[ "$(field storage) $(field size)" = "stub 6" ]
}

report_page() {
	strided s
	segments t
	report -o "$work/page.html" "$back/s" "$back/t"
	python3 report.py page "$work/page.html" \
		"4 processes on 1 host wrote 200 kB in pieces of 1,000 bytes, strided" \
		"4 processes on 1 host wrote 400 kB in pieces of 100,000 bytes" "200 pieces became 4 records"
	report "$back/s" "$back/t" | sed 's/Made by.*//' | cmp - <(sed 's/Made by.*//' "$work/page.html")
	report -m "$map" "$back" | grep -F "2 files" # a directory
	report --format=csv "$back/s" >"$work/got"
	python3 report.py csv "$work/got"
	report --format=perfetto "$back/s" >"$work/got"
	python3 report.py perfetto "$work/got"
	[ -z "$(find "$work" -name '*.tmp' -o -name __pycache__)" ]
}

# Names may hold anything; a page is a page all the same.
report_strange_names() {
	local name=$'a\n<script>alert(1)<script>&"\xff\e[2J'
	"$plfs" run -m "$map" sh -c 'seq 1000 >"/plfs/$1"' - "$name"
	report -o "$work/page.html" "$back/$name"
	python3 report.py page "$work/page.html" '<script>alert(1)<script>&"'
	report --format=csv "$back/$name" >"$work/got"
	report --format=perfetto "$back/$name" >"$work/got"
	python3 -m json.tool "$work/got" >"$work/out"
}

# What a browser shows of it.
report_browser() {
	local browser
	segments segments
	strided strided
	report -o "$work/page.html" "$back/segments" "$back/strided"
	browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
	HOME=$work timeout -k 5 120 python3 report_browser.py "$browser" "$work/page.html" "$work"
}

# The hints are those of plfs advise: of the file as it is stored, and of the counts.
report_hints() {
	local i
	"$plfs" run -m "$map" sh -c 'head -c 3000000 /dev/zero >/plfs/alone; head -c 3000000 /dev/zero | dd of=/plfs/alone conv=notrunc status=none'
	"$plfs" advise --json "$back/alone" >"$work/advice"
	report -o "$work/page.html" "$back/alone"
	for i in 0 1 2; do
		"$plfs" run --stats="$work/job.jsonl" "$bin/writer" "$work/plain/shared" $i 3 50 47001 close 2>/dev/null
	done
	"$plfs" advise --json "$work/job.jsonl" >>"$work/advice"
	report "$work/job.jsonl" >>"$work/page.html"
	grep -F 'plfs compact' "$work/advice"
	grep -F 'plfs run -m DIRECTORY' "$work/advice"
	python3 report.py hints "$work/page.html" "$work/advice"
}

# With what the processes counted: ranks, calls, readers. The ranks decide over order and colours.
report_stats() {
	strided s
	report --json "$back/s" >"$work/got"
	python3 report.py stats "$work/got" /plfs/s reader plain null >"$work/job.jsonl"
	report -o "$work/page.html" "$work/job.jsonl" "$back/s"
	python3 report.py page "$work/page.html" "4 ranks of writer on 1 host wrote 200 kB in pieces of 1,000 bytes, strided" \
		"it took 5.0 s: 40.0 kB/s" "2 processes read 75.0 kB, 70.0 kB of it by 1 process that had not written the file" \
		"1 process did not come to its end" "10 ms in the mean; the slowest took 280 ms, of rank 3 on" "200 write calls became 4 records" \
		"/home/u/out.dat" "job 4711"
	report --format=csv "$back/s" "$work/job.jsonl" >"$work/got"
	python3 report.py counted "$work/got"
	# the stats alone: the file is found by the mapping, or is known by its counts
	report -m "$map" -o "$work/page.html" "$work/job.jsonl"
	python3 report.py page "$work/page.html" "4 ranks of writer" "Who wrote which bytes" "/home/u/out.dat" "2 processes on 1 host" "It is a plain file"
	report -o "$work/page.html" "$work/job.jsonl"
	python3 report.py page "$work/page.html" "4 ranks of writer" "no index that could be read here"
}

# What real processes counted and traced, one of them killed; the report finishes the stats file itself.
report_of_a_job() {
	local i
	mkdir "$work/plain/t"
	for i in 3 1 0 2; do
		PMI_RANK=$i PMI_SIZE=4 PLFS_STATS=$work/job.jsonl PLFS_TRACE=$work/plain/t "$plfs" run -m "$map" "$bin/writer" /plfs/j $i 4 200 1000 \
			"$([ $i = 1 ] && echo kill || echo close)" || [ $i = 1 ]
	done
	PLFS_STATS=$work/job.jsonl PLFS_TRACE=$work/plain/t "$plfs" run -m "$map" cat /plfs/j >"$work/out"
	[ "$(wc -c <"$work/out")" = 800000 ]
	for i in "$work/job.jsonl $back/j" "$work/plain/t $back/j" "$work/plain/t" "$work/job.jsonl" "$work/plain/t $work/job.jsonl $back/j"; do
		report -m "$map" --format=csv $i >"$work/got"
		cut -d, -f 1,2,3,6,7,10 "$work/got"
		printf '%s\n' file,no,rank,bytes,pieces,ended j,0,0,200000,200,1 j,1,1,200000,200,0 j,2,2,200000,200,1 j,3,3,200000,200,1 |
			diff - <(cut -d, -f 1,2,3,6,7,10 "$work/got" | sed 's|^/[^,]*/||')
		report -m "$map" -o "$work/page.html" $i
		python3 report.py page "$work/page.html" "4 ranks of writer on 1 host wrote 800 kB in pieces of 1,000 bytes, strided" \
			"1 process read 800 kB, and had not written the file" "Bandwidth over time" "Who wrote which bytes of the file"
	done
	python3 report.py page "$work/page.html" "800 write calls became" "1 log is not closed"
	[ ! -e "$work/job.jsonl.parts" ] || [ -z "$(find "$work/job.jsonl.parts" -type f)" ]
}

# Traces as plfs-stats(5) has them, each call with its time.
report_traces() {
	mkdir "$work/plain/t" "$work/plain/n"
	python3 report.py trace "$work/plain/t"
	report --json "$work/plain/t" >"$work/got"
	python3 report.py traced "$work/got"
	report -o "$work/page.html" "$work/plain/t"
	python3 report.py page "$work/page.html" "4 ranks of sim on 2 hosts wrote 320 kB in pieces of 1,000 bytes, each process one piece behind the other" \
		"it took 3.1 s" "the slowest took 100 ms, of rank 2 on n2" "4 processes read 2.0 kB" "4 calls on the file failed" "job 4711"
	report --format=csv "$work/plain/t" | cut -d, -f 2,3,4,6 >"$work/got"
	printf '%s\n' no,rank,host,bytes 0,0,n1,80000 1,1,n1,80000 2,2,n2,80000 3,3,n2,80000 | diff - "$work/got"
	report --format=perfetto "$work/plain/t" >"$work/got"
	python3 report.py perfetto_calls "$work/got"
}

# Each bad trace gets one line, and the others count.
report_traces_wrong() {
	local what
	mkdir "$work/plain/t"
	for what in "cut:not a trace, or cut in its header: left out:3" "damaged:what stands behind the damage is left out:4" \
		"full:did not fit into the traces:4" "torn::4" "killed::4"; do
		rm -f "$work"/plain/t/*
		python3 report.py trace "$work/plain/t" "${what%%:*}"
		report -o "$work/page.html" "$work/plain/t" 2>"$work/err"
		cat "$work/err"
		python3 report.py page "$work/page.html" "${what##*:} ranks of sim"
		what=${what%:*}
		[ "$(wc -l <"$work/err")" = "$([ -n "${what#*:}" ] && echo 1 || echo 0)" ]
		grep -F "${what#*:}" "$work/err" || [ -z "${what#*:}" ]
	done
	grep -F "1 process did not come to its end" "$work/page.html"
	python3 report.py trace "$work/plain/t" newer
	lines=4 wrong 1 "a trace of a newer version of libplfs" report -o "$work/page.html" "$work/plain/t"
}

report_stats_wrong() {
	strided s
	strided other
	report --json "$back/s" >"$work/facts"
	python3 report.py stats "$work/facts" /plfs/s cut >"$work/job.jsonl"
	wrong 0 "$work/job.jsonl: line 6 is not whole" report -o "$work/page.html" "$back/s" "$work/job.jsonl"
	python3 report.py page "$work/page.html" "4 ranks of writer" "line 6 is not whole"
	lines=2 wrong 0 "it is of another job" report -o "$work/page.html" "$back/other" "$work/job.jsonl"
	python3 report.py page "$work/page.html" "4 processes on 1 host" "it is of another job"
	python3 report.py stats "$work/facts" /plfs/s newer >"$work/job.jsonl"
	wrong 1 "4 lines are of a newer version of libplfs" report -o "$work/page.html" "$back/s" "$work/job.jsonl"
	# objects, but not of ours
	python3 report.py stats "$work/facts" /plfs/s | sed '1s/"sizes": \[0, 0/"sizes": ["x", null/; 2s/"common": \[/"common": [3, /' >"$work/job.jsonl"
	wrong 0 "line 1 is not whole, and 1 more" report -o "$work/page.html" "$work/job.jsonl"
	python3 report.py page "$work/page.html" "2 ranks of writer"
	printf '{"plfs_stats": 1, "job":' >"$work/job.jsonl"
	wrong 1 "line 1 is not whole" report -o "$work/page.html" "$back/s" "$work/job.jsonl"
}

report_wrong() {
	strided s
	mkdir "$back/none"
	rm -f "$work/page.html"
	wrong 1 "No such file" report -o "$work/page.html" "$back/nonexistent"
	wrong 1 "no file below it is stored in logs" report -o "$work/page.html" "$back/none"
	wrong 2 "no file given" report
	wrong 2 "none of the formats" report --format=pdf "$back/s"
	wrong 1 "$work/none/page.html: No such file or directory" report -o "$work/none/page.html" "$back/s"
	wrong 1 "standard output: No space left" sh -c "'$work/usr/bin/plfs' report '$back/s' >/dev/full"
	wrong 1 "python3: No such file or directory" env PATH=/nonexistent "$work/usr/bin/plfs" report -o "$work/page.html" "$back/s"
	wrong 1 "share/libplfs/report/main.py, is not installed" "$plfs" report -o "$work/page.html" "$back/s"
	[ ! -e "$work/page.html" ]
	printf garbage | dd of="$back/s" conv=notrunc
	lines=2 wrong 1 "damaged stub" report -o "$work/page.html" "$back/s"
	strided d
	printf X | dd of="$(find "$("$plfs" stat --json "$back/d" | sed 's/.*"container": "\([^"]*\)".*/\1/')" -name 'index.*')" bs=1 seek=100 conv=notrunc
	report "$back/d" 2>"$work/err" | grep "1 block of the index cannot be used"
}
