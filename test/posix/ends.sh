# SPDX-License-Identifier: BSD-3-Clause
# variants: virtual inplace strict
# The ends of programs, and of disks: what had been written is there, what could not be written was reported.
. "$HERE/common.bash"

_ends() { # HOW
	_need "$BIN/ending"
	(sh -c '"$BIN/ending" "$@"; echo "$1: $?"' sh $1 $P/f $P/s) 2>/dev/null
	tr -s b <$P/f
	echo " and $(cat $P/s)"
	wc -c <$P/f
	rm $P/f $P/s # LIMITS: of a killed process the size may be short until the next open
}

every_end_keeps_what_was_written() {
	local how
	for how in return exit _exit quick_exit abort flushed_abort kill flushed_kill segv term pipe handled exec pthread_exit \
		thread_exit thread_abort; do
		_ends $how
	done
}

# The size is right for the next who opens it, and for stat() as soon as somebody has written and closed it.
files_of_killed_programs_go_on() {
	_need "$BIN/ending"
	(sh -c '"$BIN/ending" kill $P/f $P/s'; sh -c '"$BIN/ending" kill $P/f $P/s') 2>/dev/null
	echo appended >>$P/f
	tr -s b <$P/f
	stat -c %s $P/f
	: >$P/s
	cp $P/f $P/g
	cat $P/f | cmp - $P/g && echo same
	truncate -s 20 $P/f
	cat $P/f
}

written_late_by_shells_and_python() {
	(
		sh -c 'sh -c "echo one >$P/a; kill -9 \$\$"; echo $?'
		sh -c 'dash -c "exec 3>>$P/b; echo two >&3; (echo three >&3; kill -9 \$\$)"; echo $?'
		sh -c '/usr/bin/python3 -c "import os; f = open(os.environ[\"P\"] + \"/c\", \"w\"); f.write(\"four\"); f.flush(); os.abort()"; echo $?'
	) 2>/dev/null
	/usr/bin/python3 -c 'import os; f = open(os.environ["P"] + "/d", "w"); f.write("five"); os._exit(0)'
	/usr/bin/python3 -c 'import os; f = open(os.environ["P"] + "/e", "w"); f.write("six")'
	/usr/bin/python3 -c 'import os; f = open(os.environ["P"] + "/g", "w"); f.write("seven"); os.kill(os.getpid(), 2); input()' 2>/dev/null
	cat $P/a $P/b $P/c $P/d $P/e $P/g
	rm $P/a $P/b $P/c
}

a_terminal_hangs_up() {
	/usr/bin/python3 - <<'END'
import os, pty, time
pid, fd = pty.fork()
if pid == 0:
    os.execvp('bash', ['bash', '-c', 'exec 3>>$P/log; echo before >&3; echo ready; read line; echo "after $?" >&3; sleep 9'])
while b'ready' not in os.read(fd, 100):
    pass
os.close(fd)
print(os.waitpid(pid, 0)[1])
END
	cat $P/log
	rm $P/log
}

# A backend that fails: big writes and syncs say so, what was written before is there.
_failing() {
	_need "$BIN/failing"
	export LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}$BIN/failing FAILING_WHEN
	FAILING_WHEN=$(mktemp -u)
}

errors_of_the_backend_are_reported() {
	_not_sanitized
	_failing
	head -c 300000 /dev/zero | tr '\0' a >$P/a
	cp $P/a $P/b
	# The library's line of the fsync(), which has no place on a plain file system.
	/usr/bin/python3 - 2>&1 <<'END' | grep -v 'fsync(): its log is not on stable storage'
import os
p, when = os.environ['P'], os.environ['FAILING_WHEN']
big, small = b'x' * 200000, b'y' * 100
fd = os.open(p + '/f', os.O_RDWR | os.O_CREAT)
print(os.write(fd, big), os.write(fd, small), os.fsync(fd))
open(when, 'w').close()
for call in (lambda: os.pwrite(fd, b'z' * 200000, 200100), lambda: os.fsync(fd)):
    try:
        print('no error', call())
    except OSError as e:
        print(e)
print(len(os.pread(fd, 400000, 0)), os.pread(fd, 400000, 0) == big + small)
os.unlink(when)
print(os.write(fd, b'again'), os.fsync(fd), os.pread(fd, 10, 200095))
os.close(fd)
END
	: >"$FAILING_WHEN"
	dd if=$P/a of=$P/b bs=128k conv=notrunc status=none 2>&1
	echo $?
	dd if=$P/a of=$P/c bs=100k status=none 2>&1
	echo $?
	rm -f "$FAILING_WHEN" $P/c
	cmp $P/a $P/b && md5sum <$P/f
}
