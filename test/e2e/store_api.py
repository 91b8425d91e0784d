"""Every documented method of TCPStore and PrefixStore of the installed torch, with torch's client against two servers:
torch's own and elrun's.  What the methods return, or which exception they raise, must be equal.

store_api.py HOST:PORT-of-elrun

Not applicable to a server in another process, and so not here: is_master=True (hosts torch's own server), libuvBackend
(says which server this process hosts), master_listen_fd, multi_tenant.  Prints TAP.
"""
import datetime
import os
import sys
import threading

import torch.distributed as dist

MS = lambda n: datetime.timedelta(milliseconds=n)
count = bad = 0


def outcome(fn):
    try:
        return fn()
    except Exception as e:  # the kind counts; texts contain addresses and times
        return type(e).__name__


def later(store, fn):
    """Runs fn in a thread once somebody else may already wait."""
    t = threading.Timer(0.05, fn, [store])
    t.start()
    return t


def script(open_store, wrap):
    """One pass over the methods; yields (name, result)."""
    s, other = wrap(open_store()), wrap(open_store())
    # What has no answer may still be under way when another connection asks: an answered request behind it tells.
    done = lambda *results: (*results, s.add("done", 0))
    yield "set, get", (done(s.set("k", "v")), other.get("k"), done(s.set("k", "")), other.get("k"))
    yield "set bytes", (done(s.set("b", b"\x00\xff\n")), other.get("b"))
    yield "get waits", (later(other, lambda o: o.set("late", "x")), s.get("late"))[1]
    yield "add", (s.add("n", 5), other.add("n", -2), s.add("n", 0), s.get("n"))
    yield "add to text", outcome(lambda: wrap(open_store()).add("b", 1))
    yield "compare_set", (
        s.compare_set("c", "", "a"), s.compare_set("c", "x", "b"), s.compare_set("c", "a", "b"), s.compare_set("none", "x", "y"),
        s.check(["none"]),
    )
    yield "check", (s.check(["k"]), s.check(["k", "no"]), s.check([]))
    yield "delete_key", (s.delete_key("c"), s.delete_key("c"))
    yield "wait", (s.wait(["k", "b"]), outcome(lambda: s.wait(["no"], MS(50))), s.get("k"))
    yield "wait, released", (later(other, lambda o: o.set("r", "")), s.wait(["r"], MS(20000)))[1]
    yield "get of nothing", outcome(lambda: (s.set_timeout(MS(50)), s.get("no"))) + str(s.timeout)
    yield "usable after a time-out", (s.set_timeout(MS(20000)), s.add("n", 1))
    yield "append", (s.append("ap", "a"), done(s.append("ap", "b")), other.get("ap"))
    yield "multi_set, multi_get", (done(s.multi_set(["m1", "m2"], ["1", "2"])), other.multi_get(["m1", "m2", "m1"]))
    yield "multi_set of unequal lists", outcome(lambda: s.multi_set(["a"], ["1", "2"]))
    yield "multi_get of nothing", outcome(lambda: (s.set_timeout(MS(50)), s.multi_get(["m1", "no"])))
    s.set_timeout(MS(20000))
    yield "queue", (
        s.queue_push("q", "1"), done(s.queue_push("q", "2")), other.queue_len("q"), other.queue_pop("q"), s.queue_pop("q", block=False),
        outcome(lambda: s.queue_pop("q", block=False)), s.check(["q"]), s.queue_len("q"),
    )
    yield "queue_pop waits", (later(other, lambda o: o.queue_push("qq", "x")), s.queue_pop("qq"))[1]
    yield "barrier", (threading.Thread(target=other.barrier, args=("bar", 2)).start(), s.barrier("bar", 2))[1]
    yield "barrier that is not met", outcome(lambda: s.barrier("bar2", 2, MS(50)))
    yield "list_keys", sorted(s.list_keys())
    yield "num_keys", s.num_keys()
    c = s.clone()
    yield "clone", (c.get("m1"), c.set("cl", "x"), c.add("done", 0), s.get("cl"))
    yield "has_extended_api", s.has_extended_api()
    yield "large value", (done(s.set("big", b"x" * (8 << 20))), len(other.get("big")), s.delete_key("big"))
    yield "too large a value", outcome(lambda: (lambda t: (t.set("big", b"x" * ((8 << 20) + 1)), t.add("n", 0)))(wrap(open_store())))
    yield "the others go on", s.add("n", 0)
    yield "many keys", (s.multi_set(["k%d" % i for i in range(5000)], ["v"] * 5000), len(other.multi_get(["k%d" % i for i in range(5000)])))


def check(name, same, got=None, want=None):
    global count, bad
    count += 1
    bad += not same
    print("%s %d - %s" % ("ok" if same else "not ok", count, name))
    if not same:
        print("#  elrun: %r\n#  torch: %r" % (got, want))


def main():
    host, port = sys.argv[1].rsplit(":", 1)
    keep = []

    def to_torch():
        if not keep:
            keep.append(dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False))
        return dist.TCPStore("127.0.0.1", keep[0].port, 1, is_master=False, timeout=MS(20000))

    def to_elrun():
        return dist.TCPStore(host, int(port), 1, is_master=False, timeout=MS(20000))

    for kind, wrap in [
        ("TCPStore", lambda s: s),
        ("PrefixStore", lambda s: dist.PrefixStore("p", s)),
        ("PrefixStore in PrefixStore", lambda s: dist.PrefixStore("outer", dist.PrefixStore("in/ner", s))),
    ]:
        for (name, got), (_, want) in zip(script(to_elrun, wrap), script(to_torch, wrap)):
            check("%s: %s" % (kind, name), got == want, got, want)
    s = to_elrun()
    check("host and port", (s.host, s.port) == (host, int(port)), (s.host, s.port))
    check("wait_for_workers counts each client", s.add("none", 0) == 0 and int(keep[0].add("none", 0)) == 0)
    underlying = dist.PrefixStore("p", s).underlying_store
    check("underlying_store", underlying.get("m1") == b"1")
    print("1..%d" % count)
    sys.stdout.flush()
    os._exit(bad > 0)


main()
