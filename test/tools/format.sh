# SPDX-License-Identifier: BSD-3-Clause
# The format, sourced by run: plfs-format(5) as a program, format.py, reads what the library wrote.

by_the_book() { # NAME: read by format.py, it is what the library says
	"$plfs" run -m "$map" cat "/plfs/$1" >"$work/want"
	python3 format.py "$back" "$1" | cmp "$work/want"
}

# The stub says whether anything of the file has been put on stable storage. Each way in a process of its own, which goes on when it has been.
synced_by() { # WAY: a sync of fd, of its file system, or of all; or flags of the open
	local way=$1 flags=0 call=pass
	[[ $way == O_* ]] && flags=os.$way || call=$way
	"$plfs" run -m "$map" python3 -c "
import ctypes, os, sys
fd = os.open('/plfs/f', os.O_RDWR | os.O_CREAT | $flags, 0o644)
os.pwrite(fd, b'x' * 5000, 100)
$call
print(flush=True)
sys.stdin.read()" <"$work/go" >"$work/ready" &
	exec 7>"$work/go" 8<"$work/ready"
	read -r <&8
	tail -c +4089 "$back/f" | head -c 8 | tr -d '\0' >"$work/word"
	exec 7>&- 8<&-
	wait $!
	rm -r "$back"/* "$back/.plfs"
	[ "$(cat "$work/word")" = PLFSSYNC ]
}

syncs() {
	local way
	mkfifo "$work/go" "$work/ready"
	for way in 'os.fsync(fd)' 'os.fdatasync(fd)' 'os.sync()' 'ctypes.CDLL(None).syncfs(fd)' O_SYNC O_DSYNC; do
		echo "$way"
		synced_by "$way"
	done
	! synced_by pass || return 1
}

format_page() {
	local block
	for block in 47 1000 9000; do # closed logs
		strided c
		by_the_book c
	done
	block=1000
	strided k kill # live files, over closed logs and with a truncation
	by_the_book k
	"$plfs" run -m "$map" sh -c 'truncate -s 123456 /plfs/k; truncate -s 300000 /plfs/k; echo end >>/plfs/k'
	strided k
	by_the_book k
	"$plfs" run -m "$map" sh -c ': >/plfs/k; seq 1 100000 >/plfs/k' # a new generation
	by_the_book k
	"$plfs" run -m "$map" python3 -c ' # a block of an array, by rows, by columns, and while it is written
import os, signal
f = os.open("/plfs/a", os.O_WRONLY | os.O_CREAT)
for at in 0, 20000:
    for z in range(6):
        for y in range(5):
            os.pwrite(f, b"%03d" % (z * 5 + y) * 10, at + z * 1000 + y * 100)
for y in range(5):
    for z in range(6):
        os.pwrite(f, b"%03d" % (z * 5 + y) * 10, 40000 + z * 1000 + y * 100)
os.close(f)
f = os.open("/plfs/a", os.O_WRONLY)
for z in range(6):
    for y in range(5):
        os.pwrite(f, b"%03d" % (z * 5 + y) * 10, 50000 + z * 1000 + y * 100)
os.kill(os.getpid(), signal.SIGKILL)' || true
	by_the_book a
	"$plfs" run -m "$map" python3 -c ' # logs that are gone on with, and synced, by their process and by another
import os
for r in range(4):
    f = os.open("/plfs/s", os.O_WRONLY | os.O_CREAT)
    for i in range(700):
        os.pwrite(f, b"%d" % (i % 10) * 37, i * 7919 % 700 * 50 + r * 11)
    if r % 2:
        os.fsync(f)
    if os.fork() == 0:
        os.fsync(os.open("/plfs/s", os.O_RDWR))
        os._exit(0)
    os.wait()
    os.pwrite(f, b"x" * 100000, 70000 * r)
    os.close(f)'
	by_the_book s
	# Many records: several blocks of a log, and index.global.
	"$plfs" run -m "$map" python3 -c '
import os, random
random.seed(1)
f = os.open("/plfs/r", os.O_WRONLY | os.O_CREAT)
for i in range(9000):
    os.pwrite(f, b"%06d" % i, random.randrange(1000000))'
	by_the_book r
	by_the_book r 2>&1 | grep 'index.global checked'
}
