# SPDX-License-Identifier: BSD-3-Clause
# shells: bash dash ksh93
# Shells: redirections, shared offsets, background writers.

redirect_append_and_read_line_by_line() {
	echo x >$P/a
	echo y >>$P/a
	while read -r l; do echo "got $l"; done <$P/a
}

read_write_descriptor() {
	echo 0123456789 >$P/f
	exec 3<>$P/f
	read -r l <&3
	echo "$l"
	echo more >&3
	exec 3>&-
	cat $P/f
	exec 3<>$P/f
	printf AB >&3
	cat <&3
	exec 3<&-
	cat $P/f
}

noclobber() {
	set -C
	echo one >$P/a
	(echo two >$P/a) 2>/dev/null || echo refused
	echo three >|$P/a
	cat $P/a
}

here_documents() {
	cat >$P/a <<END
first $((1 + 1))
END
	cat - $P/a <<'END'
second $HOME
END
}

descriptors_moved_and_closed() {
	exec 5>$P/a
	exec 6>&5
	echo five >&5
	exec 5>&-
	echo six >&6
	(echo again >&6) 6>>$P/b
	exec 6>&-
	(echo nowhere >&6) 2>/dev/null || echo closed
	cat $P/a $P/b
}

subshell_shares_one_offset() {
	(echo a; /bin/echo b; /usr/bin/python3 -c 'print("c")'; (echo d; /bin/echo e); echo f | cat) >$P/o
	cat $P/o
}

group_with_stderr_in_same_file() {
	{ echo out; echo err >&2; /bin/echo out2; ls /nonexistent-$$ 2>&1 | sed 's/[0-9]//g'; } >$P/o 2>&1
	cat $P/o
}

readers_share_one_offset() {
	printf '1\n2\n3\n4\n5\n' >$P/a
	{ read -r x; read -r y; cat; } <$P/a
	echo "$x $y"
	(read -r x; echo "first $x"; (read -r x; echo "second $x"); read -r x; echo "third $x") <$P/a
}

child_appends_between_parents_writes() {
	exec 3>>$P/a
	echo one >&3
	/bin/echo two >&3
	echo three >$P/b
	cat $P/b >&3
	echo four >&3
	exec 3>&-
	cat $P/a
}

background_loops_append_whole_lines() {
	for i in 1 2 3 4 5 6 7 8; do
		(n=0; while [ $n -lt 50 ]; do printf 'writer %s line %s\n' $i $n >>$P/log; n=$((n + 1)); done) &
	done
	wait
	wc -l <$P/log
	sort $P/log | uniq -c | awk '$1 != 1 || $2 != "writer" || NF != 5' | head
	sort -o $P/log $P/log
}

background_loops_share_one_append_descriptor() {
	for i in 1 2 3 4; do
		(n=0; while [ $n -lt 50 ]; do printf 'writer %s line %s\n' $i $n; n=$((n + 1)); done) &
	done >>$P/log
	wait
	sort -o $P/log $P/log
	wc $P/log | sed "s| /.*||"
}

background_loops_share_one_offset() {
	for i in 1 2 3 4; do
		(n=0; while [ $n -lt 50 ]; do printf 'writer %s line %s\n' $i $n; n=$((n + 1)); done) &
	done >$P/log
	wait
	sort -o $P/log $P/log
}

overwrite_in_the_middle_by_child_is_seen() {
	echo 0123456789 >$P/f
	exec 3<>$P/f
	read -r x <&3
	printf XYZ | dd of=$P/f bs=1 seek=4 conv=notrunc 2>/dev/null
	cat $P/f
	exec 4<$P/f
	printf Q | dd of=$P/f bs=1 seek=2 conv=notrunc 2>/dev/null
	cat <&4
}

truncated_while_appending() {
	exec 3>>$P/log
	echo one >&3
	: >$P/log
	echo two >&3
	exec 3>&-
	cat $P/log
}

written_past_truncation_leaves_a_hole() {
	exec 3>$P/log
	echo one >&3
	: >$P/log
	echo two >&3
	exec 3>&-
	od -c $P/log
}

pipeline_into_and_out_of() {
	seq 1 1000 | tee $P/a | tail -n 2 >$P/b
	sort -rn <$P/a | head -n 3 >$P/c
	cat $P/b $P/c
	wc -l $P/a
}

test_operators() {
	: >$P/empty
	echo x >$P/full
	ln -s full $P/link
	mkdir $P/dir
	for f in empty full link dir none; do
		for op in e f d s h r w x L; do
			if test -$op $P/$f; then echo "$f -$op"; fi
		done
	done
	touch -d '2020-01-01' $P/empty
	[ $P/full -nt $P/empty ] && echo newer
	[ $P/full -ef $P/link ] && echo same
}

globs() {
	: >$P/a1; : >$P/a2; : >$P/b1; : >$P/.hidden; mkdir $P/d; : >$P/d/a3
	echo $P/a* $P/*/a? $P/*
	cd $P && echo * .[a-z]* */*
}

cd_and_pwd() {
	mkdir -p $P/a/b
	cd $P/a/b && pwd && /bin/pwd
	cd .. && pwd && /bin/pwd
	ln -s a/b $P/l
	cd $P/l && pwd && pwd -P && /bin/pwd -P
	cd ../.. && pwd
	cd $P/none 2>/dev/null || echo cannot
	echo x >$P/f
	cd $P/f 2>/dev/null || echo cannot
}

source_and_run_a_script() {
	echo 'echo sourced $1; v=7' >$P/s
	. $P/s
	echo $v
	printf '#!/bin/sh\necho script "$@"\n' >$P/x
	chmod +x $P/x
	sh $P/x one two
}

big_file_through_redirection() {
	head -c 3000000 /dev/zero | tr '\0' x >$P/big
	cat $P/big | wc -c
	cat <$P/big >$P/copy
	cmp $P/big $P/copy && echo same
}

exit_trap_writes() {
	(trap 'echo bye >>$P/log' EXIT; echo hello >>$P/log)
	(trap 'echo term >>$P/log; exit 3' TERM; sh -c 'kill -TERM $PPID'; sleep 1)
	echo $?
}

closed_standard_input_and_output() {
	(cat) <&- 2>/dev/null || echo no input
	(echo x) >&- 2>/dev/null || echo no output
	(exec 0<&-; cat <$P/none) 2>/dev/null || echo none
	(exec 1>&-; echo y >$P/a)
	cat $P/a
}
