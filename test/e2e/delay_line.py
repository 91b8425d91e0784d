"""delay_line.py A B DELAY-MS READY: frames that come in at interface A leave at B, and back, each DELAY-MS later.
delay_line.py plain A: what leaves A is as it would be on a wire: whole frames, with their checksums.

READY is a file that says that the line is there."""
import collections
import ctypes
import fcntl
import select
import socket
import struct
import sys
import time

SIOCETHTOOL, OFF = 0x8946, (0x17, 0x19, 0x1F, 0x24, 0x2C)  # checksums, scatter, TSO, GSO, GRO
SO_RCVBUFFORCE, ETH_P_ALL, OUTGOING = 33, 3, 4


def plain(name):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for command in OFF:
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            request = struct.pack("16sP16x", name.encode(), ctypes.addressof(value))
            try:
                fcntl.ioctl(s, SIOCETHTOOL, request)
            except OSError:
                pass  # it has no such thing


def end(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
    s.bind((name, 0))
    s.setblocking(False)
    return s


def carry(a, b, delay):
    other, late = {a: b, b: a}, collections.deque()
    while True:
        now = time.monotonic()
        while late and late[0][0] <= now:
            _, to, frame = late.popleft()
            try:
                to.send(frame)
            except OSError:
                pass  # lost, as frames may be
        for s in select.select([a, b], [], [], late[0][0] - now if late else None)[0]:
            frame, source = s.recvfrom(65536)
            if source[2] != OUTGOING:
                late.append((time.monotonic() + delay, other[s], frame))


if sys.argv[1] == "plain":
    plain(sys.argv[2])
else:
    for interface in sys.argv[1:3]:
        plain(interface)
    ends = [end(interface) for interface in sys.argv[1:3]]
    open(sys.argv[4], "w").close()
    carry(*ends, float(sys.argv[3]) / 1000)
