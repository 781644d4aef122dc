# SPDX-License-Identifier: BSD-3-Clause
"""
One round: a backend is made, then steps are carried out, one after the other, and judged. Every step can be
left out, so that a finding can be shown with few of them.
"""

import os
import random
import re
import stat

from judge import Finding, Judge, pattern
from victims import Over, Victims, quietly
from world import A, B, PROJECT, SECRET, TREE, Died, Hang, World

LINES_MAX = 10000
MEMORY_MAX = 400 << 10  # KiB; the largest index that is forged here has 9 MB


class Round(Victims):
    def __init__(self, seed, kind):
        self.rng = random.Random(seed)
        self.world = World(self.rng, kind)
        self.judge = Judge(self.world)
        self.slots, self.done, self.write_locks = {}, [], 0
        self.loops = self.leases = False
        self.waits, self.left = 0, None

    # ---- making the backend ----

    def make(self, steps):
        """steps: what the hostile user does before plfs init. False: init refuses what he has made there."""
        world, judge = self.world, self.judge
        judge.canaries()
        for name, uid, mode, kind in TREE:
            if kind == "log":
                continue
            path = f"{world.back}/{name}"
            if kind == "dir":
                os.mkdir(path)
            else:
                with open(path, "w") as f:
                    f.write((SECRET if not mode & 0o077 else "plain text;") * 300)
            os.chown(path, uid, PROJECT if mode & 0o2070 == 0o2070 else uid)
            os.chmod(path, mode)
            if uid != B:
                thing = judge.add(path, name, kind)
                thing.content = thing.bytes() if kind == "plain" else None
        if world.before_init:
            for step in steps:
                if step[2] in ("rename", "mkdir", "symlink", "create", "mkfifo"):
                    self.step(step)
        rc = world.tool("init", world.back)[0]
        if rc and world.kind == "group":  # it wants the sticky bit
            os.chmod(world.back, 0o3770)
            rc = world.tool("init", world.back)[0]
        judge.audit("plfs init")
        if rc:
            if not world.before_init:
                raise Finding("init", "plfs init refuses a directory that is in order")
            return False
        for name, uid, mode, kind in TREE:
            if kind == "log":
                self.make_log(name, uid, mode)
        self.leave_container()
        for name in ("dA/orphan", "dA/orphan600"):
            container = world.container(name)[0]
            if os.path.isdir(container):
                os.rename(container, f"{world.work}/out/{os.path.basename(name)}")
            thing = judge.of(f"{world.back}/{name}")
            if thing:
                thing.may_fail = True
        return True

    def leave_container(self):
        """A container of a third user's to which no file leads: gc must remove it, whatever others have."""
        agent, path = self.world.agent("c"), "left"
        if not quietly(agent.call, "v_open", "make", f"/plfs/{path}", os.O_RDWR | os.O_CREAT, 0o644):
            return
        for i in range(4):
            quietly(agent.call, "v_pwrite", "make", "x" * 70000, i * 70000)
        quietly(agent.call, "v_close", "make")
        self.world.end("c", kill=False)
        self.left = self.world.container(path)[0]
        os.unlink(f"{self.world.back}/{path}")

    def collect(self):
        left = self.left and os.path.exists(self.left)
        _, data, _ = self.world.tool("gc", "-a", "0", self.world.back)
        self.judge.audit("the last gc")
        if left and os.path.exists(self.left) and not self.judge.all_may_fail:
            raise Finding("gc stopped", f"a container of C's that no file has is not removed: {data[:200]!r}")

    def make_log(self, name, uid, mode):
        agent = self.world.agent({A: "a0", B: "bl", 0: "r"}[uid])
        size = self.rng.choice([100, 3000, 9000])
        path = f"{self.world.back}/{name}"
        try:
            agent.call("v_open", "make", f"/plfs/{name}", os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
            if uid == B:
                data = b"\x80\xb0forged by B\xff" * (size // 14)
            else:
                thing = self.judge.add(path, name, "log", bytearray())
                data = pattern(thing, 0, size)
                thing.wrote(0, data)
            for at in range(0, len(data), 1000):
                agent.call("v_pwrite", "make", data[at : at + 1000].decode("latin-1"), at)
            agent.call("v_close", "make")
        except OSError as e:
            if uid != B and not self.world.before_init:
                raise Finding("denied", f"{name} cannot be made: {e}") from None

    # ---- steps ----

    def step(self, step):
        self.done.append(step)
        who, _, op, *args = step
        try:
            if who == "B":
                self.hostile(op, args)
                self.judge.gone_by_himself()
            elif who == "A" and step[1] == "tool":
                self.tool(op, args, A)
                self.judge.audit(f"A's plfs {op} {' '.join(map(str, args))}")
            elif who == "A":
                self.victim(step[1], op, args)
                self.since_audit = getattr(self, "since_audit", 0) + 1
                if self.since_audit % 8 == 0:
                    self.judge.audit("calls of A")
            else:
                self.root(op, args)
                self.judge.audit(f"root's {op} {' '.join(map(str, args))}")
        except Hang as e:
            if who == "B":
                self.world.end("bl")
                return
            if op == "lib" and args[0] != "read" and self.write_locks:
                self.waits += 1  # a change of his file, which he may lock as a writer
                raise Over() from None
            raise Finding("hang", f"{who}'s {step[2:]} did not end: {e}") from None
        except Died as e:
            if who == "B":
                self.world.end("bl")
                self.world.end("b")
                return
            raise Finding("crash", str(e)) from None

    # ---- the hostile user ----

    def hostile(self, op, args):
        if op == "kill":
            self.world.end("bl")
            return
        if op.startswith("lib_"):
            agent, op = self.world.agent("bl"), op[4:]
            args = [
                a.replace("n:", "/plfs/", 1) if isinstance(a, str) and a.startswith("n:") else a for a in args
            ]
            quietly(agent.call, f"v_{op}", *args)
            return
        paths = [a for a in args if isinstance(a, str) and a[:2] in ("n:", "c:", "p:", "x:", "s:")]
        args = [self.world.path(a) if a in paths else a for a in args]
        if op in ("copy", "copytree"):
            args += self.ids_of(paths)
        elif op == "stub":
            op, args = "write", self.forged_stub(paths, args)
        elif op == "nested":
            self.nested(*paths)
            return
        elif op == "loop_spy":
            args = [args, SECRET, f"{self.world.work}/stash/spied"]
        elif op == "create" and args[2] in FORGED:
            args[2] = FORGED[args[2]](self, paths[0])
        moved = self.judge.of(args[0]) if op in ("rename", "exchange", "unlink", "link") else None
        over = self.judge.of(args[1]) if op in ("rename", "exchange") else None
        if not quietly(self.world.agent("b").call, f"b_{op}", *args):
            return
        self.note(op, args, moved, over)

    def note(self, op, args, moved, over):
        """What he could do himself is no finding: the names of victims that he may move are his."""
        if op.startswith("loop"):
            self.loops = True
        elif op == "stop":
            self.loops = False
        elif op == "release":
            self.write_locks, self.leases = 0, False
        elif op == "hold":
            # Who may not write a file cannot open its lock.
            self.write_locks += args[1] in ("posix-wr", "ofd-wr") or args[0].endswith("lock")
            self.leases |= "lease" in args[1]
        for thing in (moved, over):
            if thing and thing.kind != "dir":
                thing.may_go |= op != "link"
                thing.may_fail = True
        if op in ("rename", "exchange", "rmdir", "unlink") and any(
            "/.plfs" in a and a.count("/") - self.world.back.count("/") < 4
            for a in args
            if isinstance(a, str)
        ):
            self.judge.all_may_fail = True

    def ids_of(self, symbols):
        """The ids that a copy is to be changed from and to."""
        ids = [self.world.container(s[2:].split(":")[0])[1] if s[0] == "c" else "" for s in symbols]
        return ids if all(ids) and len(ids) == 2 else ["", ""]

    def nested(self, victim, plfs, source):
        """In a .plfs of his own, a container for a stub of the victim's."""
        b = self.world.agent("b")
        _, container_id = self.world.container(victim[2:])
        first = f"{self.world.path(plfs)}/{container_id[:2]}"
        quietly(b.call, "b_mkdir", first, 0o777)
        quietly(
            b.call,
            "b_copytree",
            self.world.path(source),
            f"{first}/{container_id}",
            *self.ids_of([source, victim]),
        )
        quietly(b.call, "b_create", f"{first}/{container_id}/for.{A}", 0o666, "", 0)

    def forged_stub(self, symbols, args):
        from forge import stub

        target, victim, numbered = args[0], symbols[1][2:].split(":")[0], args[2]
        try:
            inode = os.stat(target).st_ino if numbered else 0
        except OSError:
            inode = 0
        return [target, 0, stub(bytes.fromhex(self.world.container(victim)[1]), inode).decode("latin-1")]

    # ---- root ----

    def root(self, op, args):
        if op == "lib":
            self.root_under_library(*args)
        else:
            self.tool(op, args)

    def tool(self, op, args, uid=0):
        world = self.world
        names = [a[2:] for a in args if isinstance(a, str) and a[:2] == "n:"]
        mapped = bool(names) and len(names[0]) % 3 == 0 and op not in ("init",)
        words = [
            (
                (f"/plfs/{a[2:]}" if mapped and a[2:] else world.path(a).rstrip("/"))
                if a[:2] in ("n:", "c:")
                else a
            )
            for a in args
        ]
        if mapped:
            words = ["-m", world.map] + words
        if op == "flatten" and "-o" not in words:
            self.judge.flattened = True
        if op == "gc":
            self.judge.hidden(self.loops)
        words = [f"{world.work}/out/o" if w == "OUT" else w for w in words]
        _, data, memory = world.tool(op, *words, uid=uid)
        if memory > MEMORY_MAX:
            raise Finding("memory", f"plfs {op} needs {memory >> 10} MiB")
        most = LINES_MAX
        if op == "map":  # two lines for each byte of the logs
            most += 2 * world.log_bytes()
        self.look_at_output(f"plfs {op}", data, most)

    def look_at_output(self, what, data, most=LINES_MAX):
        if data.count(b"\n") > most:
            raise Finding("output", f"{what} prints more than {most} lines: {data[-200:]!r}")
        raw = re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", data)
        if raw:
            raise Finding("control characters", f"{what}: {data[max(0, raw.start() - 60):raw.end() + 20]!r}")
        if re.search(rb"^FORGED", data, re.M):
            raise Finding("forged line", f"{what} prints a line that a name has made")

    def root_under_library(self, op, name, *args):
        """What root's plain programs do with a file of the hostile user's, or of the victim's."""
        path = f"{self.world.back}/{name}"
        try:
            st = os.lstat(path)
        except OSError:
            return
        if not stat.S_ISREG(st.st_mode) or os.path.realpath(path) != path or self.loops or self.leases:
            return
        thing = self.judge.of(path)
        agent = self.world.agent("r")
        if thing and op in ("write", "read"):
            self.v_open("r", agent, "open", ["p", name, os.O_RDWR | os.O_APPEND, 0])
            self.v_by_slot(
                "r",
                agent,
                {"write": "append", "read": "pread"}[op],
                ["p", 7, 500] if op == "write" else ["p", 0],
            )
            quietly(agent.call, "v_close", "p")
        elif thing is None and st.st_uid == B:
            if op in ("write", "read"):
                if quietly(agent.call, "v_open", "r", f"/plfs/{name}", os.O_RDWR | os.O_APPEND, 0):
                    quietly(
                        agent.call,
                        *(("v_append", "r", "root's bytes") if op == "write" else ("v_pread", "r", 65536, 0)),
                    )
                    quietly(agent.call, "v_fsync", "r")
                quietly(agent.call, "v_close", "r")
            else:
                call = {
                    "chmod": ["v_chmod", 0o666],
                    "chown": ["v_chown", B],
                    "unlink": ["v_unlink"],
                    "truncate": ["v_truncate", 5],
                }[op]
                quietly(agent.call, call[0], f"/plfs/{name}", *call[1:])

    # ---- the end ----

    def finish(self):
        """Without the hostile user: what the victims find, and what he has found."""
        world = self.world
        for name in ("b", "bl"):
            world.end(name)
        self.loops = self.leases = False
        self.write_locks = 0
        self.judge.audit("the last step")
        for name in ("a0", "a1", "r"):
            if name in world.agents and self.rng.random() < 0.7:
                agent = world.agents.pop(name)
                agent.process.stdin.close()
                try:
                    agent.process.wait(30)
                except Exception:
                    where = agent.where()
                    agent.end()
                    raise Finding("hang", f"the end of {name} did not end: {where}") from None
            world.end(name)
        self.slots = {}
        for key, path in self.judge.names().items():
            thing = self.judge.things.get(key)
            if thing and thing.content is not None and thing.kind == "log":
                self.read_again(thing, path[len(world.back) + 1 :])
        self.judge.audit("the last reads")
        self.spied()
        self.collect()
        for name in os.listdir(world.log):
            with open(f"{world.log}/{name}", "rb") as f:
                if name.endswith(".err") and name[0] in "ar":
                    self.look_at_output(f"the library in {name[:-4]}", f.read(1 << 22))

    def read_again(self, thing, name):
        if thing.may_go and thing.may_fail and "/.plfs" in name:
            return
        who = "a2" if thing.uid == A else "r"
        try:
            agent = self.world.agent(who)
            agent.call("v_open", "last", f"/plfs/{name}", os.O_RDONLY | os.O_NONBLOCK, 0)
            got = agent.call("v_pread", "last", len(thing.content) + 100, 0)
            agent.call("v_close", "last")
        except OSError as e:
            if thing.mode & 0o400:
                self.expect(thing, "the last read", e, name)
            return
        except Hang as e:
            raise Finding("hang", f"the last read of {thing}: {e}") from None
        except Died as e:
            raise Finding("crash", str(e)) from None
        thing.compare(0, got.encode("latin-1"), len(thing.content) + 100, "the last reader")

    def spied(self):
        world = self.world
        found = world.agent("b").call("v_grep", world.work, SECRET, [world.code], limit=30)
        if os.path.exists(f"{world.work}/stash/spied"):
            found.append("for a moment " + open(f"{world.work}/stash/spied").read())
        if found:
            raise Finding("secret", f"B reads the bytes of a private file in {found[:3]}")
        private = [
            world.container(path[len(world.back) + 1 :])[0]
            for key, path in self.judge.names().items()
            if key in self.judge.things
            and not self.judge.things[key].tainted
            and self.judge.things[key].kind == "log"
            and not self.judge.things[key].may_fail
            and not self.judge.all_may_fail
        ]
        mine = world.agent("b").call("v_writable", [p for p in private if "eeee" not in p], limit=30)
        if mine:
            raise Finding("writable", f"B may write {mine[:3]}, of a file that he may not")
        try:
            found = world.agent("bl").call("v_grep", "/plfs", SECRET, [], limit=10)
        except (Hang, Died, OSError):
            return  # his own affair
        if found:
            raise Finding("secret", f"B reads under the library the bytes of a private file in {found[:3]}")

    def close(self):
        self.judge.close()
        self.world.remove()


def forged_log(rnd, symbol):
    from forge import log

    world = rnd.world
    name = os.path.basename(world.path(symbol)).split(".")
    numbers = [int(n) if n.isdigit() else 4242 for n in name[-2:]]
    return log(
        bytes.fromhex(world.container(symbol[2:].split(":")[0])[1]), world.host, *numbers, b"\xb0" * 10
    ).decode("latin-1")


def forged_index(kind):
    def make(rnd, symbol):
        log = rnd.world.path(":".join(symbol.split(":")[:2]) + ":data:0").split(".")
        return f"INDEX:{log[-2]}:{log[-1]}:{kind}"  # which the agent makes

    return make


FORGED = {"LOG": forged_log, **{f"INDEX{i}": forged_index(i) for i in range(4)}}
