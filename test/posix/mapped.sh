# SPDX-License-Identifier: BSD-3-Clause
# variants: virtual inplace
# Programs that map files shared: arrays on disk, memory between processes.
. "$HERE/common.bash"

python_maps_read_and_written() {
	/usr/bin/python3 - <<'END'
import mmap, os
p = os.environ['P'] + '/'
with open(p + 'f', 'wb') as f:
    f.write(b'0123456789' * 1000)
with open(p + 'f', 'rb') as f:
    with mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as m:
        print(len(m), m[:12], m.find(b'90123'), m.rfind(b'789'))
    with mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE) as m:
        print(m[-5:])
with open(p + 'f', 'r+b') as f:
    m = mmap.mmap(f.fileno(), 0)
    m[5:8] = b'XYZ'
    m.flush()
    print(open(p + 'f', 'rb').read(12))
    f.seek(100)
    f.write(b'by write')
    f.flush()
    print(m[98:110])
    other = open(p + 'f', 'r+b')
    n = mmap.mmap(other.fileno(), 4096)
    n[0:1] = b'!'
    print(m[:3])
    m.resize(20000)
    m[15000:15005] = b'later'
    m.close(), n.close()
    print(os.path.getsize(p + 'f'), f.seek(14998), f.read(10))
c = open(p + 'f', 'r+b')
with mmap.mmap(c.fileno(), 0, access=mmap.ACCESS_COPY) as m:
    m[0:4] = b'copy'
    print(m[:6], c.read(6))
for size in 0, 5:
    open(p + 'g', 'wb').close()
    g = open(p + 'g', 'r+b')
    try:
        mmap.mmap(g.fileno(), size)
        print(os.path.getsize(p + 'g'))
    except (OSError, ValueError) as e:
        print(e)
END
}

maps_shared_by_processes() {
	/usr/bin/python3 - <<'END'
import mmap, os, subprocess
p = os.environ['P'] + '/'
with open(p + 'f', 'wb') as f:
    f.truncate(100000)
fd = os.open(p + 'f', os.O_RDWR)
m = mmap.mmap(fd, 0)
os.close(fd)
for i in range(4):
    if os.fork() == 0:
        m[i * 20000:i * 20000 + 10] = b'%d' % i * 10
        os._exit(0)
for i in range(4):
    os.wait()
print(m[:10], m[60000:60010])
m[99990:] = b'parent....'
m.flush()
print(subprocess.run(['tail', '-c', '10', p + 'f'], capture_output=True).stdout)
subprocess.run(['dd', 'of=' + p + 'f', 'bs=1', 'seek=50000', 'conv=notrunc', 'status=none'], input=b'dd was here')
print(m[50000:50011])
m.close()
END
	md5sum <$P/f
}

numpy_maps() {
	_need_module numpy
	/usr/bin/python3 - <<'END'
import numpy as np, os
os.chdir(os.environ['P'])
a = np.arange(60000, dtype='f8').reshape(300, 200)
np.save('a.npy', a)
r = np.load('a.npy', mmap_mode='r')
print(r.shape, r[150].sum(), r[::100, 0])
w = np.load('a.npy', mmap_mode='r+')
w[10:20] *= -1
w.flush()
del r # LIMITS: it need not show this
print(np.load('a.npy')[10:20].sum(), np.load('a.npy', mmap_mode='r')[15, 5])
m = np.memmap('new', dtype='i4', mode='w+', shape=(1000, 100))
m[:] = 5
m[500] = np.arange(100)
m.flush()
del m
print(os.path.getsize('new'), np.fromfile('new', dtype='i4').sum())
m = np.memmap('new', dtype='i4', mode='r+', shape=(10, 100), offset=4000 * 20)
m += 1
del m
c = np.memmap('new', dtype='i4', mode='c')
c[:] = 0
print(np.memmap('new', dtype='i4', mode='r').sum())
o = np.lib.format.open_memmap('o.npy', mode='w+', dtype='f4', shape=(50, 50))
o[25] = 1.5
o.flush()
print(np.load('o.npy').sum())
END
}

java_maps() {
	_need java javac
	_not_sanitized
	java -XX:-UsePerfData -Xmx64m -cp "$BIN" Store maps 2>&1 | tail -n 2
	rm $P/ser $P/gz
}
