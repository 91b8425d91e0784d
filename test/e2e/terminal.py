"""Runs elrun on a pseudo-terminal and plays a dialogue.  Prints the screen's bytes, then "status N" as the last line.

    terminal.py STEP... -- COMMAND...

Steps, in order: "=REGEX" waits until the output behind the last match has it; "<TEXT" types TEXT (\\n, \\x03 as in Python);
"!COMMAND" runs a shell command that must succeed, with the pid of COMMAND in $PID; "@ROWSxCOLUMNS" makes the window so large.
Gives up at a step after $E2E_DEADLINE seconds (120), and says which.
"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

DEADLINE = float(os.environ.get("E2E_DEADLINE", "120"))


class Screen:
    def __init__(self, fd):
        self.fd, self.seen, self.matched = fd, b"", 0

    def read(self, seconds):
        """False at the end of the file."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            more = os.read(self.fd, 65536)
        except OSError:  # EIO: everybody has closed the terminal
            return False
        self.seen += more
        return bool(more)

    def expect(self, regex):
        end = time.monotonic() + DEADLINE
        while not (found := re.compile(regex.encode(), re.S).search(self.seen, self.matched)):
            if time.monotonic() > end or not self.read(0.1):
                return False
        self.matched = found.end()
        return True


def main():
    split = sys.argv.index("--")
    steps, command = sys.argv[1:split], sys.argv[split + 1 :]
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.execvp(command[0], command)
    screen, missed = Screen(fd), None
    for step in steps:
        if step[0] == "<":
            os.write(fd, step[1:].encode().decode("unicode_escape").encode())
        elif step[0] == "@":
            rows, columns = map(int, step[1:].split("x"))
            fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        elif step[0] == "!":
            if subprocess.run(step[1:], shell=True, env={**os.environ, "PID": str(pid)}, timeout=DEADLINE).returncode:
                missed = step
                break
        elif not screen.expect(step[1:]):
            missed = step
            break
    end = time.monotonic() + (DEADLINE if missed is None else 0)
    while screen.read(0.1) and time.monotonic() < end:
        pass
    done, status = os.waitpid(pid, os.WNOHANG if time.monotonic() >= end else 0)
    if not done:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    sys.stdout.buffer.write(screen.seen + b"\n")
    if missed:
        print(f"not seen: {missed}")
    print("status", os.waitstatus_to_exitcode(status) if done else "hung")


main()
