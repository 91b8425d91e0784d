"""console.py COLUMNS COMMAND...: runs the command in a terminal of so many columns; prints what it showed, and the exit status."""
import fcntl
import os
import pty
import struct
import sys
import termios

pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
    os.execvp(sys.argv[2], sys.argv[2:])
shown = b""
while True:
    try:
        some = os.read(terminal, 65536)
    except OSError:  # all of the other side is closed
        break
    if not some:
        break
    shown += some
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.stdout.buffer.write(shown.replace(b"\r\n", b"\n"))
print("status", status)
