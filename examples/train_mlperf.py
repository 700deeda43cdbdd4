#!/usr/bin/env python3
"""Trains the HSTU layers of the MLPerf Training benchmark dlrm_v4_hstu on synthetic rows of its shape.

    python examples/train_mlperf.py [--keep] [--whole]
    torchrun --nproc-per-node 2 examples/train_mlperf.py

Three layers of four heads of 128 columns and of width 512, with dropout of 0.1. A batch has 1,024 sequences of up to
4,096 rows, some 2.6 million together: 8 contextual rows, a history, one target. The loss reads the targets, so the last
layer computes only these. Each user has a taste; rows of the history lean towards it, and the label says whether the
target does.

Under torchrun each process has a GPU, or a part of the CPU, and its share of the batch. Without a GPU the defaults are
small, and the wheel hstujit-host computes.
"""

import argparse
import math
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.functional import binary_cross_entropy_with_logits
from train_ranker import Ranks

from hstujit.torch import STULayer, STULayerConfig

CONTEXTS, TARGETS, HEADS = 8, 1, 4
# The median of lengths is that of bench/models.json, as a share of the longest.
MEDIAN, SIGMA = 2600 / 4095, 0.9
DEFAULTS = {
    "cpu": {"steps": 60, "batch": 32, "width": 64, "max_rows": 64},
    "cuda": {"steps": 20, "batch": 1024, "width": 512, "max_rows": 4095},
}


def draw_lengths(sequences, longest, generator):
    """(sequences), log-normal, each with all contextual rows, a row of history and the target at least."""
    lengths = torch.randn(sequences, generator=generator).mul(SIGMA).exp().mul(MEDIAN * longest)
    return lengths.round().long().clamp(CONTEXTS + 1 + TARGETS, longest)


class Batch:
    """Rows of all sequences, one after the other, and a label of each target."""

    def __init__(self, lengths, width, seed, device):
        generator = torch.Generator(device).manual_seed(seed)

        def normal(rows):
            return torch.randn(rows, width, dtype=torch.bfloat16, device=device, generator=generator)

        self.lengths = lengths.to(device)
        self.offsets = torch.nn.functional.pad(self.lengths.cumsum(0), (1, 0))
        self.targets = torch.full_like(self.lengths, TARGETS)
        self.longest = int(lengths.max())
        taste, last = normal(len(lengths)), self.offsets[1:] - 1
        self.rows = normal(int(lengths.sum()))
        target = self.rows[last].clone()
        self.rows += taste.repeat_interleave(self.lengths, 0, output_size=len(self.rows))
        self.rows[last] = target
        self.labels = ((target.float() * taste.float()).sum(1) > 0).float()


class Model(torch.nn.Module):
    """Layers of HSTU and a score of each target."""

    def __init__(self, config, layers, whole):
        super().__init__()
        self.layers = torch.nn.ModuleList(STULayer(config) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(config.embedding_dim)
        self.score = torch.nn.Linear(config.embedding_dim, 1)
        self.whole = whole

    def forward(self, batch):
        """(B), logits."""
        call = batch.lengths, batch.offsets, batch.longest, batch.targets
        x = batch.rows
        *others, last = self.layers
        for layer in others:
            x = layer(x, *call)
        if self.whole:
            x = last(x, *call)[batch.offsets[1:] - 1]
        else:
            x = last.forward_targets_only(x, *call, max_targets=TARGETS, total_targets=TARGETS * len(batch.lengths))
        return self.score(self.norm(x.float())).flatten()


def train(model, batches, ranks):
    """Losses of the mean of all ranks, milliseconds of the slowest, and the largest peak of memory, None on the CPU."""
    on_gpu = ranks.device.type == "cuda"
    model = ranks.parallel(model.to(ranks.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses, times = [], []
    for batch in batches:
        start = time.perf_counter()
        loss = binary_cross_entropy_with_logits(model(batch), batch.labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if on_gpu:
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    peak = ranks.mean_and_max([torch.cuda.max_memory_allocated()])[1][0] if on_gpu else None
    return ranks.mean_and_max(losses)[0], ranks.mean_and_max(times)[1], peak


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, help="default: 60, or 20 on a GPU")
    parser.add_argument("--batch", type=int, help="sequences of all processes; default: 32, or 1024 on a GPU")
    parser.add_argument("--batches", type=int, default=2, help="as many are drawn, and used in turns; default: 2")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--width", type=int, help="a multiple of 4; default: 64, or 512 on a GPU")
    parser.add_argument("--max-rows", type=int, help="of a sequence; default: 64, or 4095 on a GPU")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--keep", action="store_true", help="backward computes nothing again, for more memory")
    parser.add_argument("--whole", action="store_true", help="the last layer computes all rows")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=DEFAULTS, default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    for name, value in DEFAULTS[options.device].items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    ranks = int(os.environ.get("WORLD_SIZE", 1))
    if options.width < HEADS or options.width % HEADS:
        parser.error(f"--width is {options.width}; it must be a multiple of {HEADS}, the heads")
    if options.max_rows < CONTEXTS + 1 + TARGETS:
        parser.error(f"--max-rows is {options.max_rows}; it must be at least {CONTEXTS + 1 + TARGETS}")
    if options.batch < ranks or options.batch % ranks:
        parser.error(f"--batch is {options.batch}; it must be a multiple of {ranks}, the number of processes")
    if min(options.steps, options.batches, options.layers) < 1:
        parser.error("--steps, --batches and --layers must be at least 1")
    if not 0 <= options.dropout < 1:
        parser.error(f"--dropout is {options.dropout:g}; it must be at least 0 and less than 1")
    if options.device == "cuda" and int(os.environ.get("LOCAL_RANK", 0)) >= torch.cuda.device_count():
        parser.error("--device cuda needs a GPU for each process")
    return options


def main():
    options = parse()
    ranks = Ranks(options.device)
    generator = torch.Generator().manual_seed(options.seed)  # the same lengths in every process
    batches = []
    for index in range(options.batches):
        lengths = draw_lengths(options.batch, options.max_rows, generator)[ranks.index :: ranks.count]
        seed = 1_000_003 * options.seed + ranks.count * index + ranks.index
        batches.append(Batch(lengths, options.width, seed, ranks.device))
    head = options.width // HEADS
    again = dict.fromkeys(("recompute_normed_x", "recompute_uvqk", "recompute_y"), not options.keep)
    config = STULayerConfig(options.width, HEADS, head, head, options.dropout, contextual_seq_len=CONTEXTS, **again)
    torch.manual_seed(options.seed)
    model = Model(config, options.layers, options.whole)
    losses, times, peak = train(model, [batches[step % len(batches)] for step in range(options.steps)], ranks)
    if ranks.index == 0:
        warm = times[len(batches) :] or times  # the first steps compile
        ms, few = statistics.median(warm), max(1, options.steps // 4)
        first, last = statistics.fmean(losses[:few]), statistics.fmean(losses[-few:])
        rows = sum(int(batch.lengths.sum()) for batch in batches) / len(batches)
        print(
            f"{options.layers} layer{'s' * (options.layers > 1)} of width {options.width}, the last one of "
            f"{'all rows' if options.whole else 'targets alone'}; {ranks.count} x {options.batch // ranks.count} "
            f"sequences of up to {options.max_rows} rows; {ranks.device.type}"
        )
        print(f"loss {first:.4f} -> {last:.4f}, the means of {few} steps; the first step took {times[0]:.0f} ms")
        memory = "not measured" if peak is None else f"{peak / 2**30:.1f} GiB"
        print(f"{ms:.1f} ms a step, {1e3 * rows / ms:,.0f} rows a second and process, peak memory {memory}")
        if not math.isfinite(last):
            sys.exit("the loss is not a finite number")
    if ranks.count > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
