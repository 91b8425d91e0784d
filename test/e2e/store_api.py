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
UNBOUNDED = not hasattr(dist.TCPStore, "append")  # before torch 2.1 its own server took values of any length


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


class Lacking(BaseException):
    """A method that this version of torch does not have."""


class Store:
    """A store whose methods say by Lacking that this version has none of that name."""

    def __init__(self, store):
        self.store = store

    def __getattr__(self, name):
        try:
            found = getattr(self.store, name)
        except AttributeError:
            assert name in NEWER, name
            raise Lacking(name) from None
        return (lambda *a, **k: Store(found(*a, **k))) if name == "clone" else found


# What torch 1.13 lacks; a name that is wrong must not pass for it.
NEWER = {"append", "check", "multi_get", "multi_set", "queue_push", "queue_pop", "queue_len", "barrier", "list_keys", "clone",
         "has_extended_api", "num_keys", "underlying_store", "timeout"}


def script(open_store, wrap_bare):
    """One pass over the methods; yields (name, a call that returns the result)."""
    wrap = lambda store: Store(wrap_bare(store))
    s, other = wrap(open_store()), wrap(open_store())
    # What has no answer may still be under way when another connection asks: an answered request behind it tells.
    done = lambda *results: (*results, s.add("done", 0))
    yield "set, get", lambda: (done(s.set("k", "v")), other.get("k"), done(s.set("k", "")), other.get("k"))
    yield "set bytes", lambda: (done(s.set("b", b"\x00\xff\n")), other.get("b"))
    yield "get waits", lambda: (later(other, lambda o: o.set("late", "x")), s.get("late"))[1]
    yield "add", lambda: (s.add("n", 5), other.add("n", -2), s.add("n", 0), s.get("n"))
    yield "add to text", lambda: outcome(lambda: wrap(open_store()).add("b", 1))
    yield "compare_set", lambda: (
        s.compare_set("c", "", "a"), s.compare_set("c", "x", "b"), s.compare_set("c", "a", "b"), s.compare_set("none", "x", "y"),
        s.check(["none"]),
    )
    yield "compare_set alone", lambda: (
        s.compare_set("c1", "", "a"), s.compare_set("c1", "x", "b"), s.compare_set("c1", "a", "b"), other.get("c1"),
    )
    yield "check", lambda: (s.check(["k"]), s.check(["k", "no"]), s.check([]))
    yield "delete_key", lambda: (s.delete_key("c"), s.delete_key("c"))
    yield "wait", lambda: (s.wait(["k", "b"]), outcome(lambda: s.wait(["no"], MS(50))), s.get("k"))
    yield "wait, released", lambda: (later(other, lambda o: o.set("r", "")), s.wait(["r"], MS(20000)))[1]
    yield "get of nothing", lambda: outcome(lambda: (s.set_timeout(MS(50)), s.get("no"))) + str(s.timeout)
    yield "usable after a time-out", lambda: (s.set_timeout(MS(20000)), s.get("k"), s.add("n", 1))  # 1.13 heeds it from the next get on
    yield "append", lambda: (s.append("ap", "a"), done(s.append("ap", "b")), other.get("ap"))
    yield "multi_set, multi_get", lambda: (done(s.multi_set(["m1", "m2"], ["1", "2"])), other.multi_get(["m1", "m2", "m1"]))
    yield "multi_set of unequal lists", lambda: outcome(lambda: s.multi_set(["a"], ["1", "2"]))
    yield "multi_get of nothing", lambda: outcome(lambda: (s.set_timeout(MS(50)), s.multi_get(["m1", "no"])))
    s.set_timeout(MS(20000))
    yield "queue", lambda: (
        s.queue_push("q", "1"), done(s.queue_push("q", "2")), other.queue_len("q"), other.queue_pop("q"), s.queue_pop("q", block=False),
        outcome(lambda: s.queue_pop("q", block=False)), s.check(["q"]), s.queue_len("q"),
    )
    yield "queue_pop waits", lambda: (s.queue_pop, later(other, lambda o: o.queue_push("qq", "x")), s.queue_pop("qq"))[2]
    yield "barrier", lambda: (threading.Thread(target=other.barrier, args=("bar", 2)).start(), s.barrier("bar", 2))[1]
    yield "barrier that is not met", lambda: outcome(lambda: s.barrier("bar2", 2, MS(50)))
    yield "list_keys", lambda: sorted(s.list_keys())
    yield "num_keys", lambda: s.num_keys()
    yield "clone", lambda: (lambda c: (c.get("m1"), c.set("cl", "x"), c.add("done", 0), s.get("cl")))(s.clone())
    yield "has_extended_api", lambda: s.has_extended_api()
    yield "large value", lambda: (done(s.set("big", b"x" * (8 << 20))), len(other.get("big")), s.delete_key("big"))
    yield "too large a value", lambda: UNBOUNDED or outcome(lambda: (lambda t: (t.set("big", b"x" * ((8 << 20) + 1)), t.add("n", 0)))(wrap(open_store())))
    yield "the others go on", lambda: s.add("n", 0)
    yield "many keys", lambda: (s.multi_set(["k%d" % i for i in range(5000)], ["v"] * 5000), len(other.multi_get(["k%d" % i for i in range(5000)])))


def check(name, same, got=None, want=None):
    global count, bad
    count += 1
    bad += not same
    print("%s %d - %s" % ("ok" if same else "not ok", count, name))
    if not same:
        print("#  elrun: %r\n#  torch: %r" % (got, want))


def tried(call):
    try:
        return call()
    except Lacking as e:
        return "this version has no %s" % e


def end():
    print("1..%d" % count)
    sys.stdout.flush()
    os._exit(bad > 0)


def methods(host, port):
    keep = []

    def to_torch():
        if not keep:
            keep.append(dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False))
        return dist.TCPStore("127.0.0.1", keep[0].port, 1, is_master=False, timeout=MS(20000))

    def to_elrun():
        return dist.TCPStore(host, port, 1, is_master=False, timeout=MS(20000))

    for kind, wrap in [
        ("TCPStore", lambda s: s),
        ("PrefixStore", lambda s: dist.PrefixStore("p", s)),
        ("PrefixStore in PrefixStore", lambda s: dist.PrefixStore("outer", dist.PrefixStore("in/ner", s))),
    ]:
        for (name, ours), (_, theirs) in zip(script(to_elrun, wrap), script(to_torch, wrap)):
            got, want = tried(ours), tried(theirs)
            check("%s: %s" % (kind, name), got == want, got, want)
    s = to_elrun()
    check("host and port", (s.host, s.port) == (host, port), (s.host, s.port))
    check("wait_for_workers counts each client", s.add("none", 0) == 0 and int(keep[0].add("none", 0)) == 0)
    underlying = dist.PrefixStore("p", s).underlying_store
    check("underlying_store", underlying.get("k") == b"")


if __name__ == "__main__":
    at, number = sys.argv[1].rsplit(":", 1)
    methods(at, int(number))
    end()
