"""Torch's own rendezvous, as torchrun uses it: N DynamicRendezvousHandlers, a thread and a store client each, and one
store; the number of nodes is exactly N.

    handlers.py RUNS N...

Prints "N.form MS" for each N and run: from before the first thread's start until the last handler knows its rank."""

import os
import sys
import threading
import time
from datetime import timedelta

from torch.distributed import TCPStore
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import DynamicRendezvousHandler, RendezvousTimeout

LIMIT = RendezvousTimeout(join=timedelta(seconds=60))


def formed(run_id, server, count):
    clients = [TCPStore("127.0.0.1", server.port, is_master=False) for _ in range(count)]
    backends = [C10dRendezvousBackend(c, run_id) for c in clients]
    handlers = [
        DynamicRendezvousHandler.from_backend(run_id, c, b, count, count, timeout=LIMIT) for c, b in zip(clients, backends)
    ]
    ranks = []
    threads = [
        threading.Thread(target=lambda h=h: ranks.append((h.next_rendezvous().rank, time.monotonic())), daemon=True)
        for h in handlers
    ]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if sorted(rank for rank, _ in ranks) != list(range(count)):
        sys.exit(f"handlers: {len(ranks)} of {count} have a rank")
    for handler in handlers:
        handler.shutdown()
    return (max(at for _, at in ranks) - begun) * 1000


def main():
    runs, *counts = map(int, sys.argv[1:])
    server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    for run in range(runs):
        for count in counts:
            print(f"{count}.form {formed(f'bench{count}.{run}', server, count):.3f}", flush=True)
    os._exit(0)  # threads of the handlers would be waited for


main()
