# SPDX-License-Identifier: BSD-3-Clause
# Programs, scripts and libraries below the directory are built, run and loaded.

_hello() { # FILE: a program that says its name, its arguments and what is on its standard input
	cat >"$1" <<'END'
#include <stdio.h>
int main(int argc, char **argv)
{
	int c;
	for (int i = 0; i < argc; i++)
		printf("%s%c", argv[i], i + 1 < argc ? ' ' : '\n');
	while ((c = getchar()) != EOF)
		putchar(c);
	return argc;
}
END
}

compiled_and_run() {
	_hello $P/hello.c
	gcc -o $P/hello $P/hello.c || return
	echo input | $P/hello a 'b c'
	echo "status $?"
	cd $P && ./hello again </dev/null >out
	echo "status $?"
	cat out
	(exec -a other ./hello </dev/null)
	md5sum <hello >sum && ./hello </dev/null && md5sum -c <sum 2>&1 | sed 's/^-/stdin/'
	ls -l hello | cut -c1-10
	rm hello out sum
}

made_by_make() {
	mkdir $P/src && cd $P/src && _hello main.c
	printf 'int twice(int x) { return 2 * x; }\n' >lib.c
	printf 'prog: main.o libtwo.a\n\t$(CC) -o $@ $^\nlibtwo.a: lib.o\n\tar rcs $@ $^\ntest: prog\n\t./prog from make </dev/null || true\n' >Makefile
	make -s test && make test
	touch lib.c && make -s test
	make -s test
	rm -r $P/src
}

scripts() {
	printf '#!/bin/sh\necho "$0: $# $*"; read l && echo "$l"; exit 5\n' >$P/s
	chmod +x $P/s
	echo line | $P/s 1 '2 3'
	echo "status $?"
	cd $P && ./s here </dev/null
	PATH=$P:$PATH && s in path </dev/null
	env s in env </dev/null
	# shellcheck disable=SC2211 # one directory has it
	cd / && (cd $P/.. && ./*/s up </dev/null | sed 's/.*case[^/]*/DIR/')
	printf '#!/usr/bin/env python3\nimport sys; print(sys.argv, __file__)\n' >$P/p
	chmod +x $P/p
	$P/p a b
	printf '#! \t/bin/echo  one   two \t \nnothing\n' >$P/e
	chmod +x $P/e
	$P/e three
	printf 'echo "no first line $0 $*"\n' >$P/n
	chmod +x $P/n
	$P/n x y
	cd $P && ./n z
	env $P/n through env
	dash -c "$P/n through dash"
}

interpreters_below() {
	cp /bin/cat $P/cat
	printf '#!%s/cat\nmore\n' $P >$P/s1
	printf '#!%s/s1 arg\n' $P >$P/s2
	chmod +x $P/s1 $P/s2
	$P/s1
	cd $P && ./s1
	$P/s2 2>&1 | sort
	printf '#!%s/none\n' $P >$P/s3
	chmod +x $P/s3
	env $P/s3
	echo "status $?"
	mkdir $P/d
	printf '#!%s/d\n' $P >$P/s4
	chmod +x $P/s4
	env $P/s4
	printf '#!%s/loop\n' $P >$P/loop
	chmod +x $P/loop
	env $P/loop
	printf '#!\n' >$P/s5
	(printf '#!/bin/'; head -c 300 /dev/zero | tr '\0' x; echo) >$P/s6
	(printf '#!/bin/echo '; head -c 300 /dev/zero | tr '\0' x; echo) >$P/s7
	chmod +x $P/s[567]
	for s in $P/s[567]; do
		python3 -c 'import os, sys; os.execv(sys.argv[1], ["a", "b"])' $s 2>&1 | tail -n 1
	done
	rm $P/s? $P/loop
}

interpreter_elsewhere() {
	cp /bin/cat $P/cat
	dir=$(mktemp -d)
	printf '#!%s/cat\nelsewhere\n' $P >$dir/s
	chmod +x $dir/s
	$dir/s
	rm -r $dir
}

what_cannot_be_run() {
	cp /bin/true $P/t && chmod -x $P/t
	: >$P/empty
	printf '\177ELF and no more' >$P/broken
	head -c 3000 /dev/zero >$P/zeros
	mkdir $P/d
	chmod +x $P/empty $P/broken $P/zeros
	ln -s nowhere $P/dangling
	for f in t empty broken zeros d none dangling t/below; do
		python3 -c 'import os, sys
try: os.execv(sys.argv[1], ["x"])
except OSError as e: print(e.strerror)' $P/$f
		bash -c "$P/$f" 2>&1 | sed 's/line [0-9]*: //'
	done
	$P/empty
	echo "status $?"
}

# A copy of cat, which runs when this returns, and ends when $in is closed; $pid is its process.
_run_on() { # FILE
	local line
	coproc "$1"
	pid=$COPROC_PID in=${COPROC[1]}
	echo runs >&$in && read -r line <&${COPROC[0]} && echo $line
}

written_while_run() {
	local pid in
	cp /bin/sleep $P/s
	(exec 5>>$P/s && python3 -c 'import os, sys
try: os.execv(sys.argv[1], ["s", "0"])
except OSError as e: print(e.strerror)' $P/s)
	(exec 5<$P/s && $P/s 0 && echo read meanwhile)
	$P/s 0 && echo afterwards
	cp /bin/cat $P/s
	_run_on $P/s
	(echo x >>$P/s) 2>&1 | sed 's/.*: //'
	exec {in}>&-
	wait $pid
	cmp /bin/cat $P/s && echo unchanged
	cp /bin/true $P/s && $P/s && echo replaced
}

links_and_modes() {
	cp /bin/echo $P/e
	ln -s e $P/l
	ln $P/e $P/hard
	$P/l through a link
	$P/hard through a hard link
	ls -l $P | awk 'NR > 1 { print $1, $2, $5 }'
	mkdir $P/bin && ln -s $P/bin $P/b && cp /bin/echo $P/bin && chmod 555 $P/bin/echo && touch -d 2020-02-02 $P/bin/echo
	$P/b/echo through a directory
	stat -c '%a %Y %s' $P/bin/echo
}

storm() {
	cp /bin/echo $P/e
	for i in $(seq 50); do
		$P/e $i &
	done | sort -n | tr '\n' ' '
	echo
	$P/e after
	ls -A $P
}

storm_of_a_file_in_use() {
	cp /bin/echo $P/e
	exec 5<$P/e
	for i in $(seq 20); do
		$P/e $i &
	done | sort -n | tr '\n' ' '
	exec 5<&-
	cmp /bin/echo $P/e && echo same
}

static_binary() {
	printf '#include <stdio.h>\nint main(void) { puts("static"); fflush(stdout); fputs("more\\n", stderr); return 0; }\n' >$P/s.c
	gcc -static -o $P/s $P/s.c || return
	$P/s
	$P/s >$P/out
	cat $P/out
	$P/s >$P/both 2>&1
	cat $P/both
	(echo before; $P/s; echo after) >$P/mixed
	cat $P/mixed
	rm $P/s
}

environment_in_all_forms() {
	cp /usr/bin/env /bin/cat $P
	echo text >$P/f
	env -i $P/cat $P/f
	env -i $P/env $P/cat $P/f
	env -i PATH=$P cat $P/f
	(unset LD_PRELOAD PLFS_MAP; exec $P/cat $P/f)
	python3 -c 'import os, sys; os.execve(sys.argv[1], ["cat", sys.argv[2]], {})' $P/cat $P/f
	python3 -c 'import os, sys; p = os.posix_spawn(sys.argv[1], ["cat", sys.argv[2]], {}); os.waitpid(p, 0)' $P/cat $P/f
}

python_extension() {
	cat >$P/ext.c <<'END'
#include <fcntl.h>
#include <unistd.h>
#include <stdlib.h>
__attribute__((visibility("default"))) int save(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	return fd < 0 ? -1 : (int)write(fd, "from C\n", 7) + close(fd);
}
/* A module with nothing in it, without Python's headers: the stable interface, written down. */
struct head { long refs; void *type; };
struct base { struct head head; void *init; long index; void *copy; };
static struct { struct base base; const char *name, *doc; long size; void *methods, *slots, *traverse, *clear, *free; } def = {
	.base = {.head = {1, 0}}, .name = "ext", .size = -1,
};
extern void *PyModule_Create2(void *def, int version);
void *PyInit_ext(void) { return PyModule_Create2(&def, 1013); }
END
	gcc -shared -fPIC -o $P/ext.so $P/ext.c || return
	cd $P
	python3 -c 'import sys; sys.path.insert(0, "'$P'"); import ext; print(ext.__name__, ext.__file__)'
	python3 -c 'import sys; sys.path.insert(0, "."); import ext; print(ext.__file__.split("/")[-1])'
	python3 -c 'import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).save(sys.argv[2].encode()))' $P/ext.so $P/saved
	cat saved
	rm ext.so
}

libraries_beside_the_program() {
	mkdir $P/lib && cd $P/lib
	printf 'int three(void) { return 3; }\n' >three.c
	printf 'int three(void); int six(void) { return 2 * three(); }\n' >six.c
	printf '#include <stdio.h>\nint six(void); int main(void) { printf("%%d\\n", six()); return 0; }\n' >main.c
	gcc -shared -fPIC -o libthree.so three.c
	gcc -shared -fPIC -o libsix.so six.c -L. -lthree -Wl,-rpath,'$ORIGIN'
	gcc -o main main.c -L. -lsix -Wl,-rpath-link,. -Wl,-rpath,'$ORIGIN' || return
	./main
	$P/lib/main
	gcc -shared -fPIC -o libthree.so three.c && ./main
	python3 -c 'import ctypes; print(ctypes.CDLL("./libsix.so").six())'
	gcc -shared -fPIC -o libthree.so three.c && gcc -shared -fPIC -o libsix.so six.c -L. -lthree -Wl,-rpath,'$ORIGIN'
	python3 -c 'import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).six())' $P/lib/libsix.so
	rm lib*.so main
	gcc -shared -fPIC -o libthree.so three.c
	gcc -shared -fPIC -o libsix.so six.c -L. -lthree
	gcc -o main main.c -L. -lsix -Wl,-rpath-link,. || return
	LD_LIBRARY_PATH=. ./main
	LD_LIBRARY_PATH='$ORIGIN' ./main
	gcc -shared -fPIC -o libthree.so three.c && LD_LIBRARY_PATH=. python3 -c 'import ctypes; print(ctypes.CDLL("libthree.so").three())'
	gcc -shared -fPIC -o libthree.so three.c && LD_LIBRARY_PATH=. env ./main
	./main 2>/dev/null || echo "status $?"
	rm -r $P/lib
}

# The directory is another's: nothing can be made plain there.
other_users() {
	cp /bin/echo $P/e
	printf '#!/bin/sh\necho "${0##*/}" $*\n' >$P/s
	gcc -shared -fPIC -o $P/l.so -x c - <<<'int number = 4;'
	chmod 755 $P/[es]
	cat >$P/as_nobody <<'END'
import ctypes, os, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
def run(*args):
	pid = os.fork()
	if not pid:
		try:
			os.execv(args[0], args)
		except OSError as e:
			print(e.strerror, flush=True)
		os._exit(99)
	print(os.waitpid(pid, 0)[1], flush=True)
p = os.environ["P"]
run(p + "/e", "from a directory that is not ours")
run(p + "/e", "twice")
run(p + "/s", "a script")
run(p + "/private", "never")
run(p + "/as_nobody", "never")
print(ctypes.c_int.in_dll(ctypes.CDLL(p + "/l.so"), "number").value)
END
	cp $P/e $P/private && chmod 750 $P/private
	python3 $P/as_nobody
	$P/e now in place
	for mode in 555 500 4755 2711; do
		cp /bin/echo $P/m && chmod $mode $P/m && touch -d 2001-01-01 $P/m && $P/m $mode
		stat -c '%a %Y %s' $P/m
		rm -f $P/m
	done
	rm $P/l.so
}

unlinked_while_run() {
	local pid in
	cp /bin/cat $P/s
	_run_on $P/s
	rm $P/s
	exec {in}>&-
	wait $pid && echo ended
	cp /bin/echo $P/s && $P/s another
	mv $P/s $P/t && $P/t moved
	cp /bin/cat $P/t.new && mv $P/t.new $P/t && echo replaced | $P/t
}

made_plain_or_not() {
	cp /bin/echo $P/e
	cp -p $P/e $P/copy
	$P/e x
	[ $P/e -nt $P/copy ] || [ $P/e -ot $P/copy ] || echo "times are the same"
	cmp $P/e $P/copy && echo "bytes are the same"
	printf more >>$P/e
	tail -c 4 $P/e
	echo
	cp /bin/true $P/e
	$P/e && echo ran
	truncate -s 0 $P/e
	$P/e
	echo "status $?"
}

tools_that_spawn() {
	cp /bin/sort $P
	printf 'b\na\n' | $P/sort
	printf 'b\na\n' | xargs -n 1 $P/sort --version >/dev/null && echo xargs
	find $P -name sort -exec {} --version \; | head -n 1
	echo $P/sort --version | sh | head -n 1
	perl -e 'system("$ENV{P}/sort", "--version") == 0 and print "perl\n"' | tail -n 1
	timeout 5 $P/sort </dev/null && nice $P/sort </dev/null && echo timeout nice
	python3 -c 'import subprocess, os; print(subprocess.run([os.environ["P"] + "/sort"], input=b"2\n1\n", capture_output=True))'
	cd $P && python3 -c 'import subprocess; print(subprocess.run(["./sort"], input=b"2\n1\n", capture_output=True, cwd="."))'
	cd / && python3 -c 'import subprocess, os; print(subprocess.run(["./sort"], input=b"2\n1\n", capture_output=True, cwd=os.environ["P"]))'
}
