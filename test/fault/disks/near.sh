# SPDX-License-Identifier: BSD-3-Clause
# Logs in a place (near=) on a file system that fills up, runs out of quota or fails; a backend that does, or hangs, while logs are near; and
# limits of the process. Sourced by run: the file system of its make_fs is the place, or the backend.

# near_map PLACE BACKEND [OPTIONS]: the place or the backend is $fs/d.
near_map() {
	near=$1 home=$2
	rm -rf "$work/other" && mkdir "$work/other"
	map="/p=$2{small=0,near=$1,drain=none${3:+,$3}}"
}

near_run() { # COMMAND...
	timeout -k 5 120 $AS env LD_PRELOAD="$preload" PLFS_MAP="$map" "$@"
}

near_drain() { # EXIT_CODE
	local rc=0
	$AS "$BUILD/plfs" drain "$near" >"$work/drain" 2>&1 || rc=$?
	cat "$work/drain"
	[ $rc = "$1" ]
}

near_logs() { find "$near" -name 'data.*' | wc -l; }

# near_fill HOW TYPE: the ranks of fill, with the place on $fs: each call says ok, and all is there, also after the drain.
near_fill() {
	near_map "$fs/d" "$work/other"
	near_run "$bin" "$1" /p/f 3 20000 1000 100 true >"$work/mapped.raw"
	cat "$work/mapped.raw"
	# btrfs tells it so late, of a page of the live file, that there is no way back: that may be said by all ranks.
	[ "$2" != btrfs ] || sed -i 's/: ENOSPC/: ok/; s/: EDQUOT/: ok/' "$work/mapped.raw"
	sort -u "$work/mapped.raw" >"$work/mapped.out"
	says mapped $'write: ok\nfsync: ok\nclose: ok'
	[ "$(near_logs)" -ge 1 ]
	[ "$(find "$work/other" -name 'data.*' | wc -l)" -ge 1 ]
	near_run sh -c 'cat /p/f*' | cksum >"$work/sum"
	near_drain 0
	[ "$(near_logs)" = 0 ]
	near_run sh -c 'cat /p/f*' | cksum | cmp - "$work/sum"
	"$BUILD/plfs" check -q -r "$work/other"
}

near_full() { # TYPE HOW
	make_fs "$1"
	near_fill "$2" "$1"
}

# 20 MiB for the directory.
quota() {
	make_fs btrfs
	rmdir "$fs/d"
	btrfs -q quota enable "$fs"
	btrfs -q subvolume create "$fs/d"
	btrfs -q qgroup limit 20M "$fs/d"
	rm "$fs/ballast"
}

near_out_of_quota() { # HOW
	quota
	near_fill "$1" btrfs
}

# What was synced is in the backend, and reads; the rest is an error. Writes there are errors, and those of the next process are not.
near_fails() { # TYPE
	make_fs "$1"
	rm "$fs/ballast"
	near_map "$fs/d" "$work/other"
	near_run python3 -c '
import errno, os, subprocess, sys
f = os.open("/p/f", os.O_RDWR | os.O_CREAT)
def fill(n, c, at):
    for i in range(n):
        os.pwrite(f, c * 10000, at + i * 10000)
fill(200, b"a", 0)
os.fsync(f)
fill(200, b"b", 2000000)
subprocess.run(sys.argv[1:], check=True, env={"PATH": os.environ["PATH"]})
said = set()
for call in (lambda: fill(2000, b"c", 4000000), lambda: os.fsync(f), lambda: os.close(f)):
    try:
        call()
        said.add("ok")
    except OSError as e:
        said.add(errno.errorcode[e.errno])
if not "EIO" in said or said - {"EIO", "ok", "EROFS"}:
    sys.exit(f"{said}")' xfs_io -x -c shutdown "$fs"
	near_run python3 -c '
import errno, os, sys
f = os.open("/p/f", os.O_RDONLY)
if os.pread(f, 2000000, 0) != b"a" * 2000000:
    sys.exit("what was synced")
for off in range(2000000, os.fstat(f).st_size, 10000):
    try:
        got = os.pread(f, 10000, off)
    except OSError as e:
        got = e.errno
    if got != errno.EIO and got != (b"b" if off < 4000000 else b"c") * len(got):
        sys.exit(f"at {off}: {got if isinstance(got, int) else got[:20]}")
open("/p/g", "wb").write(b"g" * 1000000)'
	[ "$(near_run cat /p/g 2>/dev/null | tr -d g | wc -c)" = 0 ]
	[ "$(near_run stat -c %s /p/g 2>/dev/null)" = 1000000 ]
}

# A file near, of 8 MB, and a backend that takes none of it: it stays, and reads; then it does.
home_takes_none() { # BREAK MEND [OPTIONS]
	near_map "$work/other" "$fs/d" "$3"
	head -c 8000000 /dev/urandom >"$work/plain/h"
	near_run cp "$work/plain/h" /p/h
	$1
	near_drain 75
	[ "$(near_logs)" = 1 ]
	$2
	near_run cmp "$work/plain/h" /p/h
	[ -z "$(find "$fs" -name '*.tmp.*')" ]
	near_drain 0
	near_run cmp "$work/plain/h" /p/h
	"$BUILD/plfs" check -q -r "$fs/d"
}

home_fails() { # TYPE
	make_fs "$1"
	rm "$fs/ballast"
	sync -f "$fs"
	break_home() { sync -f "$fs" && xfs_io -x -c shutdown "$fs"; }
	mend_home() { umount "$fs" && mount -o loop "$image" "$fs"; }
	home_takes_none break_home mend_home
}

home_out_of_quota() {
	quota
	break_home() { btrfs -q qgroup limit 1M "$fs/d"; }
	mend_home() { btrfs -q qgroup limit 100M "$fs/d"; }
	home_takes_none break_home mend_home
}

# A sync copies to the backend: without room there it says so, and nothing is lost.
home_full_at_a_sync() {
	make_fs tmpfs
	near_map "$work/other" "$fs/d"
	near_run python3 -c '
import errno, os, sys
f = os.open("/p/f", os.O_RDWR | os.O_CREAT)
data = os.urandom(40000000)
if os.pwrite(f, data, 0) != len(data):
    sys.exit("write")
try:
    os.fsync(f)
    sys.exit("fsync said nothing")
except OSError as e:
    if e.errno != errno.ENOSPC:
        raise
if os.pread(f, len(data), 0) != data:
    sys.exit("read")
os.remove(sys.argv[1])
os.fsync(f)
if os.pread(f, len(data), 0) != data:
    sys.exit("read")
os.close(f)' "$fs/ballast"
	rm -rf "$near"/plfs.*
	[ "$(near_run stat -c %s /p/f)" = 40000000 ]
	near_run cat /p/f >/dev/null
}

# The backend stands still while the helper copies to it, and while a process writes: all goes on afterwards. (That writes go on meanwhile is
# seen where it is not a file system of this host that is frozen: there the memory that processes share stands still too. test/mpi/near.sh)
home_hangs() { # TYPE
	local pid i
	make_fs "$1"
	rm "$fs/ballast"
	near_map "$work/other" "$fs/d"
	map=${map/drain=none/rate=1M}
	rm -f "$work/open" "$work/frozen"
	near_run python3 -c '
import os, sys, time
work = sys.argv[1]
f = os.open("/p/f", os.O_RDWR | os.O_CREAT)
os.write(f, b"f" * 100000)
open("/p/g", "wb").write(b"g" * 4000000)  # for the helper
open(work + "/open", "w").close()
while not os.path.exists(work + "/frozen"):
    time.sleep(0.05)
for i in range(200):
    os.write(f, b"f" * 100000)
    if os.pread(f, 100000, i * 100000) != b"f" * 100000:
        sys.exit("read")
os.close(f)' "$work" &
	pid=$!
	for ((i = 0; i < 1000; i++)); do [ ! -e "$work/open" ] || break; sleep 0.05; done
	fsfreeze -f "$fs"
	trap 'fsfreeze -u "$fs" 2>/dev/null' EXIT
	touch "$work/frozen"
	sleep 1
	kill -0 $pid
	fsfreeze -u "$fs"
	trap - EXIT
	wait $pid
	"$BUILD/plfs" drain --wait --timeout=100 "$near"
	[ "$(near_run cat /p/f | tr -d f | wc -c)" = 0 ]
	[ "$(near_run stat -c %s /p/f /p/g | xargs)" = "20100000 4000000" ]
	"$BUILD/plfs" check -q -r "$fs/d"
}

# The backend stands still for all of the time in which a process writes: it is thawed when all has been written. (A read in between would
# end the pattern of the writes. The next one then takes a stamp in memory that processes share, which is frozen too.)
home_hangs_all_the_time() { # TYPE SECONDS
	local pid rc=0
	make_fs "$1"
	rm "$fs/ballast"
	near_map "$work/other" "$fs/d"
	rm -f "$work/open" "$work/frozen" "$work/written"
	near_run python3 -c '
import os, sys, time
work, seconds = sys.argv[1], float(sys.argv[2])
f = os.open("/p/f", os.O_RDWR | os.O_CREAT)
os.write(f, b"f" * 100000)
open(work + "/open", "w").close()
while not os.path.exists(work + "/frozen"):
    time.sleep(0.05)
longest = 0
for i in range(200):
    began = time.time()
    os.write(f, b"f" * 100000)
    longest = max(longest, time.time() - began)
    time.sleep(seconds / 200)
open(work + "/written", "w").close()
for i in range(201):
    if os.pread(f, 100000, i * 100000) != b"f" * 100000:
        sys.exit("read")
os.close(f)
print(f"a write took {longest:.3f} s at most")' "$work" "$2" &
	pid=$!
	until [ -e "$work/open" ]; do kill -0 $pid && sleep 0.05; done
	fsfreeze -f "$fs"
	trap 'fsfreeze -u "$fs" 2>/dev/null' EXIT
	touch "$work/frozen"
	until [ -e "$work/written" ] || ! kill -0 $pid; do sleep 0.05; done
	[ -e "$work/written" ] || echo "the process has waited for the backend until it was killed"
	fsfreeze -u "$fs"
	trap - EXIT
	wait $pid || rc=$?
	[ $rc = 0 ]
	near_drain 0
	[ "$(near_run cat /p/f | tr -d f | wc -c)" = 0 ]
	[ "$(near_run stat -c %s /p/f)" = 20100000 ]
	"$BUILD/plfs" check -q -r "$fs/d"
}

# ---- limits ----

# 1 MB a file, and so a log: a write says so, what was written is there, and is drained.
file_size() {
	make_fs tmpfs
	rm "$fs/ballast"
	near_map "$work/other" "$fs/d"
	head -c 2000000 /dev/urandom >"$work/plain/two"
	# shellcheck disable=SC2016
	near_run bash -c 'ulimit -f 1000; trap "" XFSZ; dd if="$0" of=/p/two bs=100000' "$work/plain/two" 2>"$work/err" && return 1
	grep 'File too large' "$work/err"
	size=$(near_run stat -c %s /p/two)
	[ "$size" -ge 900000 ]
	near_run cmp -n "$size" "$work/plain/two" /p/two
	map=${map/drain=none/drain=helper}
	# shellcheck disable=SC2016
	near_run bash -c 'ulimit -f 1000; head -c 800000 "$0" >/p/three' "$work/plain/two"
	"$BUILD/plfs" drain --wait --timeout=100 "$near"
	near_run cmp -n "$size" "$work/plain/two" /p/two
	near_run cmp -n 800000 "$work/plain/two" /p/three
	"$BUILD/plfs" check -q -r "$fs/d"
}

# No process more for this user: no helper, one line, and nothing else.
no_processes() {
	local OLD_BUILD=$BUILD
	make_fs tmpfs
	rm "$fs/ballast"
	near_map "$work/other" "$fs/d"
	map=${map/drain=none/drain=helper}
	chmod 755 "$work"
	chown 54321 "$fs/d" "$work/other"
	local AS="setpriv --reuid=54321 --regid=54321 --clear-groups" preload=$work/libplfs.so BUILD=$work
	cp "$OLD_BUILD/libplfs.so" "$OLD_BUILD/plfs" "$work/" # where another user may read them
	# shellcheck disable=SC2016
	near_run bash -c 'ulimit -u 1; exec "$@"' bash dd if=/dev/zero of=/p/f bs=100000 count=20 2>"$work/err" || { cat "$work/err"; return 1; }
	cat "$work/err"
	[ "$(grep -c 'no helper can be started (Resource temporarily unavailable)' "$work/err")" = 1 ]
	[ "$(near_logs)" = 1 ]
	near_drain 0
	[ "$(near_run stat -c %s /p/f)" = 2000000 ]
}

# As little_memory of run, with a place.
near_little_memory() {
	mkdir -p "$work/other"
	OPTIONS="{small=0,near=$work/other}" little_memory 6000
	"$BUILD/plfs" drain --wait --timeout=100 "$work/other"
}

near_cases() {
	local type
	for type in tmpfs ext4 xfs btrfs; do
		can_make $type || continue
		case_ "near: $type fills up, strided" near_full $type strided
		long "near: $type fills up, appending" near_full $type append
	done
	if can_make btrfs; then
		case_ "near: a quota is used up" near_out_of_quota strided
		case_ "near: the quota of the backend is used up" home_out_of_quota
	fi
	for type in ext4 xfs; do
		can_make $type || continue
		case_ "near: $type fails" near_fails $type
		case_ "near: the backend fails, $type" home_fails $type
		case_ "near: the backend hangs, $type" home_hangs $type
		case_ "near: the backend hangs while a process writes, $type" home_hangs_all_the_time $type 2
		long "near: the backend hangs for a minute while a process writes, $type" home_hangs_all_the_time $type 60
	done
	case_ "near: no room in the backend for a sync" home_full_at_a_sync
	case_ "near: a limit of the size of files" file_size
	case_ "near: a limit of the number of processes" no_processes
	long "near: little memory" near_little_memory
}
