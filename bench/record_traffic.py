"""The recorded result of bench/run_gpu.sh's steps "traffic" and "models" (bench/record.py): each cell that is the same in every run, and of those
that were drawn anew how figures are distributed, so that no kernel is shaped to them."""

import json
import math
import re
import statistics

# How many times longer each of them takes: the public Triton operator, NVIDIA's kernels in FBGEMM.
PEERS = {"triton": "speedup", "fbgemm": "speedup_fbgemm"}
DRAWN = re.compile(r"^(?P<cell>.*)_seed_(?P<seed>\d+)$")


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def spread(values):
    """Statistics of numbers, positive but for differences: count, extremes, median and geometric mean."""
    values = sorted(values)
    if not values:
        return {"cells": 0}
    return {"cells": len(values), "least": round(values[0], 3), "median": round(statistics.median(values), 3),
            "geometric_mean": round(math.exp(statistics.fmean(map(math.log, values))), 3) if values[0] > 0 else 0, "most": round(values[-1], 3)}


def figures(tuned, bench, peers):
    """By name and direction: ms as tuned and as the cost model chooses, the share of the limit, and public kernels' ms."""
    result = {}
    for row in bench["results"]:
        if "median_ms" in row:
            result[row["name"], row["direction"]] = {"ms": row["median_ms"], "of_limit": row["limit_ms"] / row["median_ms"],
                                                     "rows": row["rows"]}
    for key in tuned["keys"]:
        found = result.get((key["name"], key["direction"]))
        if found and key.get("heuristic_us") and key.get("winner_us"):
            found["slower_untuned"] = key["heuristic_us"] / key["winner_us"]
    for cell in peers["times"]:
        for direction in ("forward", "backward"):
            times, found = cell.get(direction, {}), result.get((cell["name"], direction))
            if found and "ended" in cell and "triton" not in times:
                found["public_ended"] = cell["ended"]
            if found and "not_compared" in times:
                found["not_compared"] = times["not_compared"]
            if not found or "hstujit" not in times:
                continue
            # All of one process: the benchmark's own time is of other clocks.
            for way, speedup in PEERS.items():
                if way in times:
                    found |= {f"{way}_ms": times[way], speedup: times[way] / times["hstujit"],
                              "difference": max(value for apart in times["difference"].values() for value in apart.values())}
    return result


def traffic(tuned, bench, peers=None):
    """Reports of hstujit tune and bench, and of bench/attention_peers.py where there are others' times."""
    others = {"times": []}
    if peers:
        try:
            others = load(peers)
        except ValueError as error:  # it ended before it wrote: our own figures stay
            print(f"{peers}: {error}")
    found = figures(load(tuned), load(bench), others)
    cells, drawn, seeds = {}, {}, set()
    for (name, direction), cell in found.items():
        match = DRAWN.match(name)
        if not match:
            cells.setdefault(name, {})[direction] = {k: round(v, 5) if isinstance(v, float) else v for k, v in cell.items()}
            continue
        seeds.add(int(match["seed"]))
        for figure in (*PEERS.values(), "of_limit", "slower_untuned", "difference"):
            if figure in cell:
                drawn.setdefault(direction, {}).setdefault(figure, []).append(cell[figure])
    result = {"cells": cells, "drawn": {"seeds": sorted(seeds)} | {
        direction: {figure: spread(values) for figure, values in of.items()} for direction, of in drawn.items()}}
    for direction in ("forward", "backward"):
        for way, speedup in PEERS.items():
            speedups = spread(cell[speedup] for (_, other), cell in found.items() if other == direction and speedup in cell)
            if speedups["cells"]:
                print(f"{direction}: {speedups['geometric_mean']} times the speed of {way}, at least {speedups['least']}")
    behind = sorted(f"{name} {direction}" for (name, direction), cell in found.items()
                    if any(cell.get(speedup, math.inf) < cell.get("slower_untuned", 1) for speedup in PEERS.values()))
    print(f"{len(found)} cells; untuned behind a public kernel: {', '.join(behind) or 'none'}")
    far = sorted(f"{name} {direction}" for (name, direction), cell in found.items() if "not_compared" in cell)
    print(f"results that are not compared (bench/agreement.py): {', '.join(far) or 'none'}")
    return result, bool(found) and not far
