# SPDX-License-Identifier: BSD-3-Clause
# variants: virtual inplace
# Other libraries in the same process: memory allocators that are preloaded too, in either order, and sanitizers.
. "$HERE/common.bash"

_many_ways() { # what allocates while it reads and writes
	sh -c 'echo one >$P/a; cat $P/a; (echo two; /bin/echo three) >>$P/a; sort -r $P/a >$P/b; cat $P/b' 2>&1
	# python 3.12 and newer warns of a fork beside threads, among them some that have been joined and end just now
	/usr/bin/python3 -W ignore - <<'END' 2>&1
import os, threading, subprocess
p = os.environ['P'] + '/'
def work(i):
    for n in range(20):
        with open(p + 't%d' % i, 'ab') as f:
            f.write(bytes([65 + i]) * 5000)
ts = [threading.Thread(target=work, args=(i,)) for i in range(6)]
[t.start() for t in ts], [t.join() for t in ts]
print([os.path.getsize(p + 't%d' % i) for i in range(6)])
pid = os.fork()
if pid == 0:
    open(p + 'child', 'w').write('child')
    os._exit(0)
print(os.waitpid(pid, 0)[1], open(p + 'child').read(), subprocess.run(['wc', '-c'], stdin=open(p + 't1'), capture_output=True).stdout)
END
	"$BIN/checked" 2>&1
	"$BIN/streams" >$P/streams 2>&1 || echo "streams: $?"
	tail -n 1 $P/streams
}

_beside() { # LIBRARY ORDER
	local library
	_not_sanitized
	_need "$BIN/checked"
	library=$(ldconfig -p | sed -n "s/.*$1.* => //p" | head -n 1)
	[ -n "$library" ] || _need "$1"
	if [ "$2" = before ]; then
		export LD_PRELOAD=$library${LD_PRELOAD:+:$LD_PRELOAD}
	else
		export LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}$library
	fi
	grep -c "${library##*/}" /proc/self/maps | sed 's/[1-9].*/loaded/'
	_many_ways
}

jemalloc_before() { _beside libjemalloc.so.2 before; }
jemalloc_after() { _beside libjemalloc.so.2 after; }
tcmalloc_before() { _beside libtcmalloc_minimal.so.4 before; }
tcmalloc_after() { _beside libtcmalloc_minimal.so.4 after; }
mallopt_debug_before() { _beside libtcmalloc_minimal_debug.so.4 before; }

_sanitized() { # NAME: checked.c built so
	_not_sanitized
	(
		unset LD_PRELOAD PLFS_MAP
		flock 9
		[ "$BIN/checked.$1" -nt "$HERE/programs/checked.c" ] ||
			gcc -g -O1 -fsanitize=$1 -Wno-unused-result -pthread -o "$BIN/checked.$1" "$HERE/programs/checked.c" 2>/dev/null
	) 9>"$BIN/checked.lock"
	_need "$BIN/checked.$1"
}

# gcc's sanitizer looks whether it is the first library (libplfs.7, LD_PRELOAD); clang's is linked in.
address_sanitizer() {
	local asan
	_sanitized address
	asan=$(gcc -print-file-name=libasan.so)
	LD_PRELOAD=$asan${LD_PRELOAD:+:$LD_PRELOAD} "$BIN/checked.address" 2>&1
	cat $P/out
	ASAN_OPTIONS=verify_asan_link_order=0 "$BIN/checked.address" 2>&1
	cat $P/out
}

# Before gcc 11 its realpath() calls nothing until it has started, which is after a library in front of it.
thread_sanitizer() {
	[ "$(gcc -dumpversion | cut -d. -f1)" -gt 10 ] || { echo "gcc before 11 has one that starts too late"; exit 77; }
	_sanitized thread
	TSAN_OPTIONS=detect_deadlocks=0 LD_PRELOAD=$(gcc -print-file-name=libtsan.so)${LD_PRELOAD:+:$LD_PRELOAD} \
		"$BIN/checked.thread" 2>&1
	grep -v '^a child$' $P/out # who is no program of the sanitizer's, and does not always start with it
	"$BIN/checked.thread" 2>&1
	cat $P/out
}

undefined_behaviour_sanitizer() {
	_sanitized undefined
	"$BIN/checked.undefined" 2>&1
	cat $P/out
}

clang_sanitizers() {
	local s
	_not_sanitized
	_need clang
	for s in address thread; do
		(
			unset LD_PRELOAD PLFS_MAP
			flock 9
			[ "$BIN/checked.clang-$s" -nt "$HERE/programs/checked.c" ] ||
				clang -g -O1 -fsanitize=$s -Wno-unused-result -pthread -o "$BIN/checked.clang-$s" "$HERE/programs/checked.c"
		) 9>"$BIN/checked.lock"
		"$BIN/checked.clang-$s" 2>&1
		cat $P/out
	done
}

# A library that hears of every map does the system call by number, as UCX below MPI, which overwrites the code of the C
# library's mmap(). Maps of files are made by the program, and by ours, which shares memory with the other process.
mmap_by_number_behind() {
	_not_sanitized
	(
		unset LD_PRELOAD PLFS_MAP
		gcc -O1 -shared -fPIC -o "$BIN/by_number.$$.so" -x c - <<-'END' && mv "$BIN/by_number.$$.so" "$BIN/by_number.so"
			#define _GNU_SOURCE
			#include <sys/mman.h>
			#include <sys/syscall.h>
			#include <unistd.h>
			void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
			{
				return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
			}
			void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t off) __attribute__((alias("mmap")));
		END
	)
	_need "$BIN/by_number.so"
	export LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}$BIN/by_number.so
	/usr/bin/python3 - <<'END' 2>&1
import mmap, os, subprocess, sys
other = """if 1:
    import os, sys
    fd = os.open(os.environ['P'] + '/a', os.O_RDWR)
    for line in sys.stdin:
        print(eval(line), flush=True)
"""
fd = os.open(os.environ['P'] + '/a', os.O_RDWR | os.O_CREAT, 0o644)
p = subprocess.Popen([sys.executable, '-c', other], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def there(line):
    print(line, file=p.stdin, flush=True)
    return p.stdout.readline().strip()
for n in range(50):
    os.pwrite(fd, bytes([65 + n]) * (1 << 20), 0)
    there('os.pwrite(fd, b"%d" * 700, 5000 + %d)' % (n, 7 * n))
    print(os.pread(fd, 6, 5000 + 7 * n), there('os.pread(fd, 3, 4990)'), there('os.pread(fd, 3, %d)' % (5002 + 7 * n)))
with mmap.mmap(fd, 1 << 20) as m:
    print(m[5000:5010], m[0:3])
    m[3:6] = b'map'
    print(os.pread(fd, 8, 0), there('os.pread(fd, 8, 0)'))
END
	md5sum <$P/a
}
