# SPDX-License-Identifier: BSD-3-Clause
"""
What must hold of everything that is not the hostile user's. Each such file or directory is held open by
O_PATH, so that it is known under any name, and without one. Bytes of logical files are compared when a victim
reads them.

A file that the hostile user may write by its mode is tainted: its bytes are his business as well. What he has
moved or removed himself, the kernel let him move or remove.
"""

import os
import stat

from world import A, PROJECT, SECRET


class Finding(Exception):
    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


class Thing:
    def __init__(self, path, name, kind, content=None):
        self.fd = os.open(path, os.O_PATH | os.O_NOFOLLOW)
        self.name, self.kind, self.content = name, kind, content
        st = os.fstat(self.fd)
        self.key, self.uid, self.gid, self.mode = (
            (st.st_dev, st.st_ino),
            st.st_uid,
            st.st_gid,
            stat.S_IMODE(st.st_mode),
        )
        self.lists = self.access_lists()
        self.tainted = False
        self.secret = kind == "log" and not self.mode & 0o077
        self.may_go = self.may_fail = False
        self.wild = []  # ranges of bytes that a failed write may have changed
        self.look_at_mode()

    def look_at_mode(self):
        self.tainted |= bool(self.mode & 0o002 or (self.gid == PROJECT and self.mode & 0o020))

    def access_lists(self):
        path = f"/proc/self/fd/{self.fd}"
        return [(n, os.getxattr(path, n)) for n in sorted(os.listxattr(path)) if "posix_acl" in n]

    def bytes(self):
        with open(f"/proc/self/fd/{self.fd}", "rb") as f:
            return bytearray(f.read())

    def close(self):
        os.close(self.fd)

    def __str__(self):
        return f"{self.name} ({'A' if self.uid == A else 'root'}'s, {self.mode & 0o777:03o})"

    # ---- the model of a logical file ----

    def wrote(self, off, data, sure=True):
        if self.content is None:
            return
        if not sure:
            self.wild.append((off, off + len(data)))
            return
        if off > len(self.content):
            self.content += bytes(off - len(self.content))
        self.content[off : off + len(data)] = data

    def cut(self, size):
        if self.content is not None:
            del self.content[size:]
            self.content += bytes(size - len(self.content))
            self.wild = [(a, min(b, size)) for a, b in self.wild if a < size]

    def compare(self, off, got, want_len, who):
        """What a read returned."""
        if self.tainted or self.content is None:
            return
        want = bytes(self.content[off : off + want_len])
        forged = sum(byte >= 0x80 for byte in got)
        if forged:
            raise Finding("forged bytes", f"{who} reads {forged} bytes of B's in {self}")
        if self.wild:
            return
        if got != want:
            at = next((i for i, (g, w) in enumerate(zip(got, want)) if g != w), min(len(got), len(want)))
            raise Finding(
                "wrong bytes",
                f"{who} reads {len(got)} bytes of {self}, not {len(want)}; the first other one at "
                f"{off + at}: {got[at:at + 16]!r}, not {want[at:at + 16]!r}",
            )


class Judge:
    def __init__(self, world):
        self.world, self.things, self.flattened = world, {}, False
        self.all_may_fail = False  # the hostile user may move .plfs, as the backend's mode lets him
        self.listed = {}

    def add(self, path, name, kind, content=None):
        thing = Thing(path, name, kind, content)
        old = self.things.get(thing.key)
        if old:
            old.close()
        self.things[thing.key] = thing
        return thing

    def of(self, path, follow=False):
        """The thing at a path, or None."""
        try:
            st = os.stat(path, follow_symlinks=follow)
        except (OSError, ValueError):
            return None
        return self.things.get((st.st_dev, st.st_ino))

    def canaries(self):
        for where, _, files in os.walk(self.world.work + "/canary"):
            self.add(where, where[len(self.world.work) + 1 :], "dir")
            self.listed[where] = None if "/a" in where[-6:] else sorted(os.listdir(where))
            for name in files:
                path = f"{where}/{name}"
                thing = self.add(path, path[len(self.world.work) + 1 :], "plain")
                thing.content = thing.bytes()

    def forget(self, thing):
        """Its owner has removed it."""
        if thing and thing.key in self.things and not os.fstat(thing.fd).st_nlink:
            del self.things[thing.key]
            thing.close()

    def gone_by_himself(self):
        """After a call of the hostile user: what he has removed he could remove without us."""
        for thing in self.things.values():
            if not os.fstat(thing.fd).st_nlink:
                thing.may_go = thing.may_fail = True

    def audit(self, when):
        for thing in list(self.things.values()):
            st = os.fstat(thing.fd)
            if st.st_nlink == 0 and not thing.may_go:
                if not (self.flattened and self.replaced(thing)):
                    raise Finding("removed", f"{thing} is gone after {when}")
                continue
            if (st.st_uid, st.st_gid) != (thing.uid, thing.gid):
                raise Finding(
                    "owner",
                    f"{thing} belongs to {st.st_uid}:{st.st_gid}, not {thing.uid}:{thing.gid}, after {when}",
                )
            changed = stat.S_IMODE(st.st_mode) ^ thing.mode
            if thing.tainted and stat.S_ISREG(st.st_mode):
                changed &= ~stat.S_ISVTX  # the mark follows the header
            if changed:
                raise Finding(
                    "mode", f"{thing} has mode {stat.S_IMODE(st.st_mode):o}, not {thing.mode:o}, after {when}"
                )
            if thing.access_lists() != thing.lists:
                raise Finding("list", f"{thing} has another access control list after {when}")
            if (
                thing.kind == "plain"
                and not thing.tainted
                and not thing.wild
                and thing.bytes() != thing.content
            ):
                raise Finding(
                    "changed", f"{thing} has other bytes after {when}: {bytes(thing.bytes()[:60])!r}"
                )
        for where, names in self.listed.items():
            if names is not None and sorted(os.listdir(where)) != names:
                raise Finding("canary", f"{where} has {sorted(os.listdir(where))}, not {names}, after {when}")

    def names(self):
        """Paths of the things below the backend's namespace."""
        found = {}
        for where, dirs, files in os.walk(self.world.back):
            dirs[:] = [
                d for d in dirs if len(where) < 3000 and not (where == self.world.back and d == ".plfs")
            ]
            for name in dirs + files:
                thing = self.of(f"{where}/{name}")
                if thing:
                    found[thing.key] = f"{where}/{name}"
        return found

    def hidden(self, moving):
        """gc without an age removes the containers of files that the owner of their directory has moved away."""
        names = self.names()
        for thing in self.things.values():
            his = moving and thing.name.startswith(("dB/", "both/"))
            thing.may_fail |= thing.kind == "log" and (his or thing.key not in names)

    def replaced(self, thing):
        """A flatten has put a plain file in the place of a stub: one with its owner, mode and bytes."""
        if thing.kind != "log":
            return False
        for where, _, files in os.walk(self.world.work):
            for path in (f"{where}/{name}" for name in files if len(where) < 3000):
                st = os.lstat(path)
                if (
                    stat.S_ISREG(st.st_mode)
                    and st.st_uid == thing.uid
                    and (st.st_dev, st.st_ino) not in self.things
                    and not st.st_mode & stat.S_ISVTX
                    and "/.plfs/" not in path
                    and st.st_mode & 0o777 == thing.mode & 0o777
                ):
                    with open(path, "rb") as f:
                        data = f.read(1 << 22)
                    if thing.tainted or thing.wild or data == thing.content:
                        new = self.add(path, thing.name, "plain", bytearray(data))
                        new.secret, new.tainted, new.may_fail = thing.secret, thing.tainted, thing.may_fail
                        del self.things[thing.key]
                        thing.close()
                        return True
        return False

    def close(self):
        for thing in self.things.values():
            thing.close()


def pattern(thing, number, size):
    """What a victim writes: the secret into his private files; never a byte above 127."""
    word = f"{SECRET}{number}." if thing.secret else f"text of {thing.name} {number};"
    return (word * (size // len(word) + 1)).encode()[:size]
