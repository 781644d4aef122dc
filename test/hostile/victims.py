# SPDX-License-Identifier: BSD-3-Clause
"""
What victims do with logical files, in the model of the judge too: each read must give the bytes of the model,
or an error where the hostile user may cause one. Mixed into Round.
"""

import os
import stat

from judge import Finding, pattern
from world import A, B, Hang

# What an error of the victim's own call may be without anybody's doing.
ORDINARY = {"EBADF", "ENOSPC", "EEXIST"}


class Over(Exception):
    """The round ends here, without a finding."""


def quietly(function, *args):
    try:
        function(*args)
        return True
    except OSError:
        return False


class Stranger:
    """A file of the hostile user's that a victim uses: any bytes will do, but not a call without an end."""

    name, secret, tainted, may_fail, may_go, content = "B's file", False, True, True, True, None

    def __init__(self):
        self.wild = []

    def compare(self, *_):
        pass

    wrote = cut = compare

    def __str__(self):
        return self.name


class Victims:
    def victim(self, name, op, args):
        if op == "restart":
            self.world.end(name, kill=args[0])
            self.slots = {k: v for k, v in self.slots.items() if k[0] != name}
            return
        agent = self.world.agent(name)
        {
            "open": self.v_open,
            "stat": self.v_stat,
            "unlink": self.v_by_name,
            "rename": self.v_by_name,
            "truncate": self.v_by_name,
            "chmod": self.v_by_name,
            "list": self.v_list,
        }.get(op, self.v_by_slot)(name, agent, op, args)

    def expect(self, thing, op, error, name=""):
        """An error of a call by a victim. With a name: others may have changed the directories on the way."""
        if name.startswith(("dB/", "both/")) and str(error) in ("EACCES", "ENOENT", "ELOOP", "ENOTDIR"):
            return
        if (
            thing
            and not (thing.tainted or thing.may_fail or thing.may_go or self.judge.all_may_fail or thing.wild)
            and str(error) not in ORDINARY
        ):
            raise Finding("denied", f"{op} of {thing}: {error}")

    def wait(self, thing, agent_name, op, call):
        """A call of a victim. In a file that the hostile user may write he may hold a write lock."""
        try:
            return call()
        except Hang as e:
            writer = thing is None or thing.tainted
            if writer and (self.write_locks or self.leases) and agent_name != "r":
                self.waits += 1
                self.world.end(agent_name)
                raise Over() from None
            raise Finding("hang", f"{op} of {thing or 'a file of B'} did not end: {e}") from None

    def v_open(self, name, agent, op, args):
        slot, file, flags, mode = args
        path = f"{self.world.back}/{file}"
        before = self.judge.of(path)
        regular = os.path.lexists(path) and stat.S_ISREG(os.lstat(path).st_mode)
        if not regular and os.path.lexists(path):
            return
        self.slots.pop((name, slot), None)
        try:
            fd = self.wait(before, name, op, lambda: agent.call("v_open", slot, f"/plfs/{file}", flags, mode))
        except OSError as e:
            his = before and name[0] == "a" and before.uid == A and before.mode & 0o600 == 0o600
            if his and not self.loops:
                self.expect(before, op, e, file)
            return
        real = f"/proc/{agent.process.pid}/fd/{fd}"
        st = os.stat(real)
        thing = self.judge.things.get((st.st_dev, st.st_ino))
        if not thing and flags & os.O_EXCL and st.st_uid == A:
            kind = "log" if st.st_mode & stat.S_ISVTX else "plain"
            try:
                thing = self.judge.add(os.readlink(real), file, kind, bytearray())
            except OSError:
                return
        if thing and flags & os.O_TRUNC:
            thing.cut(0)
        if thing and thing.name.startswith("canary"):
            thing = None  # he has led the victim there, as he could lead him without the library
        self.slots[name, slot] = Stranger() if st.st_uid == B else thing

    def v_by_slot(self, name, agent, op, args):
        slot = args[0]
        thing = self.slots.get((name, slot))
        appends = slot[0] == "p"  # its descriptor has O_APPEND
        if not thing or op == ("pwrite" if appends else "append"):
            return
        whole = len(thing.content or b"") if thing.content is not None else 0
        off, data = 0, b""
        if op in ("pwrite", "append"):
            number, size = args[1], args[2]
            off = whole if op == "append" else int(args[3] * (whole or 3000))
            data = pattern(thing, number, size)
            args = [slot, data.decode()] + ([off] if op == "pwrite" else [])
        elif op == "mapped":
            off, data = int(args[2] * whole), pattern(thing, args[1], min(200, whole // 2))
            args = [slot, data.decode(), off]
        elif op == "pread":
            off = int(args[1] * whole * 0.9)
            args = [slot, whole - off + 100 if whole else 100000, off]
        elif op == "ftruncate":
            args = [slot, int(args[1] * whole)]
        try:
            got = self.wait(thing, name, op, lambda: agent.call(f"v_{op}", *args))
        except OSError as e:
            thing.wild += (
                [(off, off + len(data) or off + 1)]
                if op in ("pwrite", "append", "ftruncate", "mapped")
                else []
            )
            self.expect(thing, op, e)
            return
        if op in ("pwrite", "append", "mapped"):
            thing.wrote(off, data[:got])
        elif op == "pread":
            thing.compare(off, got.encode("latin-1"), whole - off, f"{name}")
        elif op == "ftruncate":
            thing.cut(args[1])
        elif op == "size" and not thing.tainted and not thing.wild and got != whole:
            raise Finding("wrong size", f"fstat says {got} of {thing}, not {whole}")

    def v_stat(self, name, agent, op, args):
        thing = self.judge.of(f"{self.world.back}/{args[0]}", follow=True)
        try:
            got = self.wait(thing, name, op, lambda: agent.call("v_stat", f"/plfs/{args[0]}"))
        except OSError as e:
            if not self.loops:
                self.expect(thing, op, e, args[0])
            return
        if (
            thing
            and thing.content is not None
            and not (thing.tainted or thing.wild or self.loops or thing.may_fail)
            and got != len(thing.content)
        ):
            raise Finding("wrong size", f"stat says {got} of {thing}, not {len(thing.content)}")

    def v_list(self, name, agent, _, args):
        quietly(agent.call, "v_list", f"/plfs/{args[0]}")

    def v_by_name(self, name, agent, op, args):
        """Only where the names are the victim's own, or nobody moves them: else the effect is elsewhere."""
        path = f"{self.world.back}/{args[0]}"
        thing = self.judge.of(path)
        owner = {"a": A, "r": None}[name[0]]
        if not thing or (owner is not None and thing.uid != owner) or thing.kind == "dir" or self.loops:
            return
        if os.path.realpath(path) != os.path.abspath(path):
            return
        rest = list(args[1:])
        over = None
        if op == "rename":
            over = self.judge.of(f"{self.world.back}/{rest[0]}")
            if os.path.lexists(f"{self.world.back}/{rest[0]}") and not over:
                return
            if os.path.realpath(os.path.dirname(f"{self.world.back}/{rest[0]}")) != os.path.dirname(
                f"{self.world.back}/{rest[0]}"
            ):
                return
            rest[0] = f"/plfs/{rest[0]}"
        elif op == "truncate":
            rest[0] = int(rest[0] * len(thing.content or b""))
        elif op == "chmod" and thing.secret and rest[0] & 0o077:
            return
        expected = dict(thing.__dict__)
        if op == "unlink":
            thing.may_go = True
        elif op == "rename" and over:
            over.may_go = True
        try:
            self.wait(thing, name, op, lambda: agent.call(f"v_{op}", f"/plfs/{args[0]}", *rest))
        except OSError as e:
            thing.may_go = expected["may_go"]
            if op == "truncate":
                thing.wild.append((rest[0], rest[0] + 1))
            self.expect(thing, op, e, args[0])
            return
        if op == "truncate":
            thing.cut(rest[0])
        elif op == "chmod":
            thing.mode = rest[0] | (thing.mode & stat.S_ISVTX)
            thing.look_at_mode()
            thing.lists = thing.access_lists()
        self.judge.forget(over if op == "rename" else thing)
