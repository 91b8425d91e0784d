"""A worker that does wrong with snapshots, for snapshots_bad.sh: speaks the protocol by itself (src/snapshot/worker_msg.h), and
writes what it is answered.

snapshots_bad.py FOLDER MODE: each attempt appends lines to FOLDER/log.RANK."""
import array
import fcntl
import json
import mmap
import os
import random
import signal
import socket
import struct
import sys
import time

folder, mode = sys.argv[1:3]
rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
number = int(os.environ["ELRUN_ROUND"].split(".")[0])
HEAD = struct.Struct("<IHHII")
TYPES = {"HELLO": 1, "DECLARE": 2, "GRANT": 3, "SNAP_BEGIN": 4, "SNAP_SLOT": 5, "SNAP_COMMIT": 6, "SNAP_ACK": 7,
         "SNAP_ABORT": 8, "RESTORE_QUERY": 10, "RESTORE_OFFER": 11, "RESTORE_DONE": 12, "REFUSED": 15, "DONE": 16,
         "AT_BOUNDARY": 25, "WELCOME": 26, "PART": 27, "RESERVE": 31, "NOTE": 32}
NAMES = {v: k for k, v in TYPES.items()}
DATA = 1 << 20


def write(what):
    with open(f"{folder}/log.{rank}", "a") as f:
        f.write(what + "\n")


def image(step):
    """One part: a safetensors file of DATA bytes behind a header of 4096."""
    text = json.dumps({"w": {"dtype": "U8", "shape": [DATA], "data_offsets": [0, DATA]}}).encode()
    text += b" " * (4096 - 8 - len(text))
    return struct.pack("<Q", len(text)) + text + bytes([step]) * DATA


class Line:
    """A connection, as any program could have one."""

    def __init__(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(100)
        self.sock.connect(os.environ["ELRUN_SOCK"])
        self.seq = 0

    def frame(self, kind, body):
        self.seq += 1
        text = json.dumps(body).encode()
        return HEAD.pack(0x31434C45, TYPES[kind], 0, self.seq, len(text)) + text

    def say(self, kind, **body):
        self.sock.send(self.frame(kind, body))

    def hear(self):
        """(name, body, descriptors); ("closed", {}, []) at the end of it."""
        try:
            packet, beside, _, _ = self.sock.recvmsg(65536, 1024)
        except ConnectionError:
            packet, beside = b"", []
        if not packet:
            return "closed", {}, []
        fds = array.array("i")
        for _, _, data in beside:
            fds.frombytes(data)
        return NAMES[HEAD.unpack_from(packet)[1]], json.loads(packet[16:]), list(fds)

    def ask(self, kind, **body):
        self.say(kind, **body)
        return self.hear()

    def answer(self, kind, **body):
        """What comes back, in words: the name, and the code of a refusal."""
        name, said, _ = self.ask(kind, **body)
        return f"{name} {said['code']}" if name == "REFUSED" else name

    def hello(self, **other):
        body = {"proto": 2, "rank": rank, "local_rank": rank, "round": number, **other}
        return self.ask("HELLO", **body)

    def declare(self, **other):
        self.say("PART", **{"index": 0, "name": "m", "shard_id": "all", "file": "", "own": False, **other})
        name, said, self.fds = self.ask("DECLARE", layout_id="l", parts=1)
        return f"{name} {said['code']}" if name == "REFUSED" else name

    def begin(self, step, images=f"4096/{4096 + DATA}"):
        while True:
            name, said, _ = self.ask("SNAP_BEGIN", step=step, images=images)
            if name != "SNAP_SLOT" or not said.get("busy"):
                return said.get("slot", 0) if name == "SNAP_SLOT" else f"{name} {said.get('code')}"
            time.sleep(0.01)

    def fill(self, slot, data):
        with mmap.mmap(self.fds[slot], 4096 + DATA) as m:
            m[: len(data)] = data

    def snapshot(self, step):
        slot = self.begin(step)
        self.fill(slot, image(step))
        return self.answer("SNAP_COMMIT", slot=slot, step=step)

    def restore(self):
        """Asks; the offer is read and said so.  What was found in it."""
        name, said, fds = self.ask("RESTORE_QUERY", layout_id="l")
        if name != "RESTORE_OFFER" or said["step"] < 0:
            return f"{name} {said.get('step')} {said.get('text', '')}"
        with mmap.mmap(fds[0], 4096 + DATA, access=mmap.ACCESS_READ) as m:
            byte = m[5000]
        name, more, _ = self.ask("RESTORE_DONE", step=said["step"], ok=True)
        return f"{said['step']} {byte} {name}" if name == "DONE" else f"{name} {more.get('step')} {more.get('text', '')}"


def tries(what, call):
    try:
        write(f"{what}: {call()}")
    except OSError as e:
        write(f"{what}: {type(e).__name__}")


def good_line():
    line = Line()
    name, _, line.page = line.hello()
    assert name == "WELCOME", name
    assert line.declare() == "GRANT"
    return line


def words():
    """One thing that is wrong after the other; each is answered, and the next one begins."""
    write(f"other round: {Line().hello(round=number + 1)[1]['code']}")
    write(f"other rank: {Line().hello(rank=rank + 1)[1]['code']}")
    write(f"other local rank: {Line().hello(local_rank=1)[1]['code']}")
    write(f"other protocol: {Line().hello(proto=1)[1]['code']}")
    line = Line()
    write(f"no HELLO: {line.answer('SNAP_BEGIN', step=1, images='0/0')}, then {line.hear()[0]}")
    line = Line()
    line.hello()
    write(f"two HELLOs: {line.answer('HELLO', proto=2, rank=rank, local_rank=rank, round=number)}")
    write(f"a snapshot of nothing: {line.begin(1)}")
    write(f"a restore of nothing: {line.answer('RESTORE_QUERY', layout_id='l')}")
    write(f"an index that is not the next: {line.declare(index=5)}")
    write(f"a part without a name: {line.declare(name='')}")
    write(f"a file without its layout: {line.declare(file='x')}")
    line.say("RESERVE", bytes=1 << 20)  # before anything is declared; it has no answer
    write(f"at last: {line.declare()}")
    write(f"other parts: {line.declare(shard_id='none')}")
    write(f"the same again: {line.declare()}")
    line.say("RESERVE", bytes=1 << 40)  # more than there is
    line.snapshot(1)
    for what, images in (("a header larger than its part", "4096/100"), ("a header of 7 bytes", "7/4096"), ("no header", "0/4096"),
                         ("a part that was not declared", "4096/8192 4096/8192"), ("one that is not said", ""), ("nothing of a part", "0/0"),
                         ("no numbers", "many/more"), ("an end", "4096/8192 "), ("more than anybody has", "4096/70368744177665"),
                         ("more than there is", f"4096/{1 << 40}")):
        write(f"images, {what}: {line.begin(2, images)}")
    write(f"what was held then: {line.snapshot(1)}")
    write(f"a commit without a begin: {line.answer('SNAP_COMMIT', slot=0, step=2)}")
    slot = line.begin(2)
    write(f"a commit of another step: {line.answer('SNAP_COMMIT', slot=slot, step=3)}")
    slot = line.begin(2)
    line.fill(slot, image(2))
    write(f"a commit: {line.answer('SNAP_COMMIT', slot=slot, step=2)}")
    write(f"the same commit twice: {line.answer('SNAP_COMMIT', slot=slot, step=2)}")
    slot = line.begin(3, f"4096/{4095 + DATA}")
    line.fill(slot, image(3))
    write(f"an image larger than was said: {line.answer('SNAP_COMMIT', slot=slot, step=3)}")
    slot = line.begin(3, f"8192/{4096 + DATA}")
    line.fill(slot, image(3))
    write(f"a header smaller than was said: {line.answer('SNAP_COMMIT', slot=slot, step=3)}")
    slot = line.begin(3)
    line.fill(slot, b"\xff" * 4096)
    write(f"an image that is none: {line.answer('SNAP_COMMIT', slot=slot, step=3)}")
    write(f"a step below 0: {line.begin(-1)}")
    write(f"a step that is a time in nanoseconds: {line.begin(1700000000000000000)}")
    write(f"read before it is offered: {line.answer('RESTORE_DONE', step=2, ok=True)}")
    write(f"an agent's word: {line.answer('SNAP_ACK', slot=0, step=1)}, then {line.hear()[0]}")
    line = good_line()
    line.begin(4)
    line.sock.close()
    line = good_line()
    line.say("SNAP_BEGIN", step=5, images=f"4096/{4096 + DATA}")
    line.sock.close()
    line = good_line()
    write(f"closed in the middle, twice; the last whole one: {line.restore()}")


def memory():
    """What a worker can do to memory that is the agent's."""
    line = good_line()
    line.snapshot(0)
    page, slot = line.page[0], line.fds[0]
    for name, fd, what, call in (
            ("page", page, "grow", lambda fd: os.ftruncate(fd, 1 << 30)), ("page", page, "shrink", lambda fd: os.ftruncate(fd, 0)),
            ("page", page, "write behind its end", lambda fd: os.pwrite(fd, b"x", 3 * 4096)),
            ("page", page, "seal", lambda fd: fcntl.fcntl(fd, 1033, 8)), ("slot", slot, "shrink", lambda fd: os.ftruncate(fd, DATA)),
            ("slot", slot, "seal", lambda fd: fcntl.fcntl(fd, 1033, 8)), ("slot", slot, "grow", lambda fd: os.ftruncate(fd, 1 << 40))):
        tries(f"{name}, {what}", lambda: call(fd))
    with mmap.mmap(page, 4096) as m:
        for fill in (b"\xff", b"\x00", b"\x7f"):
            m[:] = fill * 4096
            write(f"a page of {fill.hex()}: {line.snapshot(1)}")
    line.snapshot(7)
    name, said, fds = line.ask("RESTORE_QUERY", layout_id="l")
    for what, call in (("map for writing", lambda: mmap.mmap(fds[0], 4096)), ("write", lambda: os.write(fds[0], b"x"))):
        tries(f"offer, {what}", call)
    line.answer("RESTORE_DONE", step=7, ok=True)
    slot = line.begin(8)
    line.fill(slot, image(8))
    line.answer("SNAP_COMMIT", slot=slot, step=8)
    os.posix_fadvise(line.fds[slot], 0, 0, os.POSIX_FADV_DONTNEED)
    import ctypes  # a hole in what was committed: pages are gone, and the agent must not fall into it
    punched = ctypes.CDLL(None, use_errno=True).fallocate(line.fds[slot], 3, ctypes.c_long(0), ctypes.c_long(4096 + DATA))
    write(f"a hole in a committed slot: {punched}, then {line.restore()}")
    line.sock.close()
    line = good_line()
    write(f"in slots that are longer than the agent has made them: {line.snapshot(9)} {line.snapshot(10)} {line.restore()}")


def frames():
    """Frames that are none, from one seed; then a good one."""
    rng = random.Random(2026)
    agent = f"/proc/{os.getppid()}/fd"
    line, before = Line(), len(os.listdir(agent))
    line.hello()
    line.sock.settimeout(None)
    bodies = [b"", b"{", b"[]", b"{}", b"[" * 9000, b'{"proto":1e999}', b'{"step":' + b"9" * 400 + b"}", b"\xff\xfe", b"null",
              b'{"rank":-1}', b'{"name":"\\ud800"}', b'{"a":1,"a":2}', b"{" + b" " * 61000 + b"}"]
    for i in range(1500):
        kind, text = rng.choice([*TYPES.values(), 0, 13, 999, 65535]), rng.choice(bodies)
        good = rng.choice([{"index": rng.randrange(-1, 300), "name": rng.choice(["m", "", "\u0000", "é" * 200, 5]),
                            "shard_id": "all", "file": rng.choice(["", "", "x"]), "own": rng.choice([False, False, True, 1]),
                            "images": rng.choice(["0/0", "4096/8192", "4096/8192 0/0", "8/7", "1" * 9000, "x", "0/-1", f"8/{1 << 46}"]),
                            "bytes": rng.choice([0, 1, 4096, 1 << 46, 1 << 47, -1]),
                            "parts": rng.choice([0, 1, 256, 257]), "layout_id": "l", "step": rng.choice([-1, 0, 1, 2**63]),
                            "slot": rng.choice([0, 1, 2, -1]), "ok": rng.choice([True, False, 1])}])
        if rng.random() < 0.6:
            text = json.dumps(good).encode()
        length = len(text) if rng.random() < 0.9 else rng.randrange(1 << 32)
        packet = HEAD.pack(0x31434C45 if rng.random() < 0.95 else rng.randrange(1 << 32), kind,
                           0 if rng.random() < 0.95 else 1, i, length) + text
        if rng.random() < 0.1:
            packet = packet[: rng.randrange(len(packet) + 1)]
        fds = [0] * rng.choice([0, 0, 0, 1, 30])
        try:
            line.sock.sendmsg([packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
            while True:  # all that it says
                if not line.sock.recv(65536, socket.MSG_DONTWAIT):
                    raise ConnectionError
        except BlockingIOError:
            continue
        except OSError:
            line.sock.close()
            line = Line()
            line.hello()
            line.sock.settimeout(None)
    line.sock.close()
    line = good_line()
    write(f"after 1500 frames: {line.snapshot(1)}")
    line.sock.close()
    time.sleep(0.3)
    line = good_line()
    now = len(os.listdir(agent))
    write(f"descriptors of the agent: {'as before' if now <= before + 8 else f'{before}, now {now}'}")


def hang():
    """The second attempt: rank 1 gets its offer and sleeps, or nobody but rank 0 asks, again and again."""
    line = good_line()
    if attempt == 0:
        line.snapshot(3)
        open(f"{folder}/done.{rank}", "w").close()
        while not all(os.path.exists(f"{folder}/done.{r}") for r in (0, 1)):
            time.sleep(0.02)
        if rank == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()
    if attempt == 1 and rank == 1 and mode == "offered":
        line.ask("RESTORE_QUERY", layout_id="l")
        signal.pause()
    if attempt == 1 and mode == "asked" and rank == 1:
        signal.pause()
    if attempt == 1 and mode == "asked":
        line.sock.settimeout(0.1)
        while True:  # a question again and again is no reason to wait longer
            try:
                line.say("RESTORE_QUERY", layout_id="l")
                name, said, _ = line.hear()
                break
            except TimeoutError:
                pass
        write(f"{attempt} {name} {said['step']} {said['text']}")
        sys.exit(9)
    got = line.restore()
    write(f"{attempt} {got}")
    sys.exit(0 if got.startswith("3 3") else 9)


{"words": words, "memory": memory, "frames": frames, "offered": hang, "asked": hang}[mode]()
