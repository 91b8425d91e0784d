"""The same requests, byte by byte, to elrun's store and to both servers of the installed torch.

store_compare.py HOST:PORT-of-elrun

Each scene is played on a fresh set of connections with keys of its own.  After each step the bytes that came back on
every connection are noted, or that it was closed.  Where a server of torch differs from the other one, or from elrun,
the difference must be in DIFFER with its reason; everything else must be equal.  Prints TAP.
"""
import os
import socket
import struct
import sys

import torch.distributed as dist

HELLO = b"\x00\xce\xf7\x85\x3c"


def u64(x):
    return struct.pack("<Q", x & (2**64 - 1))


def s(x):
    x = x if isinstance(x, bytes) else x.encode()
    return u64(len(x)) + x


def keys(*ks):
    return u64(len(ks)) + b"".join(s(k) for k in ks)


def pairs(*kv):
    return u64(len(kv)) + b"".join(s(k) + s(v) for k, v in kv)


SET = lambda k, v: b"\x01" + s(k) + s(v)
CAS = lambda k, e, d: b"\x02" + s(k) + s(e) + s(d)
GET = lambda k: b"\x03" + s(k)
ADD = lambda k, n: b"\x04" + s(k) + u64(n)
CHECK = lambda *k: b"\x05" + keys(*k)
WAIT = lambda *k: b"\x06" + keys(*k)
NUM = lambda: b"\x07"
DEL = lambda k: b"\x08" + s(k)
APPEND = lambda k, v: b"\x09" + s(k) + s(v)
MGET = lambda *k: b"\x0a" + keys(*k)
MSET = lambda *kv: b"\x0b" + pairs(*kv)
CANCEL = lambda: b"\x0c"
PING = lambda n: b"\x0d" + struct.pack("<I", n)
PUSH = lambda k, v: b"\x0e" + s(k) + s(v)
POP = lambda k: b"\x0f" + s(k)
QLEN = lambda k: b"\x10" + s(k)
LIST = lambda: b"\x11"
BARRIER = lambda k, n: b"\x12" + s(k) + u64(n)

# A scene: steps (connection, bytes).  A step after which the connection waits is marked "w": no echo is asked for.
A, B, C = 0, 1, 2
BIG = 8 << 20


def scenes(p):
    k, l, q, n = p + "/k", p + "/l", p + "/q", p + "/none"
    yield "set and get", [(A, SET(k, "v")), (A, GET(k)), (B, GET(k)), (B, SET(k, "")), (A, GET(k)), (A, SET("", p)), (B, GET("")), (A, DEL(""))]
    yield "any bytes", [(A, SET(p + "//\x00\n", bytes(range(256)))), (B, GET(p + "//\x00\n"))]
    yield "check", [(A, CHECK()), (A, CHECK(n)), (A, SET(k, "")), (B, CHECK(k)), (B, CHECK(k, n)), (B, CHECK(k, k))]
    yield "add", [(A, ADD(k, 5)), (A, ADD(k, -7)), (B, GET(k)), (B, ADD(k, 0)), (A, SET(k, "10")), (A, ADD(k, 1)), (A, GET(k))]
    yield "add to blanks, a plus and garbage", [(A, SET(k, " \t\n12abc")), (A, ADD(k, 1)), (A, SET(l, "+7")), (A, ADD(l, 1)), (A, GET(l))]
    for i, text in enumerate(["text", "", " ", "-", "9223372036854775808", "-9223372036854775809"]):
        yield "add to %r" % text, [(A, SET(k, text)), (A, ADD(k, 1)), (B, GET(k))]
    yield "add wraps", [(A, SET(k, str(2**63 - 1))), (A, ADD(k, 1)), (A, GET(k)), (A, ADD(k, -1)), (B, GET(k))]
    yield "compare_set", [
        (A, CAS(k, "", "a")), (A, CAS(k, "b", "c")), (A, CAS(k, "a", "d")), (B, GET(k)), (A, CAS(k, "", "x")),
        (A, CAS(n, "zz", "v")), (A, CHECK(n)), (A, SET(l, "")), (A, CAS(l, "", "y")), (A, GET(l)), (A, CAS(l, "y", "")), (A, GET(l)),
    ]
    yield "delete", [(A, SET(k, "v")), (B, DEL(k)), (B, DEL(k)), (A, CHECK(k))]
    yield "append", [(A, APPEND(k, "a")), (A, APPEND(k, "")), (A, APPEND(k, "bc")), (B, GET(k))]
    yield "multi_set and multi_get", [(A, MSET((k, "1"), (l, ""), (k, "2"))), (B, MGET(k, l, k)), (B, MGET()), (A, MSET()), (A, CHECK(k, l))]
    yield "wait, there already", [(A, SET(k, "v")), (A, WAIT(k)), (A, WAIT(k, k)), (A, WAIT())]
    for name, req in [
        ("set", SET(k, "")), ("add 0", ADD(k, 0)), ("append", APPEND(k, "")), ("multi_set", MSET((k, ""))),
    ]:
        yield "wait, released by " + name, [("w", A, WAIT(k)), (B, req), (A, CHECK(k))]
    yield "wait, released by compare_set", [("w", A, WAIT(k)), (B, CAS(k, "", "x")), ("w", A, CANCEL())]
    yield "wait, not released by a compare_set that stores nothing", [("w", A, WAIT(k)), (B, CAS(k, "e", "x")), ("w", A, CANCEL())]
    yield "wait for two keys", [("w", A, WAIT(k, l)), (B, SET(k, "")), (B, SET(l, "")), (A, CHECK(k, l))]
    yield "wait for one key twice", [("w", A, WAIT(k, k)), (B, SET(k, "")), (A, CHECK(k))]
    yield "wait, the key comes and goes", [("w", A, WAIT(k, l)), (B, SET(k, "")), (B, DEL(k)), (B, SET(l, "")), (A, CHECK(k, l))]
    yield "two wait for one key", [("w", A, WAIT(k)), ("w", B, WAIT(k)), (C, SET(k, ""))]
    yield "cancel", [("w", A, WAIT(n)), ("w", A, CANCEL()), (A, CANCEL()), (B, SET(n, "")), (A, GET(n))]
    yield "cancel too late", [("w", A, WAIT(k)), (B, SET(k, "")), ("w", A, CANCEL())]
    yield "a client that leaves while it waits", [("w", A, WAIT(k)), ("close", A), (B, SET(k, "v")), (B, GET(k))]
    yield "ping", [(A, PING(0)), (A, PING(2**32 - 1))]
    yield "queue", [
        (A, POP(q)), (A, QLEN(q)), (A, PUSH(q, "x")), (B, PUSH(q, "")), (B, QLEN(q)), (A, CHECK(q)), (A, GET(q)), (A, DEL(q)),
        (A, POP(q)), (A, POP(q)), (A, POP(q)), (A, CHECK(q)),
    ]
    yield "queue, a wait is released by a push", [("w", A, WAIT(q)), (B, PUSH(q, "x")), (A, POP(q))]
    yield "queue, one push releases one", [("w", A, WAIT(q)), ("w", B, WAIT(q)), (C, PUSH(q, "x")), (C, PUSH(q, "x"))]
    yield "queue and key of one name", [(A, SET(q, "v")), (A, PUSH(q, "x")), (A, GET(q)), (A, POP(q)), (A, GET(q))]
    yield "barrier of one", [(A, BARRIER(k, 1)), (A, GET(k)), (A, BARRIER(k, 1)), (A, GET(k))]
    yield "barrier of two", [("w", A, BARRIER(k, 2)), (B, BARRIER(k, 2)), (C, BARRIER(k, 2)), (C, GET(k))]
    yield "barrier of none", [(A, BARRIER(k, 0)), (A, BARRIER(l, -1))]
    yield "barrier, released by set", [("w", A, BARRIER(k, 9)), (B, SET(k, "x"))]
    yield "barrier, cancelled", [("w", A, BARRIER(k, 2)), ("w", A, CANCEL()), (B, BARRIER(k, 2))]
    yield "a wait for the key of a barrier", [("w", C, WAIT(k)), ("w", A, BARRIER(k, 2)), (B, BARRIER(k, 2))]
    yield "barrier on text", [(B, SET(k, "x")), (A, BARRIER(k, 2)), (B, GET(k))]
    yield "get of a key that is not there", [(A, GET(n)), (A, PING(1))]
    yield "multi_get with a key that is not there", [(A, SET(k, "v")), (A, MGET(k, n))]
    yield "unknown opcode 19", [(A, b"\x13"), (B, PING(1))]
    yield "unknown opcode 255", [(A, b"\xff"), (B, PING(1))]
    yield "validate again", [(A, HELLO), (B, PING(1))]
    yield "many requests in one piece", [(A, SET(k, "1") + GET(k) + ADD(k, 1) + SET(l, "2") + MGET(k, l) + NUM()[:0] + DEL(k) + CHECK(k))]
    yield "key of 8192 bytes", [(A, SET(p + "x" * (8192 - len(p)), "v")), (A, GET(p + "x" * (8192 - len(p))))]
    yield "key of 8193 bytes", [(A, SET(p + "x" * (8193 - len(p)), "v")), (B, PING(1))]
    yield "value of 8 MiB", [(A, SET(k, b"x" * BIG)), (A, GET(k)), (A, DEL(k))]
    yield "value of 8 MiB and 1", [(A, SET(k, b"x" * (BIG + 1))), (B, PING(1))]
    yield "131072 keys", [(A, SET(k, "")), (A, CHECK(*[k] * 131072))]
    yield "131073 keys", [(A, SET(k, "")), (A, CHECK(*[k] * 131073)), (B, PING(1))]
    yield "a key length of 2^63", [(A, b"\x03" + u64(2**63)), (B, PING(1))]


LIBUV, LEGACY = "libuv", "legacy"
# Which server may differ from elrun, and why: (scene, server) -> reason.
DIFFER = {
    ("wait, released by compare_set", LEGACY): "its COMPARE_SET never wakes",
    ("wait, not released by a compare_set that stores nothing", LIBUV): "its COMPARE_SET wakes for a key that is not there",
    ("get of a key that is not there", LEGACY): "it closes",
    ("multi_get with a key that is not there", LEGACY): "it closes",
    ("key of 8193 bytes", LEGACY): "it has no limits",
    ("value of 8 MiB and 1", LEGACY): "it has no limits",
    ("131073 keys", LEGACY): "it has no limits",
    ("queue", LEGACY): "it has no queues",
    ("queue, a wait is released by a push", LEGACY): "it has no queues",
    ("queue, one push releases one", LEGACY): "it has no queues",
    ("queue and key of one name", LEGACY): "it has no queues",
}


TIMEOUT = 60  # nothing is expected to take that long
CLOCK = 3  # a connection that only carries echoes: two of them, and what was sent before has been worked on


class Server:
    def __init__(self, name, host, port):
        self.name, self.host, self.port = name, host, port

    def connect(self):
        c = socket.create_connection((self.host, self.port), timeout=TIMEOUT)
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        c.sendall(HELLO)
        return c

    def play(self, steps):
        """What came back: for each step the bytes by connection."""
        self.conns = [self.connect() for _ in range(4)]
        self.closed, waiting, log = set(), set(), []
        for step in steps:
            if step[0] == "close":
                self.conns[step[1]].close()
                self.closed.add(step[1])
                continue
            i, data = step[-2:]
            waiting.discard(i)
            if step[0] == "w":
                waiting.add(i)
            if i in self.closed:
                log.append("gone")
                continue
            try:
                self.conns[i].sendall(data)
            except OSError:
                pass
            # An echo behind the request tells where its answer ends; a wait must stay the last.
            got = {} if i in waiting else {i: self.echo(i)}
            if i in waiting:
                self.echo(CLOCK)
                self.echo(CLOCK)
            log.append([got[j] if j in got else self.there(j) for j in (A, B, C)])
        for c in self.conns:
            c.close()
        return log

    def there(self, j):
        """What has come by now."""
        got = b""
        if j in self.closed:
            return "gone"
        self.conns[j].setblocking(False)
        try:
            while True:
                more = self.conns[j].recv(1 << 20)
                if not more:
                    break
                got += more
        except BlockingIOError:
            self.conns[j].settimeout(TIMEOUT)
            return got
        except OSError:
            pass
        self.closed.add(j)
        return ("closed", got)

    def echo(self, j):
        """What has come before the echo."""
        got, nonce = b"", struct.pack("<I", 0x5AFE0000 | os.getpid() & 0xFFFF)
        try:
            self.conns[j].sendall(PING(0)[:1] + nonce)
            while not got.endswith(nonce):
                more = self.conns[j].recv(1 << 20)
                if not more:
                    raise ConnectionError
                got += more
            return got[:-4]
        except ConnectionError:
            self.closed.add(j)
            return ("closed", got)


def short(x):
    x = repr(x)
    return x if len(x) < 700 else x[:700] + "..."


def main():
    host, port = sys.argv[1].rsplit(":", 1)
    keep = [dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, use_libuv=u) for u in (True, False)]
    ours = Server("elrun", host, int(port))
    theirs = [Server(LIBUV, "127.0.0.1", keep[0].port), Server(LEGACY, "127.0.0.1", keep[1].port)]
    n = bad = equal = 0
    names = [name for name, _ in scenes("x")]
    for i, name in enumerate(names):
        steps = [steps for _, steps in scenes("/s%d" % i)][i]
        want = ours.play(steps)
        for server in theirs:
            n += 1
            got = server.play(steps)
            why = DIFFER.get((name, server.name))
            same = got == want
            equal += same
            if same and why:
                bad += 1
                print("not ok %d - %s: torch's %s server answers as elrun's: take the exception away" % (n, name, server.name))
            elif same or why:
                print("ok %d - %s: %s" % (n, name, "the same from torch's %s server" % server.name if same else
                      "torch's %s server differs: %s" % (server.name, why)))
            else:
                bad += 1
                print("not ok %d - %s: torch's %s server" % (n, name, server.name))
                print("#  torch: " + short(got))
                print("#  elrun: " + short(want))
    print("# %d scenes equal byte by byte, of %d" % (equal, n))
    print("1..%d" % n)
    sys.stdout.flush()
    os._exit(bad > 0)


main()
