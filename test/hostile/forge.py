# SPDX-License-Identifier: BSD-3-Clause
"""What the hostile user forges: headers and blocks as plfs-format(5) has them, with right checksums."""

import struct

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


def summed(head, at):
    """The header with its checksum at that place."""
    head = bytearray(head)
    head[at : at + 4] = bytes(4)
    head[at : at + 4] = struct.pack("<I", crc32c(head))
    return bytes(head)


def with_id(data, old, new):
    """A data log, a live file, a kept map or a stub, made to name another container."""
    length = {b"PLFSLOG1": 256, b"PLFSLIV1": 256, b"PLFSGLB1": 128, b"PLFSTUB1": 128}.get(data[:8], 0)
    if length and len(data) >= length:
        data = summed(data[:length].replace(old, new), 12) + data[length:]
    at = data.rfind(b"PLFSEND1")
    if at >= 0 and len(data) - at >= 64:
        data = data[:at] + summed(data[at : at + 64].replace(old, new), 8) + data[at + 64 :]
    return data


def stub(container_id, number, generation_ns=0):
    head = (
        b"PLFSTUB1"
        + struct.pack("<IIII", 1, 0, 0, 0)
        + container_id
        + struct.pack("<QQQ", generation_ns, 1, number)
    )
    return summed(head.ljust(128, b"\0"), 12)


def log(container_id, host, pid, seq, data):
    head = (
        b"PLFSLOG1"
        + struct.pack("<II", 3, 0)
        + container_id
        + struct.pack("<QQIIII", 1, pid, 65536, seq, 0, 0)
    )
    head += host.encode().ljust(64, b"\0")
    return summed(head.ljust(256, b"\0"), 12).ljust(65536, b"\0") + data


def number(n):
    size = (n.bit_length() + 7) // 8
    return size, n.to_bytes(size, "little")


def run_record(logical, length, stride, count):
    sizes, body = 0, b""
    for i, n in enumerate((logical * 2, length, 0)):
        size, part = number(n)
        sizes |= size << 4 * i
        body += part
    run_sizes, run = 0, b""
    for i, n in enumerate((stride, count, 0, 0)):
        size, part = number(n)
        run_sizes |= size << 4 * i
        run += part
    return struct.pack("<H", sizes | 0x2000) + body + struct.pack("<H", run_sizes) + run


def block(pid, seq, records, stamp, log_len):
    """An index block of run records that are all stamped the same."""
    body = b"".join(records)
    body = body.ljust((len(body) + 7) // 8 * 8, b"\0")
    head = b"PLFSIDX2" + struct.pack(
        "<IHHIIIIII4Q",
        0,
        72,
        0,
        crc32c(body),
        72 + len(body),
        len(records),
        pid,
        seq,
        0,
        log_len,
        0,
        stamp,
        stamp,
    )
    return summed(head, 8) + body


def huge_index(pid, seq, kind):
    """A node index that says of a short log what no short log can hold."""
    if kind == 0:  # one record of 2^42 elements
        return block(pid, seq, [run_record(0, 1, 4, 1 << 42)], 2, 10)
    if kind == 1:  # one of 2^62 bytes
        return block(pid, seq, [run_record(0, 1 << 40, 1 << 40, 1 << 21)], 2, 10)
    if kind == 2:
        return b"".join(block(pid, seq, [run_record(i * 4096, 1, 2, 100 + i)], 2 + i, 10) for i in range(200))
    # Millions of bytes that are far from each other. Each record is behind the one before.
    return block(pid, seq, [run_record(5, 1, 2, 2)] * 40000, 2, 10) * 16
