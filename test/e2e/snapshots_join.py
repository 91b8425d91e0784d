"""examples/elastic.py, with a line for each step that a rank makes: its number, how many ranks there are, and sums of the parameters
and of the optimizer's state, in FOLDER/log.RANK.

snapshots_join.py FOLDER"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples"))
import elastic

folder, made = sys.argv[1], elastic.make


def make(step, optim, rank, world):
    made(step, optim, rank, world)
    params = [p for group in optim.param_groups for p in group["params"]]
    sums = [sum(float(t.detach().double().sum()) for t in some)
            for some in (params, [optim.state[p]["momentum_buffer"] for p in params])]
    with open(f"{folder}/log.{rank}", "a") as f:
        f.write(f"{step} {world} {sums[0]!r} {sums[1]!r}\n")


elastic.make = make
elastic.main()
