# SPDX-License-Identifier: BSD-3-Clause
# variants: virtual inplace
# Programs that let the kernel copy: it must not copy stubs.

copy_on_write_if_possible() {
	seq 1 200000 >$P/a
	cp --reflink=auto $P/a $P/b; echo $?
	out=$(mktemp)
	cp --reflink=auto $P/a $out; echo $?
	cmp $P/a $out; echo $?
	cp --reflink=auto $out $P/c; echo $?
	rm $out
	cp --sparse=always $P/a $P/e; echo $?
}

one_offset_for_several_copies() {
	seq 1 1000 >$P/a
	(cat $P/a; cat $P/a; echo end) >$P/b
	(dd bs=100 count=1 status=none; cat) <$P/a >$P/c
	cat $P/a $P/b >>$P/c
	cat $P/a - <$P/b | cat >$P/d
}

_py() {
	/usr/bin/python3 -
}

python_copies() {
	seq 1 300000 >$P/a
	_py <<'END'
import os, shutil
p = os.environ["P"]
shutil.copyfile(p + "/a", p + "/b")
shutil.copy2(p + "/a", p + "/c")
with open(p + "/a", "rb") as a, open(p + "/d", "wb") as d:
    print(os.copy_file_range(a.fileno(), d.fileno(), 100000, 5, 7))
    print(os.copy_file_range(a.fileno(), d.fileno(), 1000))
    print(os.sendfile(d.fileno(), a.fileno(), 77, 5000), a.tell(), os.lseek(d.fileno(), 0, 1))
    print(os.sendfile(d.fileno(), a.fileno(), None, 5000), os.lseek(a.fileno(), 0, 1))
    r, w = os.pipe()
    print(os.splice(a.fileno(), w, 3000, offset_src=12), os.splice(r, d.fileno(), 2000, offset_dst=20000))
    print(len(os.read(r, 10000)))
END
}

a_web_server() {
	seq 1 500000 >$P/a
	_py <<'END'
import os, socket, threading, hashlib
p = os.environ["P"]
server = socket.create_server(("127.0.0.1", 0))
def serve():
    s, _ = server.accept()
    with open(p + "/a", "rb") as f:
        print("sent", s.sendfile(f))
        print("sent", s.sendfile(f, offset=1000, count=5000), f.tell())
    s.close()
t = threading.Thread(target=serve)
t.start()
c = socket.create_connection(server.getsockname())
h = hashlib.md5()
n = 0
while chunk := c.recv(1 << 16):
    h.update(chunk)
    n += len(chunk)
t.join()
print(n, h.hexdigest())
END
}
