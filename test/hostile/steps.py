# SPDX-License-Identifier: BSD-3-Clause
"""
The steps of a round, made from a seed: what the hostile user does, at random and in the order of known
tricks, amid the calls of the victims and of root. A step is [who, process, what, arguments...]; its names are
symbols (world.py).
"""

import os

from tricks import CALLS, ELEMENTS, HOLDS, MODES, MOVABLE, NAMES, OPEN, OWN, TARGETS, VICTIMS, Tricks
from world import A


class Steps(Tricks):
    """Each round has a part of the calls and tricks only, so that one finding does not hide the others."""

    def __init__(self, rng):
        self.rng, self.out = rng, []
        self.calls = rng.sample(CALLS, len(CALLS) // 2) + ["stop", "release"]
        tricks = [
            self.swap,
            self.table,
            self.lock,
            self.adopt,
            self.huge,
            self.trap,
            self.supply,
            self.forge_stub,
            self.nest,
            self.scribble,
            self.occupy,
            self.flood,
            self.redirect,
            self.spy,
            self.stale,
        ]
        self.tricks = rng.sample(tricks, rng.randrange(1, 6))
        self.focus = [rng.choice(OWN), rng.choice(OPEN), rng.choice(OWN)]
        self.victim = rng.choice(VICTIMS)
        self.slots = {}
        self.files = 0

    def b(self, op, *args):
        self.out.append(["B", "b", op, *args])

    def some(self, *lists):
        return self.rng.choice(self.rng.choice(lists))

    # ---- names ----

    def mine(self):
        """A file of his own, or one that he may write."""
        return self.rng.choice(self.focus) if self.rng.random() < 0.7 else self.some(OWN, OPEN)

    def theirs(self):
        return self.victim if self.rng.random() < 0.5 else self.rng.choice(VICTIMS)

    def place(self):
        """A name of ours in a container, or in .plfs."""
        if self.rng.random() < 0.1:
            return self.rng.choice(["p:writers", "p:format"])
        file = self.mine() if self.rng.random() < 0.7 else self.theirs()
        element = self.rng.choice(ELEMENTS)
        return f"c:{file}:{element}" if element else f"c:{file}"

    def thing(self):
        """Anything that he may hope to change."""
        kind = self.rng.random()
        if kind < 0.55:
            return self.place()
        if kind < 0.75:
            return "n:" + self.mine()
        return self.rng.choice(
            [
                "n:dB",
                "n:dB/bdir",
                "n:dB/new1",
                "n:new2",
                "s:1",
                "s:2",
                "n:both/new3",
                "n:dB/.plfs",
                "p:",
                "p:" + self.theirs(),
            ]
        )

    def data(self):
        head = self.rng.choice(["", "", "PLFSLIV1", "PLFSLOG1", "PLFSIDX2", "PLFSTUB1", "\0" * 8])
        return head + "".join(
            self.rng.choice("\x80\x81\xb0\xff") for _ in range(self.rng.choice([1, 4, 8, 64, 600]))
        )

    # ---- the hostile user: single calls ----

    def single(self):
        rng = self.rng
        kind = rng.choice(self.calls)
        if kind == "move":
            self.b("rename", "n:" + rng.choice(MOVABLE), self.place())
        elif kind in ("rename", "exchange", "link"):
            self.b(kind, self.thing(), self.thing())
        elif kind == "symlink":
            self.b("symlink", rng.choice(TARGETS + ["c:" + self.theirs()]), self.thing())
        elif kind == "mkdir":
            self.b("mkdir", self.thing(), rng.choice(MODES))
        elif kind in ("mkfifo", "unlink", "rmtree"):
            self.b(kind, self.thing())
        elif kind == "create":
            content = rng.choice(
                ["LOG", "INDEX0", "INDEX1", "INDEX2", "INDEX3", self.data(), self.data(), ""]
            )
            path = (
                f"c:{self.mine()}:index"
                if content.startswith("INDEX")
                else f"c:{self.mine()}:data:0" if content == "LOG" else self.thing()
            )
            self.b("unlink", path)
            self.b(
                "create",
                path,
                rng.choice(MODES),
                content,
                rng.choice([0, 0, 0, 4096, 65536, 1 << 20, 1 << 34, 1 << 42]),
            )
        elif kind == "truncate":
            self.b(
                "truncate",
                self.thing(),
                rng.choice([0, 1, 8, 100, 511, 4096, 4100, 65536, 1 << 20, 1 << 34, 1 << 42]),
            )
        elif kind == "chmod":
            self.b("chmod", self.thing(), rng.choice(MODES))
        elif kind == "write":
            at = rng.choice(
                [
                    0,
                    8,
                    12,
                    16,
                    40,
                    48,
                    80,
                    216,
                    480,
                    512,
                    520,
                    528,
                    536,
                    568,
                    1024,
                    4096,
                    4160,
                    49152,
                    rng.randrange(70000),
                ]
            )
            path = "p:writers" if rng.random() < 0.15 else self.thing()
            self.b("write", path, at, rng.choice([self.data(), "\0" * 64, "\xff" * 8, "\1\0\0\0\0\0\0\0"]))
        elif kind == "hold":
            self.b(
                "hold",
                self.hold_path(),
                rng.choice(HOLDS),
                rng.choice([0, 0, 0, 1, 2, 3]),
                rng.choice([0, 1, 1]),
            )
        elif kind == "acl":
            self.b("acl", self.thing(), rng.choice(["access", "default"]), A, rng.choice([0, 4, 7]))
        elif kind == "utime":
            self.b("utime", self.thing(), rng.choice([0, 2**31, 2**33]))
        elif kind == "name":
            name = rng.choice(NAMES)
            rng.choice(
                [
                    lambda: self.b("create", name, 0o1666, self.data(), 0),
                    lambda: self.b("rename", "n:dB/b1", name),
                    lambda: self.b("mkdir", name, 0o777),
                    lambda: self.b("create", "c:dB/b0:new:" + name[5:], 0o644, "x", 0),
                    lambda: self.b("rename", "n:" + self.mine(), name),
                ]
            )()
        elif kind == "lib":
            self.library()
        elif kind == "kill":
            self.out.append(["B", "bl", "kill"])
        else:
            self.b(kind)

    def hold_path(self):
        rng = self.rng
        if rng.random() < 0.5:
            return "n:" + rng.choice([self.victim, self.mine(), "a644", "dA/a644", "a666", "dB/a644"])
        if rng.random() < 0.2:
            return rng.choice(["p:writers", "p:", "p:format"])
        file = rng.choice([self.victim, self.mine(), "a644", "dA/a644"])
        return f"c:{file}:" + rng.choice(["index", "lock", "notice", "live:0", "data:0", "global", "hostdir"])

    def library(self, file=None, close=None):
        """The hostile user writes under the library, as anybody does."""

        def lib(op, *args):
            self.out.append(["B", "bl", "lib_" + op, *args])

        lib("open", "h", "n:" + (file or self.mine()), os.O_RDWR | os.O_CREAT, 0o666)
        for _ in range(self.rng.randrange(4) if file is None else 3):
            lib("pwrite", "h", "\xb0\xb1" * self.rng.choice([4, 400, 3000]), self.rng.randrange(20000))
        if self.rng.random() < 0.5:
            lib("pread", "h", 4096, 0)
        if self.rng.random() < 0.6 if close is None else close:
            lib("close", "h")

    # ---- victims and root ----

    def victim_writes(self, file, close=True):
        agent = self.rng.choice(["a0", "a0", "a1"])
        slot = self.rng.choice(["h", "p"])
        self.out.append(["A", agent, "open", slot, file, os.O_RDWR | (os.O_APPEND if slot == "p" else 0), 0])
        for _ in range(self.rng.randrange(1, 4)):
            size = self.rng.choice([1, 100, 3000, 70000])
            if slot == "p":
                self.out.append(["A", agent, "append", slot, self.rng.randrange(1000), size])
            else:
                self.out.append(
                    [
                        "A",
                        agent,
                        "pwrite",
                        slot,
                        self.rng.randrange(1000),
                        size,
                        self.rng.choice([0, 0.3, 1, 1.5]),
                    ]
                )
        self.out.append(
            [
                "A",
                agent,
                *self.rng.choice(
                    [["fsync", slot], ["size", slot], ["pread", slot, 0], ["mapped", slot, 9, 0.3]]
                ),
            ]
        )
        if close:
            self.out.append(["A", agent, "close", slot])

    def victim_reads(self, file):
        agent = self.rng.choice(["a0", "a1"])
        self.out.append(["A", agent, "open", "h", file, os.O_RDONLY, 0])
        self.out.append(["A", agent, "pread", "h", self.rng.choice([0, 0, 0.5])])
        self.out.append(["A", agent, self.rng.choice(["size", "close"]), "h"])
        self.out.append(["A", agent, "stat", file])

    def by_name(self):
        rng = self.rng
        file = rng.choice(
            [
                "a600",
                "a644",
                "dA/a600",
                "dA/a644",
                "dA/a666",
                "dA/priv/p600",
                "priv/p644",
                "dA/n1",
                "dA/n2",
                "dB/a600",
            ]
        )
        op = rng.choice(
            [
                "truncate",
                "truncate",
                "chmod",
                "rename",
                "unlink",
                "restart",
                "list",
                "stat",
                "create",
                "create",
                "trunc",
            ]
        )
        agent = rng.choice(["a0", "a1"])
        if op == "truncate":
            self.out.append(["A", agent, op, file, rng.choice([0, 0, 0.5, 1.2])])
        elif op == "chmod":
            self.out.append(["A", agent, op, file, rng.choice([0o600, 0o644, 0o600, 0o666])])
        elif op == "rename":
            self.out.append(["A", agent, op, file, rng.choice(["dA/n1", "dA/n2", "a600", "dA/a644"])])
        elif op == "restart":
            self.out.append(["A", agent, op, rng.random() < 0.5])
        elif op == "create":
            file = rng.choice(["dA/n1", "dA/n2", "n3", "dB/n4", "both/n5"])
            self.out.append(
                [
                    "A",
                    agent,
                    "open",
                    "h",
                    file,
                    os.O_RDWR | os.O_CREAT | os.O_EXCL,
                    rng.choice([0o600, 0o644, 0o666]),
                ]
            )
            self.out.append(["A", agent, "pwrite", "h", 1, rng.choice([10, 5000]), 0])
        elif op == "trunc":
            self.out.append(["A", agent, "open", "h", file, os.O_RDWR | os.O_TRUNC, 0])
        else:
            self.out.append(["A", agent, op, file])

    def root(self, file):
        """A tool, now and then by the victim, or a call of root's under the library."""
        n = "n:" + file
        step = self.rng.choice(
            [
                ["check", n],
                ["repair", n],
                ["flatten", n],
                ["flatten", n],
                ["stat", n],
                ["stat", "--json", n],
                ["map", n],
                ["flatten", "-o", "OUT", n],
                ["check", "-r", "n:"],
                ["check", "-r", "--json", "n:"],
                ["repair", "-r", "n:"],
                ["repair", "-n", "-r", "n:"],
                ["gc", "-a", "0", "n:"],
                ["gc", "-a", "0", "n:"],
                ["gc", "-n", "--json", "n:"],
                ["init", "n:"],
                ["lib", "write", file],
                ["lib", "read", file],
                ["lib", "chmod", file],
                ["lib", "chown", file],
                ["lib", "unlink", file],
            ]
        )
        self.out.append(
            ["A", "tool"] + step
            if step[0] not in ("lib", "init") and self.rng.random() < 0.15 and "OUT" not in step
            else ["R", ""] + step
        )

    def all(self, nr):
        while len(self.out) < nr:
            kind = self.rng.random()
            if kind < 0.4:
                self.single()
            elif kind < 0.6:
                self.trick()
            elif kind < 0.7:
                self.victim_writes(self.rng.choice([self.theirs(), self.mine()]), self.rng.random() < 0.7)
            elif kind < 0.8:
                self.victim_reads(self.rng.choice([self.theirs(), self.mine()]))
            elif kind < 0.9:
                self.by_name()
            else:
                self.root(self.rng.choice([self.theirs(), self.mine(), self.mine()]))
        return self.out

    def before_init(self):
        self.out = []
        for _ in range(self.rng.randrange(1, 3)):
            self.rng.choice(
                [
                    lambda: self.b("rename", "n:priv", "p:"),
                    lambda: self.b("mkdir", "p:", 0o777),
                    lambda: self.b("symlink", "x:root", "p:"),
                    lambda: self.b("symlink", "n:priv", "p:"),
                    lambda: self.b("mkfifo", "p:format"),
                    lambda: self.b("rename", "n:dB/adir", "p:"),
                ]
            )()
        return self.out
