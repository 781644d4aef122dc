# SPDX-License-Identifier: BSD-3-Clause
# variants: virtual inplace
# Python's ways to a file.

_py() {
	/usr/bin/python3 -
}

open_in_all_modes() {
	_py <<'END'
import os
p = os.environ['P'] + '/'
for mode in 'w', 'r', 'a', 'r+', 'w+', 'a+', 'x', 'rb', 'wb', 'ab', 'r+b', 'w+b', 'xb':
    try:
        with open(p + 'f', mode) as f:
            print(mode, f.tell(), f.seekable(), f.readable(), f.writable())
            data = b'some bytes\n' if 'b' in mode else 'some text\n'
            if f.writable():
                print(f.write(data), f.tell())
                f.flush()
            if f.readable():
                f.seek(0)
                print(f.read(), f.tell())
            if f.writable():
                f.truncate(7)
        print(os.path.getsize(p + 'f'))
    except OSError as e:
        print(mode, e.errno, e.strerror)
with open(p + 'raw', 'wb', buffering=0) as f:
    f.write(b'unbuffered')
    print(os.stat(p + 'raw').st_size)
with open(p + 'l', 'w', buffering=1) as f:
    f.write('line\nrest')
    print(open(p + 'l').read())
END
}

os_functions() {
	_py <<'END'
import os, stat
os.chdir(os.environ['P'])
fd = os.open('f', os.O_RDWR | os.O_CREAT, 0o640)
print(os.write(fd, b'0123456789'), os.pread(fd, 4, 3), os.pwrite(fd, b'XY', 5), os.lseek(fd, 0, os.SEEK_CUR))
print(os.pwritev(fd, [b'ab', b'cd'], 8), os.preadv(fd, [bytearray(3), bytearray(20)], 1))
os.lseek(fd, 0, 0)
print(os.readv(fd, [bytearray(2), bytearray(3)]), os.writev(fd, [b'-', b'=']))
os.ftruncate(fd, 9)
os.fsync(fd), os.fdatasync(fd)
st = os.fstat(fd)
print(oct(st.st_mode), st.st_size, st.st_nlink, os.path.samestat(st, os.stat('f')))
os.posix_fallocate(fd, 0, 20)
print(os.get_inheritable(fd), os.isatty(fd))
os.close(fd)
os.makedirs('a/b/c')
os.link('f', 'a/hard')
os.symlink('../f', 'a/soft')
os.rename('a/b', 'a/d')
os.replace('a/hard', 'f')
print(sorted((e.name, e.is_file(), e.is_dir(), e.is_symlink(), e.stat().st_size if e.is_file() else 0) for e in os.scandir('a')))
print([(d, sorted(ds), sorted(fs)) for d, ds, fs in os.walk('.')])
print(os.readlink('a/soft'), os.path.realpath('a/soft').rsplit('/', 1)[1], os.getcwd() == os.environ['P'])
os.utime('f', (1, 2))
print(os.stat('f').st_mtime_ns, os.access('f', os.W_OK), os.path.exists('none'))
for call in (lambda: os.rmdir('a'), lambda: os.unlink('none'), lambda: os.mkdir('a'), lambda: os.open('a', os.O_WRONLY), lambda: os.listdir('f')):
    try:
        call()
    except OSError as e:
        print(e)
END
}

shutil_and_tempfile() {
	_py <<'END'
import os, shutil, tempfile
p = os.environ['P'] + '/'
os.mkdir(p + 'd')
for i in range(5):
    with open(p + 'd/f%d' % i, 'w') as f:
        f.write('x' * i * 10000)
    os.utime(p + 'd/f%d' % i, (1000, 2000 + i))
shutil.copytree(p + 'd', p + 'e')
shutil.copy2(p + 'd/f3', p + 'copy')
shutil.move(p + 'e', p + 'm')
print(sorted(os.listdir(p + 'm')), os.stat(p + 'm/f2').st_mtime, os.stat(p + 'copy').st_mtime)
shutil.make_archive(p + 'arch', 'tar', p, 'd')
shutil.unpack_archive(p + 'arch.tar', p + 'un')
os.unlink(p + 'arch.tar')
shutil.rmtree(p + 'd')
print(shutil.disk_usage(p).total > 0)
with tempfile.TemporaryFile(dir=p) as t:
    t.write(b'temporary')
    t.seek(0)
    print(t.read())
with tempfile.NamedTemporaryFile(dir=p, suffix='.x') as t:
    t.write(b'named')
    t.flush()
    print(open(t.name).read())
with tempfile.TemporaryDirectory(dir=p) as d:
    open(d + '/in', 'w').write('in')
    print(os.listdir(d))
print(sorted(os.listdir(p)))
END
}

subprocesses() {
	_py <<'END'
import os, subprocess, sys
p = os.environ['P'] + '/'
with open(p + 'in', 'w') as f:
    f.write('c\na\nb\n')
with open(p + 'in') as i, open(p + 'out', 'w') as o:
    print(subprocess.call(['sort'], stdin=i, stdout=o))
print(open(p + 'out').read())
with open(p + 'log', 'w') as o:
    o.write('first\n')
    o.flush()
    subprocess.check_call(['sh', '-c', 'echo out; echo err >&2'], stdout=o, stderr=subprocess.STDOUT)
    o.write('last\n')
print(open(p + 'log').read())
with open(p + 'env', 'w') as o:
    subprocess.check_call(['/bin/echo', 'no environment'], stdout=o, env={})
    subprocess.check_call(['/bin/cat', p + 'in'], stdout=o, env={}, close_fds=False)
END
}

multiprocessing_children() {
	_py <<'END'
import os, multiprocessing
p = os.environ['P'] + '/'
multiprocessing.set_start_method('fork')
fd = os.open(p + 'one', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def child(i):
    for n in range(20):
        os.write(fd, b'%d %02d\n' % (i, n))
    with open(p + 'own%d' % i, 'w') as f:
        f.write('child %d' % i)
    with open(p + 'shared', 'r+b') as f:
        f.seek(i * 10)
        f.write(b'%d' % i * 10)
open(p + 'shared', 'w').close()
ps = [multiprocessing.Process(target=child, args=(i,)) for i in range(4)]
[c.start() for c in ps], [c.join() for c in ps]
print([c.exitcode for c in ps])
lines = open(p + 'one').read().splitlines()
print(len(lines), sorted(lines) == sorted('%d %02d' % (i, n) for i in range(4) for n in range(20)))
os.unlink(p + 'one')
END
}

threads_and_sqlite() {
	_py <<'END'
import os, threading
p = os.environ['P'] + '/'
f = open(p + 'f', 'wb', buffering=0)
def work(i):
    for n in range(100):
        os.pwrite(f.fileno(), b'%d' % i * 100, (n * 8 + i) * 100)
ts = [threading.Thread(target=work, args=(i,)) for i in range(8)]
[t.start() for t in ts], [t.join() for t in ts]
f.close()
import sqlite3
db = sqlite3.connect(p + 'db', timeout=10)
db.execute('create table t(x)')
for i in range(20):
    db.execute('insert into t values(?)', (i * i,))
    db.commit()
db.close()
db = sqlite3.connect(p + 'db')
print(db.execute('select sum(x), count(*) from t').fetchall(), db.execute('pragma integrity_check').fetchall())
db.close()
os.unlink(p + 'db')
END
}

compiled_modules_imported() {
	cd $P
	echo 'value = 42' >mod.py
	/usr/bin/python3 -c 'import sys; sys.path.insert(0, ""); import mod; print(mod.value)'
	/usr/bin/python3 -m py_compile mod.py && ls __pycache__
	/usr/bin/python3 -c 'import sys; sys.path.insert(0, ""); import mod; print(mod.value)'
	rm -r __pycache__
	echo 'print(__file__ == __import__("os").environ["P"] + "/main.py")' >main.py
	/usr/bin/python3 $P/main.py
}

file_locks() {
	_py <<'END'
import fcntl, os
p = os.environ['P'] + '/'
a, b = open(p + 'f', 'w'), open(p + 'f', 'w')
fcntl.flock(a, fcntl.LOCK_EX)
try:
    fcntl.flock(b, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError as e:
    print(e)
fcntl.flock(a, fcntl.LOCK_UN)
fcntl.lockf(a, fcntl.LOCK_EX, 10, 5)
if os.fork() == 0:
    try:
        fcntl.lockf(b, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e:
        print(e, flush=True)
    os._exit(0)
os.wait()
END
}
