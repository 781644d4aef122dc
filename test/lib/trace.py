#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
trace.py FILE...: each call of traces (man/plfs-stats.5) as a line: KIND FILE OFF LEN START END RANK TID, times in ns since
1970; a run's calls one by one, evenly. Written from the page alone. Fails where a trace is not as it says.
"""
import struct
import sys

KINDS = {1: "open", 2: "close", 3: "read", 4: "write", 5: "append", 6: "sync", 7: "truncate", 8: "other"}


def calls(path):
    data = open(path, "rb").read()
    magic, version, head, start_ns, tick, pid, rank, ranks, ended, _, left, left_bytes = struct.unpack_from("<8sIIQIIIIIIQQ", data)
    assert (magic, version, head, tick) == (b"PLFSTRC1", 1, 4096, 64), path
    names, streams, base, clock, length, last, out = {}, {}, {}, None, None, None, []
    for at in range(head, len(data) - 15, 16):
        word = data[at:at + 16]
        tag, low = word[0], word[0] & 63
        if tag == 0:
            assert not any(data[at:]), f"{path}: bytes behind the end"
            break
        if tag == 16:
            count, stride = struct.unpack_from("<Iq", word, 4)
            assert last and count >= 3
            last.update(count=count, stride=stride)
        elif tag == 17:
            assert last and last["count"] >= 3 or not ended
            last["span"], last["busy"] = struct.unpack_from("<IQ", word, 4)
            last["end"] = last["start"] + last["span"] * tick
        elif tag == 32:
            assert word[1] not in streams
            streams[word[1]] = struct.unpack_from("<HIQ", word, 2)
        elif tag == 33:
            number = struct.unpack_from("<H", word, 2)[0]
            names[number] = names.get(number, b"") + word[4:4 + word[1]]
        elif tag == 34:
            base[word[1]] = struct.unpack_from("<Q", word, 8)[0]
        elif tag == 35:
            clock = struct.unpack_from("<Q", word, 8)[0]
        elif tag == 36:
            length = struct.unpack_from("<Q", word, 8)[0]
        elif tag == 47:
            break
        elif low in KINDS:
            _, number, dur, start, where = struct.unpack("<BBHIQ", word)
            near = clock // tick
            start = near + (start - near + (1 << 31)) % (1 << 32) - (1 << 31)
            size = (where >> 40) * (4096 if tag & 128 else 1)
            file, tid, flags = streams[number]
            begin = start_ns + start * tick
            last = dict(kind=KINDS[low], failed=bool(tag & 64), file=names.get(file, b"?").decode(errors="surrogateescape"),
                        off=base.get(number, 0) + (where & (1 << 40) - 1), len=size if length is None else length, start=begin,
                        end=begin + ((dur & 2047) << (dur >> 11)), tid=tid, count=1, stride=0, rank=rank)
            length = None
            out.append(last)
        else:
            raise AssertionError(f"{path}: word {tag}")
    return out, dict(pid=pid, rank=rank, ranks=ranks, ended=ended, left=left, left_bytes=left_bytes, words=(len(data) - head) // 16)


if __name__ == "__main__":
    for path in sys.argv[1:]:
        for c in calls(path)[0]:
            for i in range(c["count"]):
                each = (c["end"] - c["start"]) // c["count"]
                print(c["kind"] + ("!" if c["failed"] else ""), c["file"], c["off"] + i * c["stride"], c["len"],
                      c["start"] + i * each, c["start"] + (i + 1) * each, c["rank"], c["tid"])
