# SPDX-License-Identifier: BSD-3-Clause
# variants: virtual inplace
# Python beyond files as such: event loops, process pools, databases of its library, numpy and HDF5.
. "$HERE/common.bash"

_py() {
	/usr/bin/python3 - "$@"
}

preadv_pwritev_sendfile_and_copies() {
	_py <<'END'
import errno, os, shutil
os.chdir(os.environ['P'])
fd = os.open('f', os.O_RDWR | os.O_CREAT)
print(os.pwritev(fd, [b'one', b'two' * 1000, b''], 10), os.fstat(fd).st_size)
bufs = [bytearray(4), bytearray(4000)]
print(os.preadv(fd, bufs, 9, 0), bytes(bufs[0]), bytes(bufs[1][:5]))
print(os.pwritev(fd, [b'synced'], 2, os.RWF_DSYNC), os.pwritev(fd, [b'at the end'], 0, os.RWF_APPEND))
try:
    n = os.preadv(fd, [bytearray(3)], 0, os.RWF_NOWAIT)
    print(n == 3)
except OSError as e: # "cannot promise not to wait"
    print(e.errno in (errno.EAGAIN, errno.EOPNOTSUPP))
print(os.lseek(fd, 0, os.SEEK_CUR), os.pwritev(fd, [b'moves'], -1, os.RWF_APPEND), os.lseek(fd, 0, os.SEEK_CUR))
print(os.pread(fd, 10, os.fstat(fd).st_size - 10))
out = os.open('g', os.O_RDWR | os.O_CREAT)
for call in (lambda: os.copy_file_range(fd, out, 100, 10, 0), lambda: os.sendfile(out, fd, 0, 50)):
    try:
        n = call()
    except OSError as e: # as between file systems
        n = 0
os.ftruncate(out, 0)
shutil.copyfile('f', 'h')
print(os.path.getsize('h'), open('h', 'rb').read() == open('f', 'rb').read())
with open('f', 'rb') as a, open('i', 'wb') as b:
    shutil.copyfileobj(a, b, 1000)
print(os.path.getsize('i'))
os.closerange(3, 5000)
print(os.open('j', os.O_CREAT | os.O_WRONLY))
END
}

asyncio_with_files() {
	_py <<'END'
import asyncio, os, sys
p = os.environ['P'] + '/'
async def child(i):
    with open(p + 'log', 'a') as log, open(p + 'in') as i_n:
        c = await asyncio.create_subprocess_exec('sort', '-n', stdin=i_n, stdout=log)
        return await c.wait()
async def main():
    loop = asyncio.get_running_loop()
    def write(i):
        with open(p + 'f%d' % i, 'w') as f:
            f.write('%d\n' % i * 1000)
        return os.path.getsize(p + 'f%d' % i)
    print(await asyncio.gather(*(loop.run_in_executor(None, write, i) for i in range(12))))
    with open(p + 'in', 'w') as f:
        f.write('3\n1\n2\n')
    print(await asyncio.gather(*(child(i) for i in range(4))))
    c = await asyncio.create_subprocess_shell('cat "$P/in"; echo err >&2', stdout=asyncio.subprocess.PIPE,
                                              stderr=asyncio.subprocess.STDOUT)
    print(await c.communicate())
    try: # epoll takes no regular file
        with open(p + 'in') as f:
            loop.add_reader(f.fileno(), print)
    except OSError as e:
        print(e)
asyncio.run(main())
print(sorted(open(p + 'log').read().split()))
END
}

process_pools_and_shared_descriptors() {
	_py <<'END'
import concurrent.futures, multiprocessing, os
p = os.environ['P'] + '/'
def work(i):
    with open(p + 'shared', 'r+b') as f:
        f.seek(i * 1000)
        f.write(bytes([65 + i]) * 1000)
    os.write(fd, b'done %d\n' % i)
    return i * i
open(p + 'shared', 'w').close()
fd = os.open(p + 'log', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
with concurrent.futures.ProcessPoolExecutor(3, mp_context=multiprocessing.get_context('fork')) as pool:
    print(list(pool.map(work, range(10))))
os.close(fd)
data = open(p + 'shared', 'rb').read()
print(len(data), all(data[i * 1000] == data[i * 1000 + 999] == 65 + i for i in range(10)))
print(sorted(open(p + 'log').read().splitlines()))
os.unlink(p + 'log')
END
}

descriptors_sent_and_spawned() {
	_py <<'END'
import os, socket, subprocess, sys
p = os.environ['P'] + '/'
a, b = socket.socketpair()
fd = os.open(p + 'sent', os.O_RDWR | os.O_CREAT)
os.write(fd, b'first ')
if os.fork() == 0:
    got = socket.recv_fds(b, 10, 1)[1][0]
    os.write(got, b'second ')
    os._exit(0)
socket.send_fds(a, [b'x'], [fd])
os.wait()
os.write(fd, b'third')
print(os.pread(fd, 100, 0))
pid = os.posix_spawn('/bin/cat', ['cat'], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, os.open(p + 'sent', os.O_RDONLY), 0)])
print(os.waitpid(pid, 0)[1])
os.dup2(os.open(p + 'sent', os.O_RDONLY), 7)
os.dup2(os.open(p + 'out', os.O_WRONLY | os.O_CREAT), 8)
r = subprocess.run(['sh', '-c', 'cat <&7 >&8'], pass_fds=(7, 8))
print(r.returncode, open(p + 'out').read())
print(os.system('cat "$P/out" >"$P/system"; exit 3') >> 8, os.popen('cat "$P/system"; echo popen').read())
r = subprocess.Popen(['cat'], stdin=open(p + 'out'), stdout=open(p + 'vf', 'w'), cwd=p, close_fds=True, start_new_session=True)
print(r.wait(), open(p + 'vf').read())
END
}

databases_of_the_library() {
	_py <<'END'
import configparser, csv, dbm.dumb, fileinput, gzip, logging, logging.handlers, lzma, mailbox, os, pickle, shelve, tarfile, zipfile
os.chdir(os.environ['P'])
with dbm.dumb.open('dumb', 'c') as d:
    for i in range(50):
        d['k%d' % i] = 'v' * i
    print(len(d), d['k7'])
with open('pick', 'wb') as f:
    pickle.dump({'a': list(range(1000))}, f)
    pickle.dump('second', f)
with open('pick', 'rb') as f:
    print(len(pickle.load(f)['a']), pickle.load(f))
with zipfile.ZipFile('z.zip', 'w', zipfile.ZIP_DEFLATED) as z:
    z.writestr('one', 'x' * 10000)
with zipfile.ZipFile('z.zip', 'a') as z:
    z.write('pick')
    print(z.namelist(), z.testzip())
with tarfile.open('t.tar', 'w') as t:
    t.add('pick')
with tarfile.open('t.tar', 'a') as t:
    t.add('dumb.dir')
    print(t.getnames())
with gzip.open('g.gz', 'wt') as g:
    g.write('text\n' * 1000)
print(len(gzip.open('g.gz').read()))
with lzma.open('l.xz', 'wb') as l:
    l.write(b'bytes' * 1000)
with open('c.csv', 'w', newline='') as f:
    csv.writer(f).writerows([[1, 'a b', '"q"'], [2, 'c', 'd']])
print(list(csv.reader(open('c.csv', newline=''))))
log = logging.getLogger()
h = logging.handlers.RotatingFileHandler('r.log', maxBytes=500, backupCount=3)
log.addHandler(h)
for i in range(100):
    log.warning('message %d', i)
h.close()
with fileinput.input('c.csv', inplace=True, backup='.bak') as f:
    for line in f:
        print(line.upper(), end='')
box = mailbox.mbox('box')
box.lock()
box.add('Subject: x\n\nbody\n')
box.flush(), box.unlock(), box.close()
print(len(mailbox.mbox('box')))
for f in 'z.zip', 't.tar', 'g.gz', 'l.xz', 'box': # they hold times
    os.unlink(f)
print(sorted(os.listdir('.')))
END
}

paths_and_directories() {
	_py <<'END'
import filecmp, glob, os, pathlib, stat
p = pathlib.Path(os.environ['P'])
(p / 'a/b').mkdir(parents=True)
(p / 'a/b/f.txt').write_text('text')
(p / 'a/g.bin').write_bytes(bytes(5000))
(p / 'l').symlink_to('a/b')
print(sorted(str(x.relative_to(p)) for x in p.rglob('*')), sorted(os.path.basename(x) for x in glob.glob(str(p) + '/a/*')))
print((p / 'l/f.txt').resolve().relative_to(p), (p / 'l').readlink(), (p / 'l/../b/f.txt').exists(), (p / 'a/g.bin').stat().st_size)
d = os.open(p, os.O_RDONLY)
os.mkdir('at', dir_fd=d)
f = os.open('at/f', os.O_CREAT | os.O_RDWR, dir_fd=d)
os.write(f, b'relative')
os.rename('at/f', 'at/g', src_dir_fd=d, dst_dir_fd=d)
os.symlink('g', 'at/s', dir_fd=d)
os.link('at/g', 'at/h', src_dir_fd=d, dst_dir_fd=d)
print(os.stat('at/s', dir_fd=d).st_size, os.stat('at/h', dir_fd=d).st_nlink, sorted(os.listdir(d)), os.readlink('at/s', dir_fd=d))
print([(r, sorted(ds), sorted(fs)) for r, ds, fs, _ in os.fwalk('at', dir_fd=d)])
os.fchdir(d)
print(os.getcwd() == str(p), filecmp.cmp('at/g', 'at/h', shallow=False), sorted(e.name for e in os.scandir(d) if e.is_dir()))
print(stat.filemode(os.lstat('l').st_mode), os.path.samefile('at/g', 'at/h'), os.statvfs('.').f_bsize > 0, os.pathconf('.', 'PC_NAME_MAX'))
try:
    os.setxattr('at/g', 'user.x', b'v')
    print(os.getxattr('at/g', 'user.x'), os.listxattr('at/g'))
except OSError as e:
    print(e)
for bad in lambda: os.open('at/g/x', os.O_RDONLY), lambda: os.rmdir('at'), lambda: os.link('none', 'x'), lambda: os.rename('a', 'a/b/c'):
    try:
        bad()
    except OSError as e:
        print(e)
END
}

numpy_saves_and_loads() {
	_need_module numpy
	_py <<'END'
import numpy as np, os
os.chdir(os.environ['P'])
a = np.arange(60000, dtype='f8').reshape(300, 200)
np.save('a.npy', a)
np.savez('z.npz', a=a, b=a[:3])
np.savez_compressed('c.npz', a=a)
np.savetxt('t.txt', a[:5, :5])
a.tofile('raw')
with open('raw', 'ab') as f:
    a[:2].tofile(f)
print((np.load('a.npy') == a).all(), np.load('z.npz')['b'].shape, (np.load('c.npz')['a'] == a).all(), np.loadtxt('t.txt').sum())
b = np.fromfile('raw')
print(b.size, (b[-400:].reshape(2, 200) == a[:2]).all(), np.fromfile('raw', count=10, offset=80))
c = np.load('a.npy', mmap_mode='c')
c[0, 0] = 7
print(c[0, 0], c[-1, -1], np.load('a.npy')[0, 0])
os.unlink('z.npz'), os.unlink('c.npz')
END
}

h5py_creates_appends_and_locks() {
	_need_module h5py
	HDF5_USE_FILE_LOCKING=TRUE _py <<'END'
import h5py, numpy as np, os
os.chdir(os.environ['P'])
with h5py.File('h', 'w') as f:
    f.create_dataset('grow', (0, 50), maxshape=(None, 50), chunks=(64, 50), compression='gzip')
    f['plain'] = np.arange(100000)
    f.attrs['name'] = 'a file'
for i in range(5):
    with h5py.File('h', 'a') as f:
        d = f['grow']
        d.resize(d.shape[0] + 100, axis=0)
        d[-100:] = i
        f['plain'][i * 10:i * 10 + 10] = -1
with h5py.File('h', 'r') as f:
    print(f['grow'].shape, f['grow'][::100, 0], f['plain'][45:55], f['plain'][-1], f.attrs['name'], flush=True)
    if os.fork() == 0: # a reader shuts a writer out
        os.execvp('/usr/bin/python3', ['python3', '-c', '''
import h5py
try:
    h5py.File('h', 'a')
    print('opened')
except OSError as e:
    print(str(e).split('(')[0])
'''])
    os.wait()
with h5py.File('h', 'r+') as f:
    del f['plain']
    f['new/group/x'] = 3
with h5py.File('h') as f:
    names = []
    f.visit(names.append)
    print(names)
for mode in 'x', 'r':
    try:
        h5py.File('none' if mode == 'r' else 'h', mode)
    except OSError as e:
        print(str(e)[:40])
with h5py.File('core', 'w', driver='core') as f:
    f['x'] = np.ones(1000)
with h5py.File('fam%d', 'w', driver='family', memb_size=40000) as f:
    f['x'] = np.ones(20000)
with h5py.File('fam%d', 'r', driver='family', memb_size=40000) as f:
    print(f['x'][:].sum(), len([n for n in os.listdir('.') if n.startswith('fam')]))
for n in os.listdir('.'): # they hold times
    os.unlink(n)
END
}

h5py_single_writer_many_readers() {
	_need_module h5py
	_py <<'END'
import h5py, os
os.chdir(os.environ['P'])
f = h5py.File('s', 'w', libver='latest')
d = f.create_dataset('x', (10,), maxshape=(None,), chunks=(10,), dtype='i8')
f.swmr_mode = True
for i in range(20):
    d.resize((10 * (i + 1),))
    d[-10:] = i
    d.flush()
    if i % 10 == 9 and os.fork() == 0:
        os.execvp('/usr/bin/python3', ['python3', '-c', '''
import h5py
with h5py.File('s', 'r', libver='latest', swmr=True) as g:
    print(g['x'].shape, g['x'][-1])
'''])
    if i % 10 == 9:
        print(os.wait()[1], flush=True)
f.close()
os.unlink('s')
END
}
