# SPDX-License-Identifier: BSD-3-Clause
"""
One backend with a victim, a hostile user and root: how it is made, and what its names mean. The names of
steps are symbols, since ids of containers and numbers of processes differ in each run:

    n:dB/b0           a name below the backend
    c:dB/b0:data:1    of this file's container: itself (c:dB/b0), hostdir, data, live, index, notice, global,
                      lock, for, new:NAME; preddata, predlive: what the victim's process will make next
    p:format          .plfs itself (p:), its format, writers, or the first directory of a container (p:dB/b0)
    x:root/f0 x:a/f0  what lies outside and belongs to root, or to the victim
    s:1               what the hostile user has outside
"""

import glob
import json
import os
import resource
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

from forge import crc32c

A, B, C, PROJECT = 41001, 41002, 41003, 42000
HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
SECRET = "Secret-of-A."
LIMIT_S = 5.0
NO_ID = "ee" * 16
PYTHON = (
    "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
)  # which other users can run


class Hang(Exception):
    """A call did not end in time."""


class Died(Exception):
    """A process was ended by a signal."""


def limits():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))  # a hole of petabytes fills no disk
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


def user(uid):
    return {"user": uid, "group": uid, "extra_groups": [PROJECT]} if uid else {}


def patience():
    """How long a call may take: more where the machine is so busy that a process takes long to begin."""
    start = time.monotonic()
    subprocess.run(["/bin/true"], check=False)
    return LIMIT_S + 50 * max(0, time.monotonic() - start - 0.05)


class Failed(OSError):
    """A call of an agent gave this errno; its name is all that it has."""


def ended(process, seconds):
    """Its largest memory in KiB, or None: it has not ended in so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_maxrss
        time.sleep(0.001)
    return None


class Agent:
    """A process of a user that runs agent.py."""

    def __init__(self, world, uid, name, library):
        self.name, self.uid, self.pid_fds = name, uid, {}
        env = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
        if library:
            env.update({"LD_PRELOAD": world.preload, "PLFS_MAP": world.map}, **world.settings)
        self.log = open(f"{world.log}/{name}.err", "ab")
        self.process = subprocess.Popen(
            [PYTHON, "-I", "-S", f"{world.code}/agent.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=env,
            cwd="/",
            preexec_fn=limits if uid != B else None,
            **user(uid),
        )
        self.rest = b""

    def call(self, op, *args, limit=None):
        """The result, or Failed."""
        self.send(op, *args)
        return self.answer(op, limit)

    def send(self, op, *args):
        try:
            self.process.stdin.write(json.dumps([op, args]).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.answer(op)

    def answer(self, op, limit=None):
        end = time.monotonic() + (limit or LIMIT_S)
        extended = limit is not None
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 and not extended:
                extended, end = True, end + patience() - LIMIT_S
                continue
            if left <= 0:
                raise Hang(self.where())
            if select.select([self.process.stdout], [], [], left)[0]:
                piece = os.read(self.process.stdout.fileno(), 1 << 20)
                if not piece:
                    self.process.wait()
                    raise Died(f"{self.name} ended with {self.process.returncode} in {op}")
                self.rest += piece
        line, self.rest = self.rest.split(b"\n", 1)
        reply = json.loads(line)
        if "errno" in reply:
            raise Failed(reply["errno"])
        return reply["ok"]

    def where(self):
        """In which system call it is, for the report."""
        try:
            with open(f"/proc/{self.process.pid}/syscall") as f:
                words = f.read().split()
            path = os.readlink(f"/proc/{self.process.pid}/fd/{int(words[1], 16)}") if len(words) > 1 else ""
            return f"system call {words[0]} {path}"
        except (OSError, ValueError):
            return ""

    def end(self, kill=True):
        if kill:
            self.process.kill()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


# Name, owner, mode, how it is made: logged under the library, or plain. "dir" is a directory.
TREE = [
    ("dA", A, 0o755, "dir"),
    ("dA/priv", A, 0o700, "dir"),
    ("dB", B, 0o777, "dir"),
    ("both", 0, 0o2770, "dir"),
    ("dB/adir", A, 0o2770, "dir"),
    ("dB/adir/priv", A, 0o700, "dir"),
    ("both/adir", A, 0o2770, "dir"),
    ("both/adir/priv", A, 0o700, "dir"),
    ("dB/bdir", B, 0o777, "dir"),
    ("priv", A, 0o700, "dir"),
    ("a600", A, 0o600, "log"),
    ("a644", A, 0o644, "log"),
    ("a664", A, 0o664, "log"),
    ("a666", A, 0o666, "log"),
    ("dA/a600", A, 0o600, "log"),
    ("dA/a644", A, 0o644, "log"),
    ("dA/a666", A, 0o666, "log"),
    ("dA/priv/p600", A, 0o600, "log"),
    ("priv/p644", A, 0o644, "log"),
    ("dA/orphan", A, 0o644, "log"),
    ("dA/orphan600", A, 0o600, "log"),
    ("dB/a600", A, 0o600, "log"),
    ("dB/a644", A, 0o644, "log"),
    ("dB/plain600", A, 0o600, "plain"),
    ("dB/plain644", A, 0o644, "plain"),
    ("dB/adir/q600", A, 0o600, "log"),
    ("dB/adir/priv/p600", A, 0o600, "plain"),
    ("both/a600", A, 0o600, "log"),
    ("both/a644", A, 0o644, "log"),
    ("both/a664", A, 0o664, "log"),
    ("both/plain600", A, 0o600, "plain"),
    ("both/adir/priv/p600", A, 0o600, "log"),
    ("root644", 0, 0o644, "log"),
    ("b0", B, 0o666, "log"),
    ("dB/b0", B, 0o644, "log"),
    ("dB/b1", B, 0o666, "log"),
    ("dB/f0", B, 0o644, "log"),
    ("both/b0", B, 0o664, "log"),
    ("dB/bdir/f1", B, 0o644, "log"),
]


class World:
    def __init__(self, rng, kind):
        base = os.environ.get("TMPDIR") or ("/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp")
        self.work = tempfile.mkdtemp(prefix="plfs-hostile.", dir=base)
        os.chmod(self.work, 0o755)
        self.back, self.log, self.kind = self.work + "/backend", self.work + "/log", kind
        self.code = self.work + "/code"
        self.preload, self.plfs = self.code + "/libplfs.so", self.code + "/plfs"
        options = rng.choice(["", "{small=0}", "{small=0}", "{small=2K}"])
        self.map = f"/plfs={self.back}{options}"
        self.settings = {"PLFS_CONSISTENCY": "posix"} if rng.random() < 0.15 else {}
        self.before_init = rng.random() < 0.15
        os.mkdir(self.code)
        for path in (
            f"{HERE}/agent.py",
            f"{HERE}/forge.py",
            os.environ.get("PRELOAD", BUILD + "/libplfs.so"),
            BUILD + "/plfs",
        ):
            shutil.copy(path, self.code)
        for name, uid, mode in (
            ("log", 0, 0o755),
            ("canary", 0, 0o755),
            ("canary/root", 0, 0o755),
            ("canary/a", A, 0o755),
            ("canary/root/sub", 0, 0o700),
            ("canary/a/sub", A, 0o2770),
            ("stash", B, 0o777),
            ("out", 0, 0o755),
        ):
            os.mkdir(f"{self.work}/{name}")
            os.chown(f"{self.work}/{name}", uid, PROJECT if name == "canary/a/sub" else uid)
            os.chmod(f"{self.work}/{name}", mode)
        for where, uid in (("root", 0), ("a", A), ("root/sub", 0), ("a/sub", A)):
            for name, mode in (
                ("f0", 0o644),
                ("f1", 0o600),
                ("b0", 0o644),
                ("a600", 0o600),
                ("format", 0o644),
            ):
                path = f"{self.work}/canary/{where}/{name}"
                with open(path, "w") as f:
                    f.write((SECRET if mode == 0o600 else "canary") * 50)
                os.chown(path, uid, uid)
                os.chmod(path, mode)
        os.mkdir(self.back)
        if kind == "all":
            os.chmod(self.back, 0o1777)
        else:
            os.chown(self.back, 0, PROJECT)
            os.chmod(self.back, 0o2770)
        boot = open("/proc/sys/kernel/random/boot_id").read()  # with its newline
        name = socket.gethostname()
        kept = "".join(c for c in name if c.isascii() and (c.isalnum() or c in "-_"))[:40]
        self.host = f"{kept}-{crc32c((name + boot).encode()):08x}"
        self.agents = {}

    # ---- processes ----

    def agent(self, name):
        """a0, a1: the victim's; r: root's; c: a third's; b: the hostile user's; bl: his under the library."""
        if name not in self.agents:
            uid = {"a": A, "b": B, "c": C, "r": 0}[name[0]]
            self.agents[name] = Agent(self, uid, name, name != "b")
        return self.agents[name]

    def end(self, name, kill=True):
        if name in self.agents:
            self.agents.pop(name).end(kill)

    def tool(self, *args, uid=0):
        """plfs: (exit code, output, memory in KiB). No more output is taken than anybody would read."""
        out = open(f"{self.log}/tool.out", "w+b")
        process = subprocess.Popen(
            [self.plfs, *args],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd="/",
            env={"PATH": "/usr/bin:/bin"},
            preexec_fn=limits,
            **user(uid),
        )
        memory = ended(process, 2 * LIMIT_S) or ended(process, patience())
        if not memory:
            size = os.fstat(out.fileno()).st_size
            process.kill()
            process.wait()
            raise Hang(f"plfs {args[0]}, which wrote {size} bytes")
        out.seek(0)
        data = out.read(4 << 20)
        out.close()
        if process.returncode < 0 or process.returncode > 128:
            raise Died(f"plfs {args[0]}: exit code {process.returncode}: {data[-300:]!r}")
        return process.returncode, data, memory

    def log_bytes(self):
        """Of all files."""
        total = 0
        for path in glob.glob(f"{self.back}/.plfs/*/*/*/data.*"):
            try:
                total += os.lstat(path).st_size
            except OSError:
                pass
        return total

    # ---- names ----

    def container(self, name):
        """(path, id) of a file's container, as its header says."""
        container_id = NO_ID
        try:
            fd = os.open(f"{self.back}/{name}", os.O_RDONLY | os.O_NONBLOCK)
            try:
                head = os.pread(fd, 40, 0) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
            finally:
                os.close(fd)
            if head[:8] == b"PLFSTUB1" and len(head) == 40 and any(head[24:40]):
                container_id = head[24:40].hex()
        except OSError:
            pass
        return f"{self.back}/.plfs/{container_id[:2]}/{container_id}", container_id

    def in_container(self, name, what, number):
        path = self.container(name)[0]
        k = crc32c(self.host.encode()) % 32
        hostdir = f"{path}/hostdir.{k}"
        if what in ("data", "live"):
            found = sorted(glob.glob(f"{path}/hostdir.*/{what}.*"))
            return found[number % len(found)] if found else f"{hostdir}/{what}.{self.host}.4242.{number}"
        if what in ("preddata", "predlive"):
            pid = self.agents["a0"].process.pid if "a0" in self.agents else 1
            return f"{hostdir}/{what[4:]}.{self.host}.{pid}.{number}"
        named = {
            "": path,
            "hostdir": hostdir,
            "index": f"{hostdir}/index.{self.host}",
            "notice": f"{hostdir}/notice.{self.host}",
            "global": f"{path}/index.global",
            "lock": f"{path}/lock",
            "for": f"{path}/for.{A}",
        }
        return named.get(what) or f"{path}/{what}"

    def path(self, symbol):
        kind, _, rest = symbol.partition(":")
        if kind == "c":
            name, _, what = rest.partition(":")
            what, _, number = what.partition(":")
            return (
                self.in_container(name, what, int(number or 0))
                if what != "new"
                else self.container(name)[0] + "/" + number
            )
        if kind == "p":
            if rest in ("", "format"):
                return f"{self.back}/.plfs/{rest}".rstrip("/")
            if rest == "writers":
                return f"{self.back}/.plfs/writers.{self.host}"
            return os.path.dirname(self.container(rest)[0])
        return {
            "n": f"{self.back}/{rest}",
            "x": f"{self.work}/canary/{rest}",
            "s": f"{self.work}/stash/{rest}",
        }[kind]

    def remove(self):
        for name in list(self.agents):
            self.end(name)
        subprocess.run(["rm", "-rf", self.work], check=False, stderr=subprocess.DEVNULL)
