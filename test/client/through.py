"""through.py RESULT SEED [N]: random graphs through elrun.  The first attempt declares N of them, lets things happen to
them, keeps a snapshot and kills itself; the second one gets them back, and compares with what the first wrote down."""
import os
import pickle
import signal
import sys
import warnings

import hypothesis
import torch

import graphs
from canon import first_difference

import elrun  # isort: skip

warnings.simplefilter("ignore")
torch.set_num_threads(1)
result, seed = sys.argv[1], int(sys.argv[2])
many = int(sys.argv[3]) if len(sys.argv) > 3 and sys.argv[3] else 12


def some_cases():
    """N that can be kept all the way."""
    cases = []

    def look(case):
        if len(cases) < many and case["world"] == 1:
            before = graphs.count["back"]
            graphs.run_case(case)
            if graphs.count["back"] > before and len(repr(case)) > 400:
                cases.append(case)

    settings = hypothesis.settings(max_examples=many * 12, deadline=None, database=None, phases=[hypothesis.Phase.generate],
                                   suppress_health_check=list(hypothesis.HealthCheck))
    hypothesis.seed(seed)(settings(hypothesis.given(graphs.cases)(look)))()
    return cases


def main():
    first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    cases = some_cases()
    built = [graphs.build(case) for case in cases]
    ck = elrun.connect()
    for i, (roots, _) in enumerate(built):
        for k, root in enumerate(roots):
            ck.declare(f"{i}.{k}", root, shard_id=cases[i]["parts"][k][0])
    done = ck.restore()
    if first:
        assert done is None
        for step in range(3):
            for case, (roots, builder) in zip(cases, built):
                if step < len(case["rounds"]):
                    graphs.play(case["rounds"][step], roots, builder)
            while not ck.snapshot(step):
                ck.wait()
        ck.wait()
        with open(result + ".then", "wb") as f:
            pickle.dump([graphs.canon_all(roots) for roots, _ in built], f)
        os.kill(os.getpid(), signal.SIGKILL)
    with open(result + ".then", "rb") as f:
        then = pickle.load(f)
    wrong = [f"{i}: {d}" for i, (a, (roots, _)) in enumerate(zip(then, built)) for d in [first_difference(a, graphs.canon_all(roots))] if d]
    with open(result, "w") as f:
        f.write("\n".join(wrong) or f"all {len(built)} came back" if done == 2 and built else f"{done} is back, {len(built)} graphs")


main()
