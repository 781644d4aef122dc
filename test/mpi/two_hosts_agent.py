# SPDX-License-Identifier: BSD-3-Clause
# An agent on a host, and its driver: Host starts this program there, which does what it is sent, line by line. The agents of all
# hosts have the same process id.
import errno
import fcntl
import hashlib
import os
import socket
import subprocess
import sys


def agent():
    names = {"os": os, "fcntl": fcntl, "socket": socket, "hashlib": hashlib}
    for line in sys.stdin:
        try:
            try:
                code = compile(line.strip(), "agent", "eval")
            except SyntaxError:
                code = compile(line.strip().replace("; ", "\n"), "agent", "exec")
            answer = repr(eval(code, names))
        except OSError as e:
            answer = errno.errorcode[e.errno]
        print(answer, flush=True)


class Host:
    def __init__(self, name, command):
        self.name, self.command = name, command
        self.start()

    def start(self):
        # The id that the next process gets: the shell is to fork, not to become the agent.
        inner = f"echo 4000 >/proc/sys/kernel/ns_last_pid; {sys.executable} {os.path.abspath(__file__)}; exit $?"
        self.process = subprocess.Popen(
            self.command + ["sh", "-c", inner], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, line):
        print(line, file=self.process.stdin, flush=True)

    def answer(self):
        return self.process.stdout.readline().strip()

    def __call__(self, line):
        self.send(line)
        answer = self.answer()
        print(f"{self.name}> {line}\n{answer}")
        return answer

    def stop(self):
        self.process.stdin.close()
        print(f"{self.name} ends: {self.process.wait()}")


if __name__ == "__main__":
    agent()
