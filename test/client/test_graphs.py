"""test_graphs.py [--examples N] [--seed N] [--survey]: random graphs of objects, each kept and put back (graphs.py).  Speaks TAP.

--survey: goes on after a failure, makes nothing smaller, and prints the shortest case of each kind of failure."""
import argparse
import re
import time
import traceback
import warnings

import hypothesis
import torch

import graphs

warnings.simplefilter("ignore")
torch.set_num_threads(1)


def every(examples, seed, run, phases):
    """Calls run() with cases."""
    settings = hypothesis.settings(max_examples=examples, deadline=None, database=None, print_blob=False, phases=phases,
                                   suppress_health_check=list(hypothesis.HealthCheck))
    hypothesis.seed(seed)(settings(hypothesis.given(graphs.cases)(run)))()


def survey(examples, seed):
    found = {}

    def run(case):
        try:
            graphs.run_case(case)
        except Exception as e:
            where = traceback.extract_tb(e.__traceback__)[-1]
            ours = [f"{f.filename.rsplit('/', 1)[1]}:{f.lineno} {f.line}" for f in traceback.extract_tb(e.__traceback__) if "/client/" in f.filename]
            key = type(e).__name__, re.sub(r"0x\w+|[0-9.]+|\".*?\"|'.*?'", "N", str(e))[:90], where.lineno
            n, old, text = found.get(key, (0, None, ""))
            if old is None or len(str(case)) < len(str(old)):
                old, text = case, "\n".join([*ours[-4:], f"{type(e).__name__}: {e}"])
            found[key] = n + 1, old, text

    every(examples, seed, run, [hypothesis.Phase.generate])
    for n, case, text in sorted(found.values(), key=lambda f: -f[0]):
        print(f"=== {n} times\n{text[:1200]}\n{case}\n")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--examples", type=int, default=500)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--survey", action="store_true")
    args = args.parse_args()
    began = time.monotonic()
    if args.survey:
        survey(args.examples, args.seed)
    else:
        result = "ok"
        try:
            every(args.examples, args.seed, graphs.run_case, [hypothesis.Phase.generate, hypothesis.Phase.shrink])
        except BaseException:
            result = "not ok"
            print("# " + traceback.format_exc().replace("\n", "\n# "))
        print(f"{result} 1 - what random graphs of objects hold comes back\n1..1")
    print(f"# {args.examples} examples in {time.monotonic() - began:.0f} s: {dict(graphs.count)}")


if __name__ == "__main__":
    main()
