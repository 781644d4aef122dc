# SPDX-License-Identifier: BSD-3-Clause
# What files of cases share. No case lives here.

# Ends the case as skipped (77) where a program is missing.
_need() { # PROGRAM...
	local program
	for program; do
		command -v "$program" >/dev/null && continue
		echo "needs ${program##*/}"
		exit 77
	done
}

_need_module() { # of Python
	/usr/bin/python3 -c "import $1" 2>/dev/null && return
	echo "needs Python's $1"
	exit 77
}

# For programs that bring a memory allocator or a machine of their own.
_not_sanitized() {
	[ -z "$SANITIZED" ] && return
	echo "not under the sanitizer"
	exit 77
}

# A small program of two parts and its Makefile, in $P/src.
_source_tree() {
	_need make gcc ar
	mkdir $P/src
	cd $P/src
	printf '#include <stdio.h>\n#include "part.h"\nint main(int argc, char **argv)\n{\n\tprintf("%%d %%s\\n", part(argc), argv[argc - 1]);\n\treturn 3;\n}\n' >main.c
	echo 'int part(int x);' >part.h
	printf '#include "part.h"\nint part(int x)\n{\n\treturn x * 21;\n}\n' >part.c
	cat >Makefile <<'MAKE'
CFLAGS = -O1 -frandom-seed=1
prog: main.o libpart.a
	gcc -o $@ main.o -L. -lpart
libpart.a: part.o
	ar rcD $@ part.o
part.so: part.c
	gcc -shared -fPIC -o $@ part.c
%.o: %.c part.h
	gcc $(CFLAGS) -c -o $@ $<
clean:
	rm -f *.o *.a prog
MAKE
}

_counting() { # DATABASE PRAGMA: two processes, each 40 transactions
	local i
	sqlite3 $1 "$2; create table n(who, i); create table c(x); insert into c values(0);"
	for i in 1 2; do
		seq 1 40 | sed "s/.*/begin immediate; insert into n values($i, &); update c set x = x + 1; commit;/" |
			sqlite3 -cmd '.timeout 20000' $1 &
	done
	wait
	sqlite3 $1 'pragma integrity_check; select who, count(*), sum(i) from n group by who; select x from c;'
}
