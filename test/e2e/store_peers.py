"""Clients of every kind at one store, over sockets: store_peers.py HOST:PORT SEED STEPS [--short] [--clients=N].

Some keep to the protocol, and it is known what each of their answers is: byte for byte, however their requests are cut,
however late they read, whatever others do.  Some ask for much, and
whatever they get is whole.  Others say anything: lengths that are not kept, lists, waits, the old
dialect; they read nothing, close in the middle of an answer, or reset.  One more asks for a few values again and again.
--short: the store has so little memory that it closes clients for it; what they were told until then is right all the same.
Ends with 0 if all was as it should be.
"""
import random
import selectors
import socket
import struct
import sys

HELLO = b"\x00\xce\xf7\x85\x3c"
OPS = {"SET": (1, 0), "COMPARE_SET": (2, 1), "GET": (3, 2), "ADD": (4, 3), "CHECK": (5, 4), "WAIT": (6, 5), "GETNUMKEYS": (7, 6),
       "DELETE": (8, 8), "APPEND": (9, -1), "MULTI_GET": (10, -1), "MULTI_SET": (11, -1), "CANCEL_WAIT": (12, -1),
       "PING": (13, -1), "PUSH": (14, -1), "POP": (15, -1), "LEN": (16, -1), "LIST": (17, -1), "BARRIER": (18, -1)}
KEPT = 64 << 10  # values above are not copied for an answer
SIZES = (0, 1, 7, 500, KEPT - 1, KEPT, KEPT + 1, 130000, 400000)
host, port = sys.argv[1].rsplit(":", 1)
rng = random.Random(int(sys.argv[2]))
steps, short = int(sys.argv[3]), "--short" in sys.argv
many = int(next((a[10:] for a in sys.argv if a.startswith("--clients=")), 14))
filler = bytes(rng.getrandbits(8) for _ in range(1 << 16)) * 9
count = {"answers": 0, "bytes": 0, "closed": 0, "opened": 0}


def u64(n):
    return struct.pack("<Q", n & (1 << 64) - 1)


def text(b):
    return u64(len(b)) + b


def op(name, *parts, old=False):
    return bytes([OPS[name][old]]) + b"".join(parts)


def value():
    at = rng.randrange(1 << 16)
    return filler[at : at + rng.choice(SIZES)]


class Client:
    """A connection: `out` is still to be sent, `deaf` turns long it does not read."""

    def __init__(self, hello=HELLO):
        self.s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if rng.random() < 0.5:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.s.connect((host, int(port)))
        self.s.setblocking(False)
        self.out, self.deaf, self.gone = bytearray(hello), 0, False
        count["opened"] += 1

    def push(self):
        """A cut of what is to be sent."""
        most = rng.choice((1, 3, 9, 100, 5000, 1 << 20))
        try:
            del self.out[: self.s.send(memoryview(self.out)[:most].tobytes())]
        except BlockingIOError:
            pass
        except ConnectionError:
            self.gone = True

    def pull(self):
        """Some of what has come."""
        if self.deaf:
            self.deaf -= 1
            return
        try:
            got = self.s.recv(rng.choice((1, 10, 4096, 1 << 20)))
        except BlockingIOError:
            return
        except ConnectionError:
            got = b""
        self.gone |= not got
        count["bytes"] += len(got)
        self.take(got)

    def take(self, got):
        pass

    def close(self):
        how = rng.randrange(3)
        if how == 1:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        try:
            if how == 2:
                self.s.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        self.s.close()


class Orderly(Client):
    """Its keys are its own, so that all that it is told is known."""

    serial = 0

    def __init__(self):
        super().__init__()
        Orderly.serial += 1
        self.prefix = b"/o%d/" % Orderly.serial
        self.keys = [self.prefix + b"%d" % i for i in range(4)]
        self.number, self.line = self.prefix + b"n", self.prefix + b"q"
        self.map, self.queue, self.sum, self.due, self.at = {}, [], 0, bytearray(), 0

    def say(self, name, *parts, due=b""):
        self.out += op(name, *parts)
        self.due += due

    def ask(self):
        if len(self.out) + len(self.due) > 4 << 20:
            return
        name, key, map = rng.choice(list(OPS)), rng.choice(self.keys), self.map
        has = map.get(key, b"")
        if name == "SET":
            map[key] = value()
            self.say(name, text(key), text(map[key]))
        elif name == "COMPARE_SET":
            want, new = (has if rng.random() < 0.6 else value()), value()
            same = want == has
            self.say(name, text(key), text(want), text(new), due=text(new if same else has if key in map else want))
            if same:
                map[key] = new
        elif name == "GET":
            self.say(name, text(key), due=text(has))
        elif name == "ADD":
            more = rng.choice((1, -1, 1000, 1 << 62, -1 << 63))
            self.sum = (self.sum + more + (1 << 63)) % (1 << 64) - (1 << 63)
            self.say(name, text(self.number), u64(more), due=u64(self.sum))
        elif name in ("CHECK", "WAIT"):
            keys = rng.choices(self.keys + [self.prefix + b"never"], k=rng.randrange(4))
            ready = all(k in map for k in keys)
            self.say(name, u64(len(keys)), *map_text(keys), due=(b"\0" if ready else b"\1" if name == "CHECK" else b""))
        elif name == "DELETE":
            self.say(name, text(key), due=u64(key in map))
            map.pop(key, None)
        elif name == "APPEND" and len(has) < 600000:
            map[key] = has + value()
            self.say(name, text(key), text(map[key][len(has) :]))
        elif name == "MULTI_GET":
            keys = rng.choices(self.keys, k=rng.choice((0, 1, 3, 3, 6, 40)))
            if sum(len(map.get(k, b"")) for k in keys) < 3 << 20:
                self.say(name, u64(len(keys)), *map_text(keys), due=b"".join(text(map.get(k, b"")) for k in keys))
        elif name == "MULTI_SET":
            pairs = [(k, value()) for k in rng.choices(self.keys, k=rng.randrange(4))]
            self.say(name, u64(len(pairs)), *(text(x) for pair in pairs for x in pair))
            map.update(pairs)
        elif name == "CANCEL_WAIT":
            self.say(name, due=b"\1")
        elif name == "PING":
            word = struct.pack("<I", rng.getrandbits(32))
            self.say(name, word, due=word)
        elif name == "PUSH" and len(self.queue) < 6:
            self.queue.append(value())
            self.say(name, text(self.line), text(self.queue[-1]))
        elif name == "POP":
            self.say(name, text(self.line), due=u64(len(self.queue)) + (text(self.queue[0]) if self.queue else b""))
            del self.queue[:1]
        elif name == "LEN":
            self.say(name, text(self.line), due=u64(len(self.queue)))

    def take(self, got):
        want = self.due[self.at : self.at + len(got)]
        if got != want:
            i = next((i for i in range(len(got)) if got[i : i + 1] != want[i : i + 1]))
            what = (self.prefix, self.at + i, got[i : i + 20], want[i : i + 20])
            raise SystemExit("# client %s: byte %d of its answers is %r, not %r" % what)
        self.at += len(got)
        if self.at > 1 << 20:
            del self.due[: self.at]
            self.at = 0
        count["answers"] += bool(got)

    def has_all(self):
        return not self.out and self.at == len(self.due)

    def leftovers(self):
        """Requests that take away what it has left."""
        return [op("DELETE", text(k)) for k in self.keys + [self.number]] + [op("POP", text(self.line))] * 7


def map_text(keys):
    return [text(k) for k in keys]


class Hungry(Client):
    """Asks for more than sockets hold, of a value that others of its kind replace: whichever it gets, it is whole."""

    def __init__(self):
        super().__init__()
        self.due, self.left, self.like, self.head = 0, 0, b"", b""  # strings; bytes of the one at hand, which are all alike

    def ask(self):
        if len(self.out) > 2 << 20 or self.due > 60:
            return
        if rng.random() < 0.6:
            new = bytes([rng.randrange(256)]) * rng.choice((9, KEPT, KEPT + 1, 300000, 300000))
            self.out += op("SET", text(b"/shared"), text(new))
        else:
            n = rng.choice((0, 1, 3, 30))
            self.out += op("MULTI_GET", u64(n), *[text(b"/shared")] * n)
            self.due += n

    def take(self, got):
        while got:
            if self.left:
                part = got[: self.left]
                self.like = self.like or part[:1]
                if part.strip(self.like):
                    raise SystemExit("# a value of which parts are another")
                self.left -= len(part)
                got = got[len(part) :]
            else:
                lacks = 8 - len(self.head)
                self.head, got = self.head + got[:lacks], got[lacks:]
                if len(self.head) < 8:
                    return
                self.left, self.like, self.head = struct.unpack("<Q", self.head)[0], b"", b""
            self.due -= not self.left and not self.head
            if self.due < 0 or self.left > 300000:
                raise SystemExit("# an answer that nobody asked for, %d bytes, %d due" % (self.left, self.due))

    def has_all(self):
        return not self.out and not self.due


class Chaotic(Client):
    """Says anything, about keys that all such share."""

    def __init__(self):
        self.old = rng.random() < 0.2
        hello = b"" if self.old else rng.choice((HELLO, HELLO, HELLO, HELLO, HELLO[:3], b"\x16\x03\x01", b"ELR1", b"GET / HTTP"))
        super().__init__(hello)
        self.deaf = rng.choice((0, 0, 30, 100000))

    def ask(self):
        if len(self.out) > 2 << 20:
            return
        name = rng.choice([n for n in OPS if OPS[n][self.old] >= 0])
        keys = [b"/x%d" % rng.randrange(5) for _ in range(rng.choice((0, 1, 2, 9, 700)))]
        key, parts = text(b"/x%d" % rng.randrange(5)), [b""]
        if name in ("SET", "APPEND", "PUSH"):
            parts = [key, text(value() if name == "SET" else b"7" * rng.randrange(99))]
        elif name == "COMPARE_SET":
            parts = [key, text(rng.choice((b"", b"7"))), text(value())]
        elif name in ("GET", "DELETE", "POP", "LEN"):
            parts = [key]
        elif name in ("ADD", "BARRIER"):
            parts = [key if name == "ADD" else text(b"/barrier"), u64(rng.choice((0, 1, 3, -1, 1 << 62, -1 << 63)))]
        elif name in ("CHECK", "WAIT", "MULTI_GET"):
            parts = [u64(len(keys)), *map_text(keys)]
        elif name == "MULTI_SET":
            parts = [u64(len(keys[:9])), *(x for k in keys[:9] for x in (text(k), text(b"1")))]
        elif name == "PING":
            parts = [b"ping"]
        said = op(name, *parts, old=self.old) * rng.choice((1, 1, 1, 1, 30))
        if rng.random() < 0.02:  # a length that is not kept, or cannot be
            said = said[:1] + u64(rng.choice((0, 8192, 8193, 8 << 20, (8 << 20) + 1, 131073, 1 << 32, (1 << 64) - 1))) + said[9:]
        self.out += said


class Honest:
    """Its values are there when it asks, whoever else asks for what."""

    map = {b"/honest/%d" % i: filler[i : i + n] for i, n in enumerate((3, 500, KEPT + 5, 300000))}

    def __init__(self):
        self.s = socket.create_connection((host, int(port)), timeout=100)
        self.s.sendall(HELLO)

    def put(self):
        self.s.sendall(b"".join(op("SET", text(k), text(v)) for k, v in self.map.items()))

    def some(self, n):
        got = self.s.recv(n)
        if not got:
            raise ConnectionError("the honest client is closed")
        return got

    def get(self, n):
        got = b""
        while len(got) < n:
            got += self.some(n - len(got))
        return got

    def string(self):
        return self.get(struct.unpack("<Q", self.get(8))[0])

    def check(self):
        for k, v in self.map.items():
            self.s.sendall(op("GET", text(k)))
            if self.string() != v:
                raise SystemExit("# the value of %s is another" % k)
        self.s.sendall(op("LIST") + op("PING", b"pong"))
        keys = [self.string() for _ in range(struct.unpack("<Q", self.get(8))[0])]
        if len(set(keys)) != len(keys) or not set(self.map) <= set(keys) or self.get(4) != b"pong":
            raise SystemExit("# a list of keys that is none: %d of them" % len(keys))

    pending = []  # requests that take keys away

    def sweep(self):
        """True if all are answered; what is answered is of no interest."""
        for said in self.pending[:]:
            try:
                self.s.sendall(said + op("PING", b"gnip"))
                got = b""
                while not got.endswith(b"gnip"):
                    got = got[-4:] + self.some(1 << 20)
                self.pending.remove(said)
            except ConnectionError:
                if not short:
                    raise
                self.s.close()
                self.__init__()
        return not self.pending


def main():
    honest, janitor = Honest(), Honest()
    honest.put()
    honest.check()
    clients = [rng.choice((Orderly, Hungry, Chaotic))() for _ in range(many)]
    keys = [text(b"/x%d" % k) for k in range(5)]
    shared = [op("DELETE", k) for k in keys + [text(b"/shared")]] + [op("POP", k) * 20 for k in keys]
    for step in range(steps):
        i = rng.randrange(len(clients))
        c = clients[i]
        what = rng.random()
        leaves = c.gone or what < 0.006
        if leaves:
            pass
        elif what < 0.012:
            c.deaf = rng.choice((10, 100, 1000))
        elif what < 0.35:
            c.ask()
        elif what < 0.65:
            c.push()
            leaves = not c.gone and isinstance(c, Hungry) and rng.random() < 0.03  # while its answer is being sent
        else:
            c.pull()
        if leaves:
            leave(c, janitor)
            clients[i] = rng.choice((Orderly, Hungry, Chaotic))()
        if step % 1000 == 0:
            janitor.pending += shared
            janitor.sweep()
            if not short:
                honest.check()
    settle(clients)
    for c in clients:
        leave(c, janitor)
    if not any(janitor.sweep() for _ in range(100)):
        raise SystemExit("# what is not needed cannot be taken away")
    if short:
        honest = Honest()
    honest.check()
    print("# %s" % ", ".join("%d %s" % (n, what) for what, n in count.items()))


def leave(c, janitor):
    if c.gone and not isinstance(c, Chaotic):
        count["closed"] += 1
        if not short:
            raise SystemExit("# the store closed a client that kept to the protocol")
    c.close()
    if isinstance(c, Orderly):
        janitor.pending += c.leftovers()
        janitor.sweep()


def settle(clients):
    """Whoever keeps to the protocol is told all that is owed."""
    owed = [c for c in clients if not isinstance(c, Chaotic) and not c.gone]
    with selectors.DefaultSelector() as ready:
        for c in owed:
            c.deaf = 0
            ready.register(c.s, selectors.EVENT_READ | selectors.EVENT_WRITE, c)
        while ready.get_map():
            events = ready.select(60)
            if not events:
                raise SystemExit("# an answer does not come")
            for key, what in events:
                c = key.data
                if c.out:
                    c.push()
                if what & selectors.EVENT_READ:
                    c.pull()
                if c.gone and not short:
                    raise SystemExit("# a client was closed, which was owed an answer")
                if c.gone or c.has_all():
                    ready.unregister(c.s)
                elif not c.out:
                    ready.modify(c.s, selectors.EVENT_READ, c)


main()
