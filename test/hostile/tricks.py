# SPDX-License-Identifier: BSD-3-Clause
"""
Names that the hostile user tries, and tricks: several of his calls in an order that could do harm, with the
calls of victims and of root that would fall for it. Mixed into Steps, which has the single calls.
"""

import os

VICTIMS = [
    "a600",
    "a644",
    "a664",
    "a666",
    "dA/a600",
    "dA/a644",
    "dA/a666",
    "dA/priv/p600",
    "priv/p644",
    "dB/a600",
    "dB/a644",
    "dB/adir/q600",
    "both/a600",
    "both/a644",
    "both/a664",
    "both/adir/priv/p600",
    "dA/orphan",
    "dA/orphan600",
]
OPEN = ["a666", "dA/a666", "both/a664"]  # the hostile user may write them too
OWN = ["b0", "dB/b0", "dB/b1", "dB/f0", "both/b0", "dB/bdir/f1"]
MOVABLE = [
    "dB/a600",
    "dB/a644",
    "dB/plain600",
    "dB/plain644",
    "dB/adir",
    "both/a600",
    "both/a644",
    "both/a664",
    "both/plain600",
    "both/adir",
    "priv",
    "a600",
    "a644",
]
ELEMENTS = [
    "",
    "hostdir",
    "data:0",
    "data:1",
    "live:0",
    "index",
    "notice",
    "global",
    "lock",
    "for",
    "preddata:1",
    "predlive:1",
    "new:hostdir.7",
    "new:index.global.tmp.1",
    "new:damaged.1.lock",
]
TARGETS = [
    "x:root",
    "x:a",
    "x:root/f0",
    "x:root/f1",
    "x:a/f0",
    "x:root/sub",
    "n:dA",
    "n:priv",
    "n:dA/a600",
    "p:",
]
MODES = [0o000, 0o600, 0o644, 0o666, 0o777, 0o1666, 0o1600, 0o2777, 0o4777, 0o1644]
HOLDS = ["flock-sh", "flock-ex", "posix-rd", "posix-wr", "ofd-rd", "ofd-wr", "lease-rd", "lease-wr"]
NAMES = [
    "n:dB/x\x1b[2Jy",
    "n:dB/x\nFORGED: y",
    "n:dB/.plfs-flatten.1",
    "n:dB/" + "l" * 255,
    "n:dB/\x9b\xff",
    "n:b\rz",
    "n:dB/bdir/\nFORGED",
]

CALLS = [
    "rename",
    "rename",
    "move",
    "move",
    "move",
    "exchange",
    "exchange",
    "symlink",
    "link",
    "link",
    "mkfifo",
    "mkdir",
    "unlink",
    "rmtree",
    "create",
    "create",
    "truncate",
    "truncate",
    "chmod",
    "write",
    "write",
    "write",
    "hold",
    "hold",
    "hold",
    "hold",
    "acl",
    "utime",
    "name",
    "lib",
    "lib",
    "lib",
    "kill",
]


class Tricks:
    def trick(self):
        self.rng.choice(self.tricks)()

    def link_dir(self):
        link = f"s:l{self.rng.randrange(3)}"
        self.b("unlink", link)
        self.b("symlink", self.rng.choice(TARGETS + ["s:dir", "c:" + self.theirs()]), link)
        return link

    def swap(self):
        """A directory and a link to another one, exchanged all the time, while root and the victim work."""
        link = self.link_dir()
        what = self.rng.choice(
            [
                "n:dB",
                "n:dB/bdir",
                "c:dB/b0",
                "c:dB/b0:hostdir",
                "c:dB/f0",
                f"c:{self.mine()}",
                f"c:{self.mine()}:hostdir",
            ]
        )
        self.b("loop_swap", what, link, self.rng.choice([0, 0.0005, 0.003]))
        for _ in range(self.rng.randrange(1, 4)):
            self.root(self.rng.choice(["dB/b0", "dB/f0", "dB/bdir/f1", self.mine()]))
        self.b("stop")

    def trap(self):
        """When a tool makes its temporary file, the directory of the stub becomes a link to another one."""
        file = self.rng.choice(["dB/f0", "dB/b0", "dB/bdir/f1"])
        self.out.append(["B", "bl", "lib_open", "h", "n:" + file, os.O_RDWR, 0])
        for i in range(4):  # it takes a while to copy
            self.out.append(["B", "bl", "lib_pwrite", "h", "\xb0" * 500000, i * 500000])
        self.out.append(["B", "bl", "lib_close", "h"])
        self.b("mkdir", "s:bait", 0o777)
        for link, target in (
            ("s:t1", self.rng.choice(["x:root", "x:root", "x:a", "n:dA"])),
            ("s:t2", "s:bait"),
        ):
            self.b("unlink", link)
            self.b("symlink", target, link)
        where = ["n:" + os.path.dirname(file), "s:t1"]
        self.b("loop_trap", f"c:{file}", "s:bait", *self.rng.choice([where, where + [f"c:{file}", "s:t2"]]))
        self.out.append(
            ["R", "", *self.rng.choice([["flatten", "n:" + file]] * 3 + [["repair", "n:" + file]])]
        )
        self.b("stop")

    def supply(self):
        """A container of his own making for somebody else's stub."""
        victim = self.rng.choice(["dA/orphan", "dA/orphan600", "dB/a600", "dB/a644", self.theirs()])
        if self.rng.random() < 0.3:
            self.b("rename", "p:", "s:plfs")
            self.b("mkdir", "p:", 0o777)
            self.b("copy", "s:plfs/format", "p:format")
        self.b("mkdir", "p:" + victim, 0o777)
        self.b("copytree", "c:" + self.rng.choice(["dB/b0", "b0"]), "c:" + victim)
        self.b("create", f"c:{victim}:for", 0o666, "", 0)
        self.victim_reads(victim)
        self.root(victim)

    def nest(self):
        """A .plfs of his own in a directory of his, where a stub of the victim's is."""
        victim = self.rng.choice(["dB/a600", "dB/a644"])
        self.b("mkdir", "n:dB/.plfs", 0o777)
        self.b("copy", "p:format", "n:dB/.plfs/format")
        self.b("chmod", "n:dB/.plfs/format", 0o1644)
        if self.rng.random() < 0.5:
            self.b("nested", "c:" + victim, "n:dB/.plfs", "c:dB/b0")
        for _ in range(2):
            self.root(victim)

    def forge_stub(self):
        """A stub that names the container of another file."""
        target = self.rng.choice(["n:dB/b1", "n:b0", "n:dB/new1", "n:a666", "n:dA/a666", "n:dB/f0"])
        self.b("create", "n:dB/new1", 0o1666, "", 8192)
        if self.rng.random() < 0.5:
            self.b("truncate", target, 9000)
        self.b("stub", target, "c:" + self.theirs(), self.rng.random() < 0.5)
        self.victim_reads(target[2:])
        self.root(target[2:])
        self.out.append(
            [
                "R",
                "",
                "lib",
                self.rng.choice(["read", "write", "chmod", "chown", "unlink", "truncate"]),
                target[2:],
            ]
        )

    def scribble(self):
        """His own files change while others read them."""
        file = self.mine()
        self.library(file, self.rng.random() < 0.5)
        self.b(
            "loop_write",
            self.rng.choice(
                [
                    f"c:{file}:live:0",
                    f"c:{file}:data:0",
                    f"c:{file}:index",
                    f"c:{file}:notice",
                    f"n:{file}",
                    "p:writers",
                ]
            ),
            self.rng.choice([600, 5000, 50000, 100000]),
            self.rng.randrange(1 << 30),
        )
        self.victim_reads(file)
        self.root(file)
        self.victim_reads(self.theirs())
        self.root(file)
        self.b("stop")

    def occupy(self):
        """A file that he may move goes where the next process will make its own."""
        file = self.mine()
        self.b("rmtree", f"c:{file}:" + self.rng.choice(["hostdir", "notice", "index", "lock", "global"]))
        self.b("mkdir", f"c:{file}:hostdir", 0o777)
        what = self.rng.choice(
            ["n:dB/plain600", "n:dB/plain644", "n:dB/a600", "n:both/plain600", "n:both/a600", "n:dB/adir"]
        )
        self.b(
            self.rng.choice(["rename", "rename", "link"]),
            what,
            f"c:{file}:"
            + self.rng.choice(
                ["notice", "index", "lock", "global", "preddata:1", "predlive:1", "data:0", "live:0", "for"]
            ),
        )
        self.victim_writes(file)
        self.out.append(
            [
                "R",
                "",
                "lib",
                self.rng.choice(["write", "write", "chmod", "chown", "unlink", "truncate"]),
                file,
            ]
        )
        self.root(file)

    def flood(self):
        """So many names that they fill a terminal, or so deep that no path leads there."""
        if self.rng.random() < 0.5:
            self.b(
                "many",
                self.rng.choice(["c:dB/b0", "c:dB/b0:hostdir", "n:dB/bdir"]),
                self.rng.choice(["data.x.1.", "\x1b[31m", "file"]),
                12000,
            )
        else:
            self.b(
                "many",
                self.rng.choice(["n:dB/bdir", "c:dB/b0", "c:dB/b0:hostdir"]),
                "deep",
                self.rng.choice([5, 18, 40, 300]),
            )
        self.root("dB/b0")
        self.out.append(
            [
                "R",
                "",
                *self.rng.choice([["check", "-r", "n:"], ["gc", "-a", "0", "n:"], ["repair", "-r", "n:dB"]]),
            ]
        )

    def redirect(self):
        """A directory of his becomes a link while the victim, or root, goes by."""
        link = self.link_dir()
        what = self.rng.choice(
            ["n:dB/bdir", "c:dB/b0", "c:dB/b0:hostdir", f"c:{self.mine()}:hostdir", "n:dB"]
        )
        self.b("exchange", what, link)
        self.victim_writes(self.mine())
        self.root("dB/b0")
        self.root("dB/bdir/f1")
        self.out.append(["R", "", *self.rng.choice([["gc", "-a", "0", "n:"], ["repair", "-r", "n:"]])])
        if self.rng.random() < 0.7:
            self.b("exchange", what, link)

    def table(self):
        """The table of writers, which all may write, is locked, emptied or says what is wrong."""
        victim = self.theirs()
        self.out.append(["A", "a0", "open", "p", victim, os.O_RDWR | os.O_APPEND, 0])
        self.out.append(["A", "a0", "append", "p", 1, 100])
        if self.rng.random() < 0.5:
            self.b("truncate", "p:writers", self.rng.choice([0, 0, 8, 64, 4096, 1 << 20]))
        kind = self.rng.randrange(4)
        if kind == 0:
            self.b("hold", "p:writers", self.rng.choice(HOLDS), 0, 0)
        elif kind == 1:
            self.b(
                "write",
                "p:writers",
                self.rng.choice([0, 8, 64]),
                self.rng.choice(["\0", "\1", "\xff"]) * 65472,
            )
        elif kind == 2:
            self.b("loop_write", "p:writers", 65536, self.rng.randrange(1 << 30))
        self.out.append(["A", "a0", "append", "p", 2, 3000])
        self.out.append(["A", "a1", "stat", victim])
        self.out.append(["A", "a1", "restart", False])
        self.out.append(["A", "a1", "open", "h", self.theirs(), os.O_RDWR, 0])
        self.out.append(["A", "a1", "pwrite", "h", 3, 3000, 1])
        self.out.append(["A", "a1", "stat", victim])
        self.root(victim)
        self.b("stop")

    def lock(self):
        """Locks that somebody may hold who can read only."""
        victim = self.rng.choice(["a644", "dA/a644", "dB/a644", self.victim, self.mine(), self.theirs()])
        for _ in range(self.rng.randrange(1, 4)):
            what = self.rng.choice(
                ["n:" + victim]
                + [f"c:{victim}:" + e for e in ("index", "lock", "notice", "live:0", "data:0")]
            )
            self.b(
                "hold",
                what,
                self.rng.choice(["posix-rd", "ofd-rd", "flock-sh", "flock-ex"]),
                self.rng.choice([0, 1, 2]),
                self.rng.choice([0, 1]),
            )
        self.victim_writes(victim)
        self.out.append(["A", "a0", "restart", False])
        self.root(victim)
        self.b("release")

    def adopt(self):
        """A log is killed with bytes in its live file, and another file gets the log's name."""
        file = self.rng.choice(["b0", "dB/b1", "both/b0", "a666", "dA/a666"])
        self.library(file, False)
        self.out.append(["B", "bl", "kill"])
        what = self.rng.choice(
            ["n:dB/plain600", "n:dB/plain644", "n:both/plain600", "n:dB/a644", "c:a644:data:0", "x:a/f0"]
        )
        name = f"c:{file}:data:{self.rng.randrange(3)}"
        self.b("unlink", name) if self.rng.random() < 0.3 else None
        self.b(self.rng.choice(["rename", "rename", "link"]), what, name)
        self.victim_writes(file)
        self.out.append(
            [
                "R",
                "",
                *self.rng.choice([["repair", "n:" + file], ["lib", "write", file], ["flatten", "n:" + file]]),
            ]
        )

    def huge(self):
        """An index that says of a short log what it cannot hold."""
        file = self.mine()
        self.b("unlink", f"c:{file}:index")
        self.b("unlink", f"c:{file}:global")
        self.b(
            "create", f"c:{file}:index", 0o666, self.rng.choice(["INDEX0", "INDEX1", "INDEX2", "INDEX3"]), 0
        )
        self.root(file)
        self.root(file)
        self.victim_reads(file)

    def spy(self):
        victim = self.rng.choice(["dB/a600", "both/a600", "dA/a600", "dB/adir/q600"])
        self.b(
            "loop_spy", "c:" + victim, f"c:{victim}:hostdir", "n:" + os.path.dirname(victim), "p:" + victim
        )
        self.victim_writes(victim)
        self.root(victim)
        self.b("stop")

    def stale(self):
        """A log is moved while the file is open, and something else gets its name."""
        file = self.rng.choice(OPEN)
        self.victim_writes(file, False)
        name = f"c:{file}:" + self.rng.choice(
            ["data:0", "live:0", "index", "notice", "preddata:1", "predlive:1"]
        )
        self.b(*self.rng.choice([["rename", name, "s:old"], ["unlink", name]]))
        self.b("rename", "n:" + self.rng.choice(MOVABLE), name)
        self.victim_writes(file)
