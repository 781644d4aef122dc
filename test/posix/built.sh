# SPDX-License-Identifier: BSD-3-Clause
# variants: virtual inplace
# What was compiled in the directory runs from there: programs, scripts, shared objects.
. "$HERE/common.bash"

built_program_runs_from_there() {
	_source_tree
	make -s
	./prog a
	echo $?
	$P/src/prog a b
	echo $?
	(exec ./prog exec)
	PATH=$P/src:$PATH prog by path
	env -i $P/src/prog without environment
	echo x | xargs ./prog
	/usr/bin/python3 -c 'import subprocess; print(subprocess.run(["./prog", "x"], capture_output=True))'
	printf '#!/bin/sh\necho script "$@"\n' >s
	printf '#!%s\n' "$P/src/prog" >interpreted
	chmod +x s interpreted
	./s 1 2
	./interpreted
	rm interpreted # it holds a path
	printf 'import sys\nprint(sys.argv[1:])\n' | sed '1i #!/usr/bin/env python3' >py
	chmod +x py
	PATH=/usr/bin:$PATH ./py arg
	(ulimit -c 0; cp prog noexec; chmod -x noexec; ./noexec) 2>&1 | sed 's/.*: //'
	./none 2>&1 | sed 's/.*: //'
	make -s clean
}

shared_objects_loaded_from_there() {
	_source_tree
	gcc -shared -fPIC -o libpart.so part.c
	gcc -o linked main.c -L. -lpart
	cp libpart.so /tmp/plfs-apps.$$
	LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}/tmp/plfs-apps.$$ ./linked one # LIMITS: ld.so finds no library below a prefix
	/usr/bin/python3 -c 'import ctypes, os; print(ctypes.CDLL(os.environ["P"] + "/src/libpart.so").part(2))'
	rm -f /tmp/plfs-apps.$$ linked libpart.so
}
