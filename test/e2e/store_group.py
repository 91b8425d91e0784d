"""Process groups of real torch over a store in another process: store_group.py HOST:PORT WORLD

Forks WORLD ranks after one import; each records what it computed, the parent compares.  Prints TAP.
"""
import datetime
import os
import sys

import torch
import torch.distributed as dist


def rank_main(rank, world):
    dist.init_process_group("gloo", init_method="env://", timeout=datetime.timedelta(seconds=120))
    said = {"rank": dist.get_rank(), "world": dist.get_world_size()}
    t = torch.tensor([float(rank)])
    dist.all_reduce(t)
    said["all_reduce"] = t.item()
    evens = dist.new_group(list(range(0, world, 2)))
    if rank % 2 == 0:
        t = torch.tensor([1.0])
        dist.all_reduce(t, group=evens)
        said["new_group"] = t.item()
    dist.monitored_barrier()
    objects = [None] * world
    dist.all_gather_object(objects, {"from": rank, "text": "x" * rank})
    said["all_gather_object"] = [o["from"] for o in objects]
    box = [["word", 7]] if rank == 0 else [None]
    dist.broadcast_object_list(box, src=0)
    said["broadcast_object_list"] = box[0]
    mine = [None]
    dist.scatter_object_list(mine, [i * i for i in range(world)] if rank == 0 else None, src=0)
    said["scatter_object_list"] = mine[0]
    got = [None] * world if rank == 0 else None
    dist.gather_object(rank * 10, got, dst=0)
    said["gather_object"] = got
    dist.barrier()
    dist.destroy_process_group()
    return said


def want(rank, world):
    return {
        "rank": rank, "world": world, "all_reduce": float(sum(range(world))),
        **({"new_group": float((world + 1) // 2)} if rank % 2 == 0 else {}),
        "all_gather_object": list(range(world)), "broadcast_object_list": ["word", 7], "scatter_object_list": rank * rank,
        "gather_object": [r * 10 for r in range(world)] if rank == 0 else None,
    }


def groups(host, port, world, check):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR=host, MASTER_PORT=port, WORLD_SIZE=str(world), TORCHELASTIC_USE_AGENT_STORE="True",
                      TORCHELASTIC_RESTART_COUNT="0")
    pids = []
    for rank in range(world):
        pid = os.fork()
        if pid == 0:
            os.environ["RANK"] = str(rank)
            code = 1
            try:
                said = rank_main(rank, world)
                code = said != want(rank, world)
                if code:
                    print("# rank %d: %r" % (rank, said), flush=True)
            finally:
                os._exit(code)
        pids.append(pid)
    for rank, pid in enumerate(pids):
        check("rank %d of %d: groups, collectives, objects" % (rank, world), os.waitpid(pid, 0)[1] == 0)


if __name__ == "__main__":
    import store_api

    at, number = sys.argv[1].rsplit(":", 1)
    groups(at, number, int(sys.argv[2]), store_api.check)
    store_api.end()
