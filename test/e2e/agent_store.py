"""A worker of agent_store.sh: meets its peers at elrun's store, and leaves something behind for the next attempt to find."""
import os
import socket
import sys
import time

import torch
import torch.distributed as dist

scratch, failures = sys.argv[1], int(sys.argv[2])
rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))

# A client of our own beside torch's: what it wrote in an earlier attempt must not be there, and what is left of it must not
# reach this one.
store = dist.TCPStore(*address, is_master=False)
stale = store.check(["left-over"])
old = f"{scratch}/address.{attempt - 1}"
reachable = False
if rank == 0 and attempt:
    try:
        host, port = open(old).read().split()
        socket.create_connection((host, int(port)), timeout=5).close()
        reachable = int(port) != address[1]
    except OSError:
        pass

dist.init_process_group("gloo")
total = torch.tensor([1.0 + rank])
dist.all_reduce(total)
group = dist.new_group([0, 1])
objects = [None] * dist.get_world_size()
dist.all_gather_object(objects, {"rank": rank, "pid": os.getpid()})
dist.monitored_barrier()

with open(f"{scratch}/seen.{attempt}.{rank}", "w") as f:
    print(f"sum {total.item()} stale {stale} old {reachable} objects {[o['rank'] for o in objects]}", file=f)
with open(f"{scratch}/address.{attempt}", "w") as f:
    print(*address, file=f)
dist.barrier()
store.set("left-over", "of an earlier attempt")
if attempt < failures and rank == 1:
    os._exit(5)
if attempt < failures:
    time.sleep(600)
dist.destroy_process_group()
os._exit(0)  # gloo's threads may abort an interpreter that ends
