#!/usr/bin/env python3
"""A small HSTU ranker that is trained twice: with layers of plain PyTorch, and with hstujit's.

    python examples/train_ranker.py [--plot curves.png]
    torchrun --nproc-per-node 2 examples/train_ranker.py

Both have the same weights to begin with and the same batches, so both have the same curve of losses; the program exits
with 1 where they differ. Histories are as long as those of examples/data. Each user likes one taste, most items of the
history are of it, and the model learns to tell which candidates are, too.

Under torchrun each process has a GPU, or a part of the CPU, and batches of its own. Without a GPU, the wheel
hstujit-host computes.
"""

import argparse
import dataclasses
import importlib.util
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from ranker import CANDIDATES, PlainSTULayer, Ranker, make_batch

import hstujit
from hstujit.torch import STULayer, STULayerConfig

LENGTHS = pathlib.Path(__file__).resolve().parent / "data" / "ml-100k-history-lengths.txt"
HEADS = 4
DEFAULTS = {
    "cpu": {"steps": 60, "batch": 32, "width": 64, "max_rows": 64},
    "cuda": {"steps": 200, "batch": 128, "width": 512, "max_rows": 1024},
}
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
TOLERANCE = 0.002  # of mean losses, which begin near 0.7: ten times what rounding makes of them on the CPU
WINDOW = 10  # steps whose mean loss is compared


class Ranks:
    """The processes that train together: those of torchrun, or this one alone."""

    def __init__(self, device):
        self.index, self.count = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        self.device = torch.device(device)
        if self.device.type == "cuda":
            self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
            torch.cuda.set_device(self.device)
        if self.count > 1:
            dist.init_process_group("nccl" if self.device.type == "cuda" else "gloo")

    def parallel(self, model):
        if self.count == 1:
            return model
        indices = [self.device.index] if self.device.type == "cuda" else None
        return torch.nn.parallel.DistributedDataParallel(model, device_ids=indices)

    def from_first(self, make):
        """Returns the result of ``make()`` in rank 0 to all ranks, which wait for it."""
        values = [make() if self.index == 0 else None]
        if self.count > 1:
            dist.broadcast_object_list(values, device=self.device)
        return values[0]

    def mean_and_max(self, values):
        """Two lists: the mean, and the largest, over all ranks of each value."""
        mean = torch.tensor(values, dtype=torch.float64, device=self.device)
        largest = mean.clone()
        if self.count > 1:
            dist.all_reduce(mean)
            dist.all_reduce(largest, dist.ReduceOp.MAX)
        return (mean / self.count).tolist(), largest.tolist()


def freeze(config, max_seq_len, dtype, ranks, folder):
    """Every rank launches the kernels that rank 0 has compiled and frozen, as docs/deployment.md does by commands.

    Returns a sentence of it.
    """
    if ranks.device.type == "cpu":
        return "nothing is frozen: the host backend computes an operator in one way, whatever the rank"
    if path := os.environ.get("HSTUJIT_FROZEN"):
        return f"kernels are those of {path}"
    instances = STULayer(config).instances(training=max_seq_len, num_targets=True, dtype=DTYPES[dtype])

    def choices():
        hstujit.prewarm(instances)
        return hstujit.freeze(instances)

    frozen = ranks.from_first(choices)
    path = pathlib.Path(folder) / "choices.json"
    path.write_text(json.dumps(frozen))
    os.environ["HSTUJIT_FROZEN"] = str(path)
    hstujit.set_default_context(hstujit.Context())  # reads the variable
    return f"frozen: {len(frozen['choices'])} keys for every rank, checksum {frozen['checksum'][:12]}"


@dataclasses.dataclass
class Curve:
    """One training: a loss and milliseconds for each step, and bytes."""

    losses: list[float]
    times: list[float]
    peak_memory: float | None  # None: not measured

    @property
    def time(self):
        return statistics.median(self.times)


def train(model, batches, dtype, ranks):
    """Losses are the mean of all ranks, times and memory those of the slowest and the largest."""
    device = ranks.device.type
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    model = ranks.parallel(model.to(ranks.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler(device, init_scale=1024.0, enabled=dtype == torch.float16)
    losses, times = [], []
    for batch in batches:
        start = time.perf_counter()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(batch), batch.labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    peak = [torch.cuda.max_memory_allocated()] if device == "cuda" else []
    peak = ranks.mean_and_max(peak)[1]
    return Curve(ranks.mean_and_max(losses)[0], ranks.mean_and_max(times)[1], peak[0] if peak else None)


def difference(plain, ours, tolerance, window=WINDOW):
    """Compares two curves of losses: a sentence that says how they differ, or None where they agree.

    They do where no mean over ``window`` consecutive steps differs by more than ``tolerance``. Rounding moves the loss
    of a single batch by more, the longer a training goes on.
    """
    if len(plain) != len(ours):
        return f"the curves have {len(plain)} and {len(ours)} steps"
    for step in range(len(plain)):
        first = max(0, step + 1 - window)
        one, other = (statistics.fmean(losses[first : step + 1]) for losses in (plain, ours))
        if not abs(one - other) <= tolerance:  # so that NaN is a difference
            return (
                f"the curves differ: the mean loss of steps {first} to {step} is {one:.4f} with plain PyTorch and "
                f"{other:.4f} with hstujit, and {tolerance:g} is allowed"
            )
    return None


def show(plain, ours):
    print(f"{'step':>4}  {'plain PyTorch':>13}  {'hstujit':>7}")
    last = len(plain.losses) - 1
    for step in sorted({*range(0, last, max(last // 8, 1)), last}):
        print(f"{step:4d}  {plain.losses[step]:13.4f}  {ours.losses[step]:7.4f}")
    print(f"\n{'layers':<13}  {'last loss':>9}  {'ms per step':>11}  {'peak memory':>12}")
    for name, curve in (("plain PyTorch", plain), ("hstujit", ours)):
        memory = "not measured" if curve.peak_memory is None else f"{curve.peak_memory / 2**20:.0f} MiB"
        print(f"{name:<13}  {curve.losses[-1]:9.4f}  {curve.time:11.2f}  {memory:>12}")


def plot(plain, ours, file, title):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    figure.suptitle(title)
    for axis, what in zip(axes, ("losses", "times")):
        axis.plot(getattr(plain, what), label="plain PyTorch", linewidth=3, alpha=0.5)
        axis.plot(getattr(ours, what), label="hstujit", linewidth=1)
        axis.set_xlabel("step")
        axis.legend()
    axes[0].set_ylabel("loss")
    axes[1].set_ylabel("ms per step")
    axes[1].set_yscale("log")  # the first step loads kernels
    figure.savefig(file, dpi=120)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    has_gpu = torch.cuda.is_available()
    parser.add_argument("--steps", type=int, help="default: 60, or 200 on a GPU")
    parser.add_argument("--batch", type=int, help="users of a step, in each process; default: 32, or 128 on a GPU")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, help="a multiple of 4; default: 64, or 512 on a GPU")
    parser.add_argument("--max-rows", type=int, help="cuts histories, candidates included; default: 64, or 1024")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--device", choices=DEFAULTS, default="cuda" if has_gpu else "cpu")
    parser.add_argument("--plot", metavar="FILE", help="writes a PNG of losses and times; needs matplotlib")
    options = parser.parse_args()
    for name, value in DEFAULTS[options.device].items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    if options.width < HEADS or options.width % HEADS:
        parser.error(f"--width is {options.width}; it must be a multiple of {HEADS}, the heads")
    if options.max_rows <= CANDIDATES:
        parser.error(f"--max-rows is {options.max_rows}; {CANDIDATES} of them are candidates")
    if min(options.steps, options.batch, options.layers) < 1:
        parser.error("--steps, --batch and --layers must be at least 1")
    if options.plot and not importlib.util.find_spec("matplotlib"):
        parser.error("--plot needs matplotlib: pip install matplotlib")
    if options.device == "cuda" and int(os.environ.get("LOCAL_RANK", 0)) >= torch.cuda.device_count():
        parser.error("--device cuda needs a GPU for each process")
    return options


def main():
    options = parse()
    ranks, dtype = Ranks(options.device), DTYPES[options.dtype]
    histories = torch.tensor([int(line) for line in LENGTHS.read_text().splitlines()])
    histories = histories.clamp(max=options.max_rows - CANDIDATES)
    max_seq_len = int(histories.max()) + CANDIDATES
    first = options.seed * 1_000_003 + ranks.index
    seeds = range(first, first + options.steps * ranks.count, ranks.count)
    batches = [make_batch(histories, options.batch, seed).to(ranks.device) for seed in seeds]

    head = options.width // HEADS
    # Without dropout, whose masks are drawn in another way.
    config = STULayerConfig(options.width, HEADS, hidden_dim=head, attention_dim=head, output_dropout_ratio=0.0)
    torch.manual_seed(options.seed)
    models = [Ranker(layer, config, options.layers, max_seq_len, dtype) for layer in (PlainSTULayer, STULayer)]
    models[1].load_state_dict(models[0].state_dict())
    with tempfile.TemporaryDirectory() as folder:
        sentence = freeze(config, max_seq_len, options.dtype, ranks, folder)
        curves = []
        while models:  # one is gone when the other one's memory is measured
            curves.append(train(models.pop(0), batches, dtype, ranks))
    problem = difference(*(curve.losses for curve in curves), TOLERANCE)
    if ranks.index == 0:
        title = (
            f"{options.layers} layer{'s' * (options.layers != 1)} of width {options.width}, {options.dtype}; "
            f"{ranks.count} x {options.batch} users of up to {max_seq_len} rows; {ranks.device.type}"
        )
        print(f"{title}\n{sentence}\n")
        show(*curves)
        if options.plot:
            plot(*curves, options.plot, title)
        if not problem:
            most = min(WINDOW, options.steps)
            steps = f"{most} step{'s' * (most != 1)}"
            print(f"\nboth curves agree: no mean of up to {steps} differs by more than {TOLERANCE}")
    if ranks.count > 1:
        dist.destroy_process_group()
    if problem and ranks.index == 0:
        sys.exit(problem)


if __name__ == "__main__":
    main()
