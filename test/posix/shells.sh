# SPDX-License-Identifier: BSD-3-Clause
# variants: virtual inplace
# What one shell does and others do not: tcsh's redirections, ksh93's seeks, bash's and zsh-like conveniences, and
# scripts that lie in the directory.
. "$HERE/common.bash"

tcsh_redirections() {
	_need tcsh
	tcsh -f <<'TCSH'
echo x >$P/a
echo y >>$P/a
cat <$P/a
echo over >!$P/a
(echo out; ls /nonexistent) >&$P/both
(echo more) >>&$P/both
cat $P/both
set noclobber
echo no >$P/a
echo no >>$P/none
echo yes >!$P/a
echo yes >>!$P/new
cat $P/a $P/new | sort | tee $P/sorted
cat <<HERE >$P/here
home is $home
HERE
wc -l <$P/here
TCSH
}

tcsh_reads_line_by_line() {
	_need tcsh
	printf 'one\ntwo\nthree four\n' >$P/a
	tcsh -f -c 'while (1)
		set l = "$<"
		if ("$l" == "") break
		echo "got $l"
	end' <$P/a
	tcsh -f -c 'set first = "$<"; echo $first; cat' <$P/a
	tcsh -f -c 'foreach l ("`cat $P/a`")
		echo "[$l]"
	end'
}

tcsh_scripts_jobs_and_tests() {
	_need tcsh
	echo 'set v = sourced; echo $v $0 $#argv' >$P/s
	tcsh -f -c 'source $P/s; echo $v'
	tcsh -f $P/s one two | sed "s|$P||"
	tcsh -f -c 'set i = 0; while ($i < 30)
		echo line $i >>$P/log &
		@ i++
	end
	wait' >/dev/null
	sort $P/log | uniq -c | awk '$1 != 1 {print "lost or torn", $0}'
	wc -l <$P/log
	rm $P/log
	tcsh -f -c 'cd $P; : >empty; echo x >full; mkdir d; foreach f (empty full d none)
		if (-e $f) echo $f exists
		if (-z $f) echo $f empty
		if (-d $f) echo $f directory
		if (-s $f) echo $f has `filetest -Z $f`
		if (-w $f) echo $f writable
	end
	echo * ; pushd d >/dev/null; pwd; popd >/dev/null; echo $cwd'
}

ksh93_seeks_and_reads_on_descriptors() {
	_need ksh93
	ksh93 <<'KSH'
print -r 0123456789 >$P/f
exec 3<>$P/f
exec 3<#((4))
read -r -N 2 x <&3
print "$x at $(3<#)"
print -u3 -n XY
exec 3<#((0))
cat <&3
exec 3>&-
read -r -u4 y 4<$P/f
print $y
integer n=0
while read -r l; do ((n++)); done < <(seq 100 | tee $P/seq)
print $n $(<$P/seq) | wc
redirect 5>$P/five && print -u5 five
exec 6>&5 5>&-
print -u6 six; exec 6>&-
cat $P/five
KSH
}

bash_conveniences() {
	exec 7>$P/a 8<>$P/b {fd}>$P/c
	printf '%s\n' one two three >&7
	echo b >&8
	echo named >&$fd
	exec 7>&- 8>&- {fd}>&-
	mapfile -t lines <$P/a
	echo "${#lines[@]} ${lines[2]} $(<$P/b)"
	read -r -N 5 -u 9 part 9<$P/a
	printf '%q\n' "$part"
	{ echo out; echo err >&2; } &>$P/both
	{ echo out; echo err >&2; } &>>$P/both
	cat $P/both
	diff <(cat $P/a) <(sort $P/a) >$P/d
	cat $P/d
	# shellcheck disable=SC2018,SC2019 # letters of ASCII
	coproc tr a-z A-Z <$P/a >$P/upper
	wait $COPROC_PID
	cat $P/upper
	exec >$P/log 2>&1
	echo to the log
	/bin/echo and a child
	/bin/ls /nonexistent
	BASH_XTRACEFD=2
	set -x
	: traced
}

# A shell reads a script through a descriptor of its own (bash: 255) and comes back to it after each child.
scripts_lie_in_the_directory() {
	local shell
	cat >$P/script <<'SCRIPT'
echo "start $1"
/bin/echo child
(read -r l; echo "stdin: $l")
echo "appended line" >>$P/log
exec 5>&1 >$P/out.$1
echo "into the file"
/bin/echo "a child into the file"
exec >&5
printf 'echo "a line that the script wrote itself"\n' >>$P/script.$1
echo end
SCRIPT
	for shell in bash dash ksh93; do
		_need $shell
		cp $P/script $P/script.$shell
		echo input | $shell $P/script.$shell $shell
		cat $P/script.$shell | $shell -s $shell
	done
	cat $P/log
	bash -c 'bash -c "readlink /proc/\$\$/fd/255; :" <$P/log; echo "readlink /proc/\$\$/fd/255" >$P/self; bash $P/self'
}

standard_streams_opened_closed_and_swapped() {
	(
		exec 6>&1 5>$P/five
		exec 1>&5 5>&-
		echo one
		/bin/echo two
		exec 1>&6 6>&-
		echo back
	)
	(exec 3>&1 1>$P/out 2>$P/err; echo o; echo e >&2; { echo swapped; } 3>&2 2>&1 1>&3; echo to 3 >&3) | cat
	(exec 4<>$P/f 4>&-; echo x >&4) 2>/dev/null || echo closed
	(exec <&-; exec <$P/out; read -r l; echo "read $l")
	(exec >&-; exec >$P/late; echo late; /bin/echo child)
	(exec 2>&-; ls /nonexistent; exec 2>$P/late2; ls /nonexistent)
	(exec 0<>$P/rw 1>&0; echo through 0; read -r l </dev/null; /bin/echo child)
	cat $P/rw
}

# An emptied environment keeps what the library needs: the child's output goes where it belongs.
emptied_environment() {
	env -i /bin/echo child >$P/o
	env -i /bin/sh -c "echo a; /bin/echo b; cat $P/o" >>$P/o2
	(echo before; env -i /bin/echo within; echo after) >$P/o3
	# The address sanitizer would tell of Python's own leaks. The name has a P in it.
	env -i ${ASAN_OPTIONS:+ASAN_OPTIONS="$ASAN_OPTIONS"} /usr/bin/python3 -c 'import os; print(sorted(k for k in os.environ if "P" not in k))' >$P/o4
	cat $P/o $P/o2 $P/o3 $P/o4
	(exec -c /bin/sh -c "echo c; /bin/cat $P/o") >$P/o5
	cat $P/o5
	xargs -a $P/o -I{} env -i /bin/echo got {} >$P/o6
}

many_writers_through_pipes_and_files() {
	local i
	for i in 1 2 3 4 5 6 7 8; do
		(for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do printf '%s:%s:%0100d\n' $i $n 0 >>$P/log; done) &
	done
	wait
	wc <$P/log
	sort $P/log | uniq | wc -l
	awk -F: 'NF != 3 || length($3) != 100' $P/log
	sort -o $P/log $P/log
}

limits_and_traps() {
	(ulimit -n 48; for i in 3 4 5 6 7 8 9; do eval "exec $i>$P/f$i"; echo $i >&$i; done)
	(trap 'echo trapped >>$P/t' USR1; sh -c "kill -USR1 $BASHPID"; echo after >>$P/t)
	(trap '' PIPE; seq 1 20000 | head -n 1 >$P/h)
	(set -e; false >$P/never; echo not reached >>$P/never)
	dash -c 'bash -c "echo written; echo more; exec 3>>$P/k2; echo kept >&3; kill -9 \$\$" >$P/k; echo $?' 2>/dev/null
	cat $P/k $P/k2
	rm $P/k $P/k2 # LIMITS: the size that stat() shows may be short
}

# The library has its own descriptors there; the shell takes all numbers, and the files go on.
any_number_is_a_redirection() {
	command -v bash >/dev/null || exit 77
	bash -c 'ulimit -Sn 256
		exec 3>$P/a 4>>$P/b
		echo one >&3; echo two >&4
		for i in {150..255}; do eval "exec $i>/dev/null" || echo "not $i"; done
		echo three >&3; echo four >&4
		for i in {150..255}; do eval "exec $i>&-"; done
		for i in {150..255}; do { echo odd >&$i; } 2>/dev/null && echo "$i is open"; done
		echo five >&3; echo six >&4'
	cat $P/a $P/b
}
