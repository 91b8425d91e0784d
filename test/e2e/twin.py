"""The training of twins.sh (test/lib), which twin_faults.py disturbs.

twin.py FOLDER STEPS FAULTS: a worker.  Behind every sixth step it waits until FOLDER/gate.N is there, so that each fault falls
between two gates, however fast the machine is.  At its end it writes a digest of all it has to FOLDER/result.RANK."""
import hashlib
import os
import sys
import time

BETWEEN = 6  # steps from gate to gate


def note(folder, name, text):
    """A whole line at once: nobody reads half of one."""
    with open(f"{folder}/{name}", "a") as f:
        f.write(text + "\n")


def train(folder, steps, faults):
    os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"  # it warns that all parameters are used
    import torch
    import torch.distributed as dist

    import elrun

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    attempt = time.monotonic_ns()  # a later one is a higher number, whoever started it
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(32, 128), torch.nn.BatchNorm1d(128), torch.nn.Dropout(0.2), torch.nn.ReLU(),
                                torch.nn.Linear(128, 128).bfloat16().float(), torch.nn.Linear(128, 1))
    # Buckets that each attempt orders anew behind its first step would order the sums of more than two ranks anew, too.
    ddp = torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    optim = torch.optim.AdamW(ddp.parameters(), lr=1e-2, amsgrad=True)
    rates = torch.optim.lr_scheduler.OneCycleLR(optim, 0.02, total_steps=steps + 1)
    data = torch.utils.data.TensorDataset(torch.randn(4096, 32))
    where = {"epoch": 0, "sample": 0, "losses": []}
    torch.manual_seed(100 + rank)
    ck = elrun.connect()
    ck.declare("model", ddp)
    ck.declare("train", {"optim": optim, "rates": rates, "rng": elrun.Rng(), "where": where})
    done = ck.restore()
    note(folder, f"back.{rank}", f"{attempt} {done}")
    for step in range(0 if done is None else done + 1, steps):
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(where["epoch"]))
        x = data.tensors[0][order[where["sample"] : where["sample"] + 64][rank::world]]
        where["sample"] += 64
        if where["sample"] >= len(data) // 8:
            where["epoch"], where["sample"] = where["epoch"] + 1, 0
        loss = (ddp(x).squeeze(1) - x.sum(1)).square().mean()
        optim.zero_grad()
        loss.backward()
        optim.step()
        rates.step()
        where["losses"] = [*where["losses"][-9:], loss.item()]
        while not ck.snapshot(step, persist=step % 3 == 1):
            time.sleep(0.001)
        if step % BETWEEN == 0:
            ck.wait()
        note(folder, f"step.{rank}", f"{attempt} {step} {os.getpid()}")
        gate = step // BETWEEN
        while step % BETWEEN == BETWEEN - 1 and gate < faults and not os.path.exists(f"{folder}/gate.{gate}"):
            ck.wait()
            if not os.path.exists(f"{folder}/at.{gate}.{rank}.{attempt}"):
                note(folder, f"at.{gate}.{rank}.{attempt}", "")
            time.sleep(0.005)
    digest = hashlib.sha256()
    for value in [*ddp.state_dict().values(), *(t for s in optim.state.values() for t in s.values())]:
        digest.update(torch.as_tensor(value).contiguous().numpy().tobytes())
    digest.update(repr((where, optim.param_groups[0]["lr"], torch.rand(4).tolist())).encode())
    note(folder, f"result.{rank}", digest.hexdigest())
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # PyTorch's threads may abort in an interpreter's shutdown


if __name__ == "__main__":
    train(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
