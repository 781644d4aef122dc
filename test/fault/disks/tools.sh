# SPDX-License-Identifier: BSD-3-Clause
# tools.sh DIR BALLAST: programs that everybody has, in a directory on a disk that is full, and then is not any more. What they say of it, and
# what is there afterwards, is printed; test/fault/disks/run compares. How many bytes fit is not: logs need a little more than bytes.
cd "$1" || exit 1

# Each program's own words, without numbers, and its exit status.
said() { # PROGRAM...
	"$@" >"$ASK/words" 2>&1
	echo "${1##*/}: exit status $?"
	sed -e '/records\|bytes/d' -e 's/[0-9][0-9]*/N/g' "$ASK/words"
}

full() {
	said dd if=/dev/zero of=dd bs=100k count=1000
	said dd if=/dev/zero of=dd.sync bs=100k count=1000 conv=fsync
	said cp dd dd.sync dir
	said sh -c 'yes "a line" | head -c 60000000 >redirected'
	said bash -c 'for ((i = 0; i < 3; i++)); do echo $i >>appended || echo failed; done'
	said python3 -c '
import os
try:
    with open("python", "wb") as f:
        for i in range(60):
            f.write(b"%07d\n" % i * 125000)
        f.flush()
        print("no error")
except OSError as e:
    print(e.strerror)
n = os.path.getsize("python")
with open("python", "rb") as f:
    data = f.read()
print(len(data) == n, data[: n // 1000000 * 1000000] == b"".join(b"%07d\n" % i * 125000 for i in range(n // 1000000)))
'
}

sqlite() {
	sqlite3 db 'select count(*) from t; pragma integrity_check;'
}

mkdir dir
sqlite3 db 'create table t(a, b); insert into t select value, randomblob(100) from generate_series(1, 1000);'
echo "full, a file for each"
full
rm -f dd dd.sync dir/* redirected appended python
echo "full, a database"
said sqlite3 db 'insert into t select value, randomblob(1000) from generate_series(1, 100000);'
# To take that back it writes over bytes that are there: under the library that takes space, so it is not asked for more now.
echo "rm -f $2" >"$ASK/ask"
cat "$ASK/answer"
echo "not full any more"
said dd if=/dev/zero of=dd bs=100k count=100 conv=fsync
said cp dd dir
sqlite
said sqlite3 db 'insert into t select value, randomblob(1000) from generate_series(1, 2000);'
sqlite
cmp dd dir/dd && cksum dd
