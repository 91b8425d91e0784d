"""Strangers, crowds and misers at a store: store_crowd.py SCENE HOST:PORT [ARG]; ends with 0 if all went as it should."""
import glob
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import time

HELLO = b"\x00\xce\xf7\x85\x3c"
u64 = lambda n: struct.pack("<Q", n)
s = lambda b: u64(len(b)) + b
PING = b"\x0d\x01\x02\x03\x04"
WAIT = lambda k: b"\x06" + u64(1) + s(k)
SET = lambda k, v: b"\x01" + s(k) + s(v)
GET = lambda k: b"\x03" + s(k)
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
host, port = sys.argv[2].rsplit(":", 1)


def connect(hello=HELLO):
    c = socket.create_connection((host, int(port)), timeout=60)
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    c.sendall(hello)
    return c


def recv(c, n):
    got = b""
    while len(got) < n:
        more = c.recv(n - len(got))
        if not more:
            raise ConnectionError("closed after %d of %d bytes" % (len(got), n))
        got += more
    return got


def closed(c):
    """The other side has closed, without a word."""
    try:
        return c.recv(1) == b""
    except ConnectionError:
        return True


def alive(c=None):
    c = c or connect()
    c.sendall(PING)
    return recv(c, 4) == PING[1:]


def strangers():
    """Each is closed; somebody who came before is served all the time."""
    friend = connect()
    rng = random.Random(7)
    first = [b for b in range(12, 256) if b not in (0x16, ord("E"), ord("G"), ord("P"), ord("H"), ord("O"), ord("D"))]
    for hello in [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /x HTTP/1.0\r\n\r\n", b"HEAD / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"ELR1", b"SSH-2.0-x\r\n", b"\x80\x9e\x01\x03\x01", b"\x03\x00\x00\x13\x0e\xe0\x00\x00", b"\x00\xce\xf7\x85\x3d" + b"\xff" * 8,
    ] + [bytes([rng.choice(first)]) + rng.randbytes(rng.randrange(200)) for _ in range(200)]:
        c = connect(hello)
        if hello[0] == 3:  # begins like a legacy ADD: judged by its length
            c.sendall(b"\xff" * 16)
        assert closed(c), hello
        assert alive(friend)
    # A scanner connects and leaves; half-open ones say half a hello and stay.
    for _ in range(300):
        connect(b"").close()
    halves = [connect(HELLO[:n % 5]) for n in range(300)]
    assert alive(friend) and alive()
    for c in halves:  # the rest may come later: the magic is read across any cut
        c.sendall(HELLO[halves.index(c) % 5:])
        assert alive(c)


def torch21():
    """The opcodes that only torch 2.1 has, and its DELETE_KEY behind ordinary traffic."""
    for first, reply in (b"\x09", 0), (b"\x0a", 0), (b"\x0b", 0), (b"\x06\x07", 8):
        c = connect(first)
        recv(c, reply)
        assert closed(c), first


def junk():
    """Random requests behind a good hello: nothing worse than a closed connection."""
    friend, rng = connect(), random.Random(9)
    for i in range(400):
        c = connect(HELLO if i % 2 else b"\x06")
        try:
            for _ in range(rng.randrange(4)):
                op = bytes([rng.randrange(1, 19)])
                c.sendall(op + rng.choice([u64(rng.randrange(4)), u64(2**rng.randrange(64)), rng.randbytes(8)]) + rng.randbytes(rng.randrange(64)))
        except OSError:
            pass
        c.close()
    assert alive(friend) and alive()


def idle(n):
    """Connects n and keeps them until stdin ends."""
    held = [connect() for _ in range(n)]
    assert alive(held[0]) and alive(held[-1])
    print("up", flush=True)
    sys.stdin.read()


def many(pid):
    """18,000 idle connections from two processes; then how much memory each has cost."""
    pages = lambda: int(open("/proc/%s/statm" % pid).read().split()[1]) * 4096
    before = pages()
    each = 9000
    kids = [subprocess.Popen([sys.executable, __file__, "idle", sys.argv[2], str(each)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    up = [k.stdout.readline() for k in kids]
    assert up == [b"up\n"] * 2, up
    assert alive()
    cost = (pages() - before) / (2 * each)
    print("# %.0f bytes of memory for an idle connection" % cost)
    assert cost < 4096
    for k in kids:
        k.stdin.close()
    assert [k.wait() for k in kids] == [0, 0]
    assert alive()


def storm():
    """10,000 wait for one key; while they are released, half of them hang up.  The others get one byte each."""
    n = 10000
    waiters = [connect(HELLO + WAIT(b"/go")) for _ in range(n)]
    friend = connect()
    assert alive(friend)
    assert alive(friend)
    for c in waiters[: n // 4]:
        c.close()
    friend.sendall(SET(b"/go", b""))
    for c in waiters[n // 4: n // 2]:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # with a reset
        c.close()
    for c in waiters[n // 2:]:
        assert recv(c, 1) == b"\0"
        c.sendall(PING)
    for c in waiters[n // 2:]:
        assert recv(c, 4) == PING[1:]  # and no second byte
    assert alive(friend)


def miser(pid):
    """One that asks for half a gigabyte and does not read holds nothing, and holds nobody up; when it reads, it gets it all."""
    peak = lambda: int(next(x for x in open("/proc/%d/status" % pid) if x.startswith("VmHWM")).split()[1])
    friend, c = connect(), connect()
    c.sendall(SET(b"/big", b"x" * (8 << 20)))
    assert alive(c) and alive(friend)
    before = peak()
    for _ in range(64):
        c.sendall(GET(b"/big"))
        assert alive(friend)
    assert peak() - before < 8 << 10, (before, peak())
    for _ in range(64):
        assert recv(c, 8) == u64(8 << 20)
        left = 8 << 20
        while left:
            more = c.recv(min(left, 1 << 20))
            assert more
            left -= len(more)
    assert alive(c) and alive(friend) and alive()


def memory():
    """Values beyond --max-memory: that connection is closed, the others go on with what there is."""
    friend, c = connect(), connect()
    friend.sendall(SET(b"/small", b"kept"))
    assert alive(friend)
    try:
        for i in range(40):
            c.sendall(SET(b"/%d" % i, b"x" * (1 << 20)) + PING)
            recv(c, 4)
        raise AssertionError("40 MiB went into 16")
    except ConnectionError:
        pass
    friend.sendall(GET(b"/small"))
    assert recv(friend, 12) == s(b"kept")
    for i in range(40):
        friend.sendall(b"\x08" + s(b"/%d" % i))
    recv(friend, 8 * 40)
    friend.sendall(SET(b"/0", b"x" * (1 << 20)) + PING)
    assert recv(friend, 4) == PING[1:]


def long(limit):
    """An answer of more bytes than the store may hold is given all the same, and another has what memory there is meanwhile."""
    friend, c = connect(), connect()
    friend.sendall(SET(b"/v", b"x" * 16384) + SET(b"/V", b"x" * (1 << 20)))
    assert alive(friend)
    keys = ([b"/V"] + [b"/v"] * 10) * (2 * limit)
    c.sendall(b"\x0a" + u64(len(keys)) + b"".join(s(k) for k in keys))
    friend.sendall(SET(b"/w", b"y" * (limit << 18)) + PING)
    assert recv(friend, 4) == PING[1:]
    for k in keys:
        assert recv(c, 8) == u64(1 << 20 if k == b"/V" else 16384)
        recv(c, 1 << 20 if k == b"/V" else 16384)
    assert alive(c)


def hoards(limit):
    """Answers that nobody fetches and requests that are never finished take all memory: they go, the others stay."""
    friend = connect()
    friend.sendall(SET(b"/big", b"x" * (8 << 20)))
    assert alive(friend)
    held = []
    for i in range(limit // 8 + 4):
        for request in GET(b"/big") * 3, SET(b"/half%d" % i, b"x" * (8 << 20))[:-1]:
            c = connect()
            held.append(c)
            c.settimeout(5)
            try:
                c.sendall(request)
            except OSError:
                pass
        friend.sendall(SET(b"/k%d" % i, b"x" * 100000) + PING)
        assert recv(friend, 4) == PING[1:]
    friend.sendall(GET(b"/k0"))
    assert recv(friend, 100008) == s(b"x" * 100000)
    assert alive()


def frozen(pid):
    """The server stands still for longer than a hello may take: who has said it meanwhile is served, and who has begun it is closed.
    Who says nothing at all may stay, as the second connection of PyTorch before 2.1 does; of many such only some."""
    sockets = lambda: sum(os.readlink(f).startswith("socket:") for f in glob.glob("/proc/%d/fd/*" % pid) if os.path.islink(f))
    before = sockets()
    late, half, torn, mute = connect(b""), connect(HELLO[:2]), connect(HELLO[:2]), [connect(b"") for _ in range(700)]
    end = time.time() + 60
    while sockets() < before + 3 + len(mute):
        assert time.time() < end
        time.sleep(0.01)
    os.kill(pid, signal.SIGSTOP)
    try:
        late.sendall(HELLO + PING)
        half.sendall(HELLO[2:] + PING)
        time.sleep(11)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert recv(late, 4) == PING[1:] and recv(half, 4) == PING[1:]
    assert closed(torn)
    end = time.time() + 60
    while sockets() > before + 2 + 650:
        assert time.time() < end
        time.sleep(0.01)
    mute[0].sendall(HELLO)
    assert alive(mute[0]) and closed(mute[-1])
    assert alive(late) and alive(half)


def lists():
    """A million keys are waited for and one has a value: lists of keys cost as much as they are long."""
    friend, c = connect(), connect()
    friend.sendall(SET(b"/only", b"x") + PING)
    assert recv(friend, 4) == PING[1:]
    waiters = [connect(HELLO + b"\x06" + u64(1 << 17) + b"".join(s(b"/%d/%d" % (k, i)) for i in range(1 << 17))) for k in range(8)]
    assert alive(friend)
    many = 60000
    c.sendall(b"\x11" * many)
    assert alive(friend)
    one = u64(1) + s(b"/only")
    assert recv(c, many * len(one)) == one * many and len(waiters) == 8


def places(n):
    """More come than --max-clients: the oldest that has said nothing makes room; when all have greeted, the new one goes."""
    silent = [connect(b"") for _ in range(3)]
    time.sleep(0.05)
    good = [connect() for _ in range(n - 3)]
    assert all(alive(c) for c in good)
    for c in silent:
        good.append(connect())
        assert alive(good[-1])
        assert closed(c)
    assert closed(connect(b""))
    assert all(alive(c) for c in good)
    good.pop().close()
    end = time.time() + 60
    while time.time() < end:
        try:
            c = connect()
            if alive(c):
                return
        except OSError:
            pass
    raise AssertionError("no place after one has left")


def descriptors(pid):
    """The server runs out of descriptors, pauses, and goes on when somebody leaves; it does not spin meanwhile."""
    ticks = lambda: sum(int(x) for x in open("/proc/%s/stat" % pid).read().rsplit(") ", 1)[1].split()[11:13])
    limit, taken = resource.prlimit(pid, resource.RLIMIT_NOFILE)[0], lambda: len(os.listdir("/proc/%d/fd" % pid))
    good = []
    while taken() < limit:
        good.append(connect())
        assert alive(good[-1])
    assert len(good) > 20, len(good)
    c = connect(HELLO + PING)
    before = ticks()
    time.sleep(1)
    assert ticks() - before < 30, "it spins"
    assert all(alive(x) for x in good)
    good.pop().close()
    c.settimeout(60)
    assert recv(c, 4) == PING[1:]  # the one that stood in the queue is served now


globals()[sys.argv[1]](*(int(a) for a in sys.argv[3:]))
