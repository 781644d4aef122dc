#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""format.py BACKEND NAME: read a logical file by plfs-format(5) alone, without the library, and write its bytes to
standard output. Every header, checksum and field of zeros on the way is checked; an error names what is not
as the page says. Slow, and meant to be: it shares nothing with the code that it checks."""
import glob
import os
import re
import struct
import subprocess
import sys

TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    TABLE.append(n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283


def check(what, ok):
    if not ok:
        sys.exit(f"{what}: not as in plfs-format(5)")


def u32(data, off):
    return struct.unpack_from("<I", data, off)[0]


def u64(data, off):
    return struct.unpack_from("<Q", data, off)[0]


def without(data, off):
    return data[:off] + bytes(4) + data[off + 4:]


def zeros(data):
    return not any(data)


def name_at(data, off, size):
    name, pad = data[off:off + size].split(b"\0", 1)
    check("a name's padding", zeros(pad))
    return name.decode()


def read(path):
    with open(path, "rb") as f:
        return f.read()


def records(data, nr, where, last_grows=False):
    """(type, logical_off, length, stride, count, log_off, stamp_ns, outer_stride, outer_count) of each record."""
    out = []
    for i in range(nr):
        rec = data[72 * i:72 * (i + 1)]
        check(where + ": record", rec[0] in (1, 2) and rec[1] == 9 and zeros(rec[2:4]))
        check(where + ": record crc", (last_grows and i == nr - 1) or u32(rec, 4) == crc32c(without(rec, 4)))
        out.append((rec[0], *struct.unpack_from("<8Q", rec, 8)))
        check_strides(out[-1], where)
    return out


def check_strides(rec, where):
    _, _, length, stride, count, _, _, outer_stride, outer_count = rec
    check(where + ": stride", count <= 1 or stride >= length)
    check(where + ": nesting", outer_count == 0 or (outer_count > 1 and count > 1 and (
        (count - 1) * stride + length <= outer_stride or (outer_count - 1) * outer_stride + length <= stride)))


class Log:
    def __init__(self, path, container_id):
        head = read(path)
        check(path, head[:8] == b"PLFSLOG1" and u32(head, 8) == 3 and u32(head, 12) == crc32c(without(head[:256], 12)))
        check(path, head[16:32] == container_id and u32(head, 48) == 65536 and zeros(head[56:64]) and zeros(head[128:65536]))
        name = re.fullmatch(r"data\.(.*)\.(\d+)\.(\d+)", os.path.basename(path))
        check(path, name and name[1] == name_at(head, 64, 64) and int(name[2]) == u64(head, 40) and int(name[3]) == u32(head, 52))
        hostdir = os.path.basename(os.path.dirname(path))
        check(path, hostdir == f"hostdir.{crc32c(name[1].encode()) % 32}")
        self.path, self.data, self.records, self.blocks = path, head[65536:], [], []
        self.last = len(self.data) - 64 if len(self.data) else 0

    def check_trailers(self, container_id):
        """The chain of trailers leads through the blocks that the node index has from the log's process, the last one first."""
        where, at, table = self.path + ": trailer", self.last, None
        for block in reversed(self.blocks):
            t = self.data[at:at + 64]
            if u64(block, 48) == 0 and self.data[max(0, at - u32(t, 12)):at] != block:
                continue  # what was in the live file when another process synced
            check(where, at and at % 8 == 0 and t[:8] == b"PLFSEND1" and u32(t, 8) == crc32c(without(t, 8)))
            check(where, t[16:32] == container_id and u64(t, 32) == at and zeros(t[56:64]))
            check(where, self.data[at - u32(t, 12):at] == block)
            has_table = u64(block, 48) != 0
            check(where + ": prev_table", table is None or table == (at if has_table else u64(t, 48)))
            at, table = u64(t, 40), u64(t, 48)
        check(where + ": one more", at == 0)


def number_in(data, off, where):
    word = u64(data, off)
    check(f"{where}: checked word at {off}", ~(word ^ word >> 16 ^ word >> 32) & 0xffff == word >> 48)
    return word & (1 << 48) - 1


def read_live(path, logs, container_id):
    live = read(path)
    check(path, live[:8] == b"PLFSLIV1" and u32(live, 8) == 6 and u32(live, 12) == crc32c(without(live[:256], 12)))
    check(path, live[16:32] == container_id and zeros(live[208:212]) and u32(live, 212) % 2 == 1 and zeros(live[216:512]) and zeros(live[596:1024]) and zeros(live[1040:4096]))
    layout = struct.unpack_from("<6Q", live, 32)
    check(path, layout == (4096, 512, 40960, 2048, 49152, 524288) and len(live) >= 49152 + number_in(live, 536, path))
    seq, nr, flushed, staged, first_chunk, nr_chunks = (number_in(live, at, path) for at in range(512, 560, 8))
    chunk_crc, recorded = u64(live, 560), number_in(live, 568, path)
    log = logs[name_at(live, 80, 128)]
    check(path, os.path.basename(path) == "live." + name_at(live, 80, 128)[5:] and flushed == len(log.data))
    for i in range(nr_chunks):
        at = (first_chunk + i) * 65536
        check(path + ": chunk", u32(live, 40960 + 4 * i) == crc32c(log.data[at:at + 65536]))
    at = (first_chunk + nr_chunks) * 65536
    check(path + ": chunk under way", at > flushed or chunk_crc == crc32c(log.data[at:flushed]) + (flushed % 65536 << 32) + (flushed // 65536 % 65536 << 48))
    log.data += live[49152:49152 + staged]
    log.last = number_in(live, 576, path)
    number_in(live, 584, path)
    recs = records(live[4096:], nr, path, last_grows=True)
    ends = [rec[5] + rec[2] * rec[4] * max(rec[8], 1) for rec in recs if rec[0] == 1]
    check(path + ": recorded_len", not ends or recorded == ends[-1])
    log.records += recs


def number(data, pos, size):
    check("a number in a record", size <= 8)
    return int.from_bytes(data[pos:pos + size], "little"), pos + size


def block_records(data, nr, stamp, where):
    """The same as records(), of a block."""
    out, pos, logical_end, log_end, length = [], 0, 0, 0, 0
    for _ in range(nr):
        control, pos = number(data, pos, 2)
        if control & 0x8000:
            check(where + ": kind of a record", control == 0x8002 and data[pos:pos + 2] == b"\x10\0")
            out.append((2, u64(data, pos + 2), 0, 0, 0, 0, u64(data, pos + 10), 0, 0))
            pos += 18
            continue
        check(where + ": control", not control & 0x4000)
        logical, pos = number(data, pos, control & 15)
        own_length, pos = number(data, pos, control >> 4 & 15)
        later, pos = number(data, pos, control >> 8 & 15)
        length = own_length or length
        stamp = (stamp + later) % 2**64
        logical_off = (logical_end + (~(logical >> 1) if logical & 1 else logical >> 1)) % 2**64
        log_off, stride, count, outer_stride, outer_count = log_end, 0, 1, 0, 0
        if control & 0x1000:
            log_off, pos = number(data, pos, 8)
        if control & 0x2000:
            run, pos = number(data, pos, 2)
            stride, pos = number(data, pos, run & 15)
            count, pos = number(data, pos, run >> 4 & 15)
            outer_stride, pos = number(data, pos, run >> 8 & 15)
            outer_count, pos = number(data, pos, run >> 12)
            check(where + ": count", count > 1)
        check(where + ": length", length > 0)
        out.append((1, logical_off, length, stride, count, log_off, stamp, outer_stride, outer_count))
        check_strides(out[-1], where)
        runs = max(outer_count, 1)
        logical_end = logical_off + (count - 1) * stride + (runs - 1) * outer_stride + length
        log_end = log_off + runs * count * length
    check(where + ": behind the records", pos <= len(data) < pos + 8 and zeros(data[pos:]))
    return out


def read_index(path, logs):
    data, pos = read(path), 0
    host = os.path.basename(path)[len("index."):]
    while pos < len(data):
        head = data[pos:pos + 72]
        check(path, head[:8] == b"PLFSIDX2" and u32(head, 12) == 72 and u32(head, 8) == crc32c(without(head, 8)))
        body_crc, length, nr, pid, seq, flags, log_len, chunks_off, first_stamp, max_stamp = struct.unpack_from("<6I4Q", head, 16)
        check(path, length % 8 == 0 and pos + length <= len(data) and flags in (0, 1, 3))
        body = data[pos + 72:pos + length]
        check(path + ": body", body_crc == crc32c(body))
        log = logs[f"data.{host}.{pid}.{seq}"]
        recs = block_records(body, nr, first_stamp, path)
        check(path + ": max_stamp_ns", max_stamp == max((r[6] for r in recs), default=0))
        if flags & 2:
            check(path + ": sum", first_stamp == crc32c(log.data[log_len // 65536 * 65536:log_len]))
        else:
            check(path + ": first_stamp_ns", first_stamp == next((r[6] for r in recs if r[0] == 1), 0))
        if chunks_off:
            table = log.data[chunks_off:]
            nr_chunks, first_chunk = struct.unpack_from("<IQ", table, 12)
            table = table[:24 + 4 * nr_chunks]
            check(path + ": table", table[:8] == b"PLFSCRC1" and u32(table, 8) == crc32c(without(table, 8)))
            for i in range(nr_chunks):
                at = (first_chunk + i) * 65536
                check(path + ": chunk", u32(table, 24 + 4 * i) == crc32c(log.data[at:min(at + 65536, log_len)]))
        log.records += recs
        if flags:  # it says that the log has been synced, and nothing of what is in it
            check(path + ": synced", nr == 0 and chunks_off == 0 and log_len <= len(log.data))
        else:
            log.blocks.append(data[pos:pos + length])
        pos += length


# glob.glob() has root_dir= since Python 3.10.
def below(root, pattern):
    return sorted(os.path.relpath(path, root) for path in glob.glob(f"{glob.escape(root)}/hostdir.*/{pattern}"))


def check_global(path, generation_ns, container_id, logs, root):
    data = read(path)
    check(path, data[:8] == b"PLFSGLB1" and u32(data, 8) == 3 and u32(data, 12) == crc32c(without(data[:128], 12)))
    born = subprocess.run(["stat", "-c", "%W %w", path], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    born_ns = int(born[0]) * 10**9 + int(born[2].partition(".")[2]) if len(born) > 2 else 0
    check(path, u64(data, 128) == os.stat(path).st_ino ^ born_ns and u64(data, 136) == 0)
    check(path, data[16:32] == container_id and u64(data, 32) == generation_ns and zeros(data[80:128]))
    inputs_len, names_len, map_off, map_len, nr_logs, lists_crc = struct.unpack_from("<4QII", data, 40)
    names_off = 144 + inputs_len
    check(path, lists_crc == crc32c(data[144:names_off + names_len]) and map_off % 8 == 0 and map_off + map_len == len(data))
    lines = data[144:names_off].decode().splitlines()
    want = below(root, "index.*")
    check(path, lines == [f"{name} {os.path.getsize(os.path.join(root, name))}" for name in want])
    names = data[names_off:names_off + names_len].decode().split("\0")
    check(path, len(names) == nr_logs + 1 and names == below(root, "data.*") + [""])
    image = data[map_off:]
    check(path, image[:8] == b"PLFSMAP1" and u32(image, 8) == 2 and u32(image, 12) == 200 and u64(image, 24) == map_len)
    check(path, u32(image, 16) == crc32c(without(image[:200], 16)) and u32(image, 20) == crc32c(image[200:]) and zeros(image[192:200]))
    check(path, u64(image, 56) == sum(len(log.records) for log in logs.values()))
    at = 64
    for row in (32, 24, 32, 40, 104, 32, 40, 48):
        check(path, u64(image, at + 8) + u64(image, at) * row <= map_len)
        at += 16


def main(backend, name):
    form = read(f"{backend}/.plfs/format").decode()
    check("format", form.startswith("plfs-format 1\nsize body\nmark sticky\nbare sentence\n#") and form.count("\n") == 5)
    stub = read(f"{backend}/{name}")
    check(name, os.stat(f"{backend}/{name}").st_mode & 0o1000)
    if zeros(stub[:128]):  # bare
        sys.stdout.buffer.write(stub[4096:])
        return
    check(name, stub[:8] == b"PLFSTUB1" and u32(stub, 8) == 1 and u32(stub, 12) == crc32c(without(stub[:128], 12)))
    check(name, u32(stub, 16) in (0, 1, 2, 3) and zeros(stub[20:24]) and zeros(stub[68:128]))
    check(name + ": number", u64(stub, 56) in (0, os.stat(f"{backend}/{name}").st_ino))
    container_id, generation_ns, body = stub[24:40], u64(stub, 40), stub[4096:]
    cut_size, cut_ns, cut = u64(stub, 480), u64(stub, 488), stub[480:512]
    if u32(cut, 16) != crc32c(without(cut, 16)) or not zeros(cut[20:]):
        cut_ns = 0
    if cut_ns and not cut_size and generation_ns >= cut_ns:
        body = b""
    root = f"{backend}/.plfs/{container_id.hex()[:2]}/{container_id.hex()}"
    paths = sorted(glob.glob(root + "/hostdir.*/data.*"))
    logs = {os.path.basename(path): Log(path, container_id) for path in paths}
    for path in glob.glob(root + "/hostdir.*/live.*"):
        read_live(path, logs, container_id)
    for path in glob.glob(root + "/hostdir.*/index.*"):
        read_index(path, logs)
    for log in logs.values():
        log.check_trailers(container_id)
    if os.path.exists(root + "/index.global"):
        check_global(root + "/index.global", generation_ns, container_id, logs, root)
        print("index.global checked", file=sys.stderr)

    out = bytearray(body)
    every = [(rec[6], no, i, rec, log) for no, log in enumerate(logs.values()) for i, rec in enumerate(log.records)]
    for stamp, _, _, rec, log in sorted(every, key=lambda e: e[:3]):
        kind, logical_off, length, stride, count, log_off, _, outer_stride, outer_count = rec
        if stamp <= generation_ns:
            continue
        if kind == 2:
            del out[logical_off:]
            if stamp == cut_ns:  # the stub may still be longer
                body = bytes(logical_off)
            continue
        for i in range(count * max(outer_count, 1)):
            at = logical_off + i % count * stride + i // count * outer_stride
            end = at + length
            out += bytes(max(0, end - len(out)))
            piece = log.data[log_off + i * length:log_off + (i + 1) * length]
            check(name + ": a record beyond its log", len(piece) == length)
            out[at:end] = piece
    sys.stdout.buffer.write(out + bytes(max(0, len(body) - len(out))))


main(*sys.argv[1:])
