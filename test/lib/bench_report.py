"""Reads the JSON lines of the benchmarks (test/lib/bench.sh says what they hold) and writes RESULTS.md to stdout.

    bench_report.py FACTS SAMPLES

FACTS: lines "name: value" that describe the run.  No number is typed anywhere: what has no samples stays blank.
"""

import fractions
import json
import math
import re
import statistics
import sys

RUNS = 20  # of each: fewer are said
TAIL = 3   # a sample above so many medians has its reason in the table
RATES = ("lines/s", "requests/s", "GB/s")  # more is better
FAR = f"why the worst is above {TAIL} medians"


def shown(value, unit):
    """Three significant digits, but never less than the whole number."""
    if unit == "lines/s" or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def ranked(samples, unit):
    """The samples from the best one to the worst one: of what is a rate, the highest is the best."""
    return sorted(samples, reverse=unit in RATES)


def p90(samples, unit):
    """The best sample that nine of ten are no worse than (nearest rank)."""
    return ranked(samples, unit)[math.ceil(0.9 * len(samples)) - 1]


def cell(samples, unit):
    """Median, p90 and the worst of all; how many, where they are fewer than the benchmarks are meant to take."""
    if not samples:
        return ""
    worst = "min" if unit in RATES else "max"
    few = f"; only {len(samples)}" if len(samples) < RUNS else ""
    return (f"{shown(statistics.median(samples), unit)} {unit} (p90 {shown(p90(samples, unit), unit)}, "
            f"{worst} {shown(ranked(samples, unit)[-1], unit)}{few})")


def tail(row):
    """Why the worst sample of elrun lies so far from the median, as the benchmark knows it."""
    samples = row.get("samples")
    if not samples or row["unit"] in RATES or max(samples) <= TAIL * statistics.median(samples):
        return ""
    return row.get("tail") or "**not known**"


def ratio(mine, peer, name):
    """What elrun is of the peer, by medians."""
    if not mine or not peer or not statistics.median(peer) or not statistics.median(mine):
        return ""
    times = statistics.median(mine) / statistics.median(peer)
    return f"1/{1 / times:.3g} of {name}" if times < 0.5 else f"{times:.2f} x {name}"


def verdict(budget, rows):
    """The budget and whether elrun's median keeps it: "<= 5 ms", ">= 0.9 x bare", "<= 1/3 x torch"."""
    parts = re.fullmatch(r"([<>]=?) (\d+(?:/\d+)?|\d*\.\d+)(?: x (.+)| .*)?", budget)
    if budget and not parts:
        sys.exit(f"bench_report: cannot judge the budget {budget!r}")
    mine = rows.get("elrun", {}).get("samples")
    if not budget or not mine:
        return budget
    sign, number, peer = parts.groups()
    limit = float(fractions.Fraction(number))
    if peer:
        theirs = rows.get(peer, {}).get("samples")
        if not theirs or not statistics.median(theirs):
            return budget
        limit *= statistics.median(theirs)
    value = statistics.median(mine)
    met = {"<": value < limit, "<=": value <= limit, ">": value > limit, ">=": value >= limit}[sign]
    return f"{budget}: {'met' if met else '**not met**'}"


def read(path):
    """{bench: {metric: {who: row}}}, all in the order of the file."""
    benches = {}
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        try:
            row = json.loads(line)
            benches.setdefault(row["bench"], {}).setdefault(row["metric"], {})[row["who"]] = row
        except (ValueError, KeyError) as error:
            sys.exit(f"bench_report: line {number} is not a result: {error!r}: {line.strip()[:200]}")
    return benches


def table(metrics):
    peers = []
    for rows in metrics.values():
        peers += [who for who in rows if who != "elrun" and who not in peers]
    far = any(tail(rows.get("elrun", {})) for rows in metrics.values())
    yield "| what | " + " | ".join(["elrun", *peers, "elrun is", "budget", *[FAR] * far]) + " |"
    yield "| --- " * (4 + len(peers) + far) + "|"
    for metric, rows in metrics.items():
        mine = rows.get("elrun", {})
        cells = [cell(rows.get(who, {}).get("samples"), next(iter(rows.values()))["unit"]) for who in ["elrun", *peers]]
        ratios = [ratio(mine.get("samples"), rows.get(who, {}).get("samples"), who) for who in peers]
        yield f"| {metric} | " + " | ".join([*cells, ", ".join(filter(None, ratios)), verdict(mine.get("budget", ""), rows), *[tail(mine)] * far]) + " |"


def intervals(metrics):
    yield "| what | from | to |"
    yield "| --- | --- | --- |"
    for metric, rows in metrics.items():
        row = next(iter(rows.values()))
        yield f"| {metric} | {row['from']} | {row['to']} |"


def raw(metrics):
    for metric, rows in metrics.items():
        for who, row in rows.items():
            yield f"- {metric}, {who}, {row['unit']}: " + (" ".join(f"{s:g}" for s in row["samples"]) or "could not run")


def main():
    facts, samples = sys.argv[1:]
    print("# Results\n\nWritten by `make bench` and by nothing else. Side by side in one run: medians, and in brackets\nwhat nine of ten runs keep and the worst of all.")
    print("“elrun is” compares the medians; a blank means that the peer could not run.\n")
    print("".join(f"- {line}" for line in open(facts, encoding="utf-8")), end="")
    for bench, metrics in read(samples).items():
        print(f"\n## {bench}\n")
        for part in (table, intervals, raw):
            print("\n".join(part(metrics)), end="\n\n" if part is not raw else "\n")


main()
