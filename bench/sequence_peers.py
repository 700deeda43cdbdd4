#!/usr/bin/env python3
"""Times what other libraries have for the operators of bench/sequences.json, on one GPU: PyTorch, torch.compile of it, and the public
Triton operators of Generative Recommenders where a checkout of them is named. Beside them cudaMemcpyAsync, device to device, of as
many bytes as the operator has to read and write.

    bench/sequence_peers.py [--op REGEX] [--generative-recommenders CHECKOUT] [--repeats N] > sequence_peers.json

Times are medians in ms, with the L2 cache emptied before each launch, and the time of the host hidden behind that. Backward is
torch.autograd.grad over rows and tables. Lengths are those of the benchmark: 256 sequences of 20 to 100 % of 1024 rows. What fails is
told on stderr and left out. A way that differs from PyTorch's formula in float64 is not timed (bench/agreement.py).
"""

import argparse
import pathlib
import re
import signal
import sys

import torch
from agreement import Agreement
from row_peers import FLUSH_BYTES, outcome, report_alone, time_copy, time_of, write_report

BATCH, LONGEST, WIDTH, TARGETS, BUCKETS = 256, 1024, 512, 20, 512
DTYPE = torch.bfloat16


class Batch:
    """Lengths, offsets and tensors that all ways share."""

    def __init__(self):
        generator = torch.Generator().manual_seed(1)
        rows = torch.randint(LONGEST // 5, LONGEST + 1, (BATCH,), generator=generator)
        self.lengths = rows.cuda()
        self.offsets = torch.cat([rows.new_zeros(1), rows.cumsum(0)]).cuda()
        left = rows * (torch.arange(BATCH) * 5 % 9) // 8
        self.left = torch.cat([rows.new_zeros(1), left.cumsum(0)]).cuda()
        self.right = self.offsets - self.left
        self.rows = int(rows.sum())
        self.sequence = torch.repeat_interleave(torch.arange(BATCH, device="cuda"), self.lengths)
        self.position = torch.arange(self.rows, device="cuda") - self.offsets[self.sequence]
        self.on_left = self.position < (self.left[1:] - self.left[:-1])[self.sequence]
        self.targets = torch.full((BATCH,), TARGETS, device="cuda")
        steps = torch.tensor([1, 60, 1800, 86400], device="cuda")[torch.arange(BATCH, device="cuda") % 4]
        self.timestamps = 1_790_000_000 - (self.lengths[self.sequence] - 1 - self.position) * steps[self.sequence]

    def tensor(self, *shape, dtype=DTYPE):
        return torch.randn(*shape, dtype=dtype, device="cuda", requires_grad=True)


def position_indices(batch):
    high = batch.lengths - batch.targets
    return high, torch.minimum(batch.position, high[batch.sequence])


def age_indices(batch, log):
    last = batch.timestamps[batch.offsets[1:] - 1]
    units = (last[batch.sequence] - batch.timestamps).clamp(min=1e-6).float() / 60.0
    return (units.log() if log else units.sqrt()).clamp(0, BUCKETS - 1).long()


def instances(batch):
    """Name, bytes forward and backward as rows, inputs, PyTorch's way, Triton's way, and a formula where PyTorch's way is None."""
    L = batch.rows

    def timestamps(log):
        def eager(x, positions, ages):
            high, position = position_indices(batch)
            index = (high[batch.sequence] - position + 2).clamp(0, LONGEST - 2)
            index = torch.where(batch.position < 2, batch.position, index)
            return 1.5 * x + positions[index].to(x.dtype) + ages[age_indices(batch, log)].to(x.dtype)

        def public(module):
            return lambda x, positions, ages: module.triton_add_timestamp_positional_embeddings(
                1.5 * x, batch.offsets, positions, ages, batch.timestamps, LONGEST, 2, batch.lengths, batch.targets, False,
                "log" if log else "sqrt")

        inputs = (batch.tensor(L, WIDTH), batch.tensor(LONGEST - 1, WIDTH, dtype=torch.float32),
                  batch.tensor(BUCKETS, WIDTH, dtype=torch.float32))
        return inputs, eager, ("triton_position", public)

    yield "timestamp-positions", 2 * L, 2 * L, *timestamps(False)
    yield "timestamp-positions-log", 2 * L, 2 * L, *timestamps(True)
    yield ("positions", 2 * L, 2 * L, (batch.tensor(L, WIDTH), batch.tensor(LONGEST - 1, WIDTH, dtype=torch.float32)),
           lambda x, positions: 1.5 * x + positions[position_indices(batch)[1].clamp(0, LONGEST - 2)].to(x.dtype), None)

    def concat(left, right):
        rows = batch.left[1:] - batch.left[:-1]
        on_left = batch.position < rows[batch.sequence]
        index_left = batch.left[batch.sequence] + batch.position
        index_right = batch.right[batch.sequence] + batch.position - rows[batch.sequence]
        return torch.where(on_left[:, None], left[index_left.clamp(max=len(left) - 1)], right[index_right.clamp(0, len(right) - 1)])

    sides = (batch.tensor(int(batch.left[-1]), WIDTH), batch.tensor(int(batch.right[-1]), WIDTH))
    yield ("concat", 2 * L, 2 * L, sides, concat,
           ("triton_jagged", lambda module: lambda left, right: module.triton_concat_2D_jagged(LONGEST, left, right, batch.left, batch.right)))
    yield ("split", 2 * L, 2 * L, (batch.tensor(L, WIDTH),), None,
           ("triton_jagged", lambda module: lambda x: module.triton_split_2D_jagged(
               x, LONGEST, batch.left, batch.right)),
           lambda x: (x[batch.on_left], x[~batch.on_left]))
    yield ("broadcast-add", 2 * L, L, (batch.tensor(L, WIDTH), batch.tensor(BATCH, WIDTH)),
           lambda x, dense: x + dense[batch.sequence],
           ("triton_jagged", lambda module: lambda x, dense: module.triton_jagged_dense_broadcast_add(LONGEST, batch.offsets, x, dense)))

    def padded(x):
        out = torch.zeros(BATCH, LONGEST, WIDTH, dtype=x.dtype, device="cuda")
        return out.index_put((batch.sequence, batch.position), x)

    yield ("dense-bmm", 2 * L + BATCH * (WIDTH + 1), 3 * L + BATCH * (2 * WIDTH + 1),
           (batch.tensor(L, WIDTH), batch.tensor(BATCH, WIDTH, WIDTH), batch.tensor(BATCH, WIDTH)),
           lambda x, dense, bias: torch.baddbmm(bias[:, None], padded(x), dense)[batch.sequence, batch.position],
           ("triton_jagged", lambda module: lambda x, dense, bias: module.triton_jagged_dense_bmm_add(
               LONGEST, batch.offsets, x, dense, bias)))
    yield "to-padded", L + BATCH * LONGEST, 2 * L, (batch.tensor(L, WIDTH),), padded, None
    yield ("to-jagged", 2 * L, L + BATCH * LONGEST, (batch.tensor(BATCH, LONGEST, WIDTH),),
           lambda x: x[batch.sequence, batch.position], None)


def gradient_of(outputs):
    return [torch.randn_like(output) for output in outputs]


def time_way(layer, inputs, flush, repeats):
    outputs = layer(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    gradients = gradient_of(outputs)
    torch.autograd.grad(outputs, inputs, gradients, retain_graph=True)
    with torch.no_grad():
        forward = time_of(lambda: layer(*inputs), flush, repeats)
    return {"forward": forward,
            "backward": time_of(lambda: torch.autograd.grad(outputs, inputs, gradients, retain_graph=True), flush, repeats)}


def time_instance(cell, flush, options, agreement):
    name, forward_rows, backward_rows, inputs, eager, public, *formula = cell
    row_bytes = WIDTH * inputs[0].element_size()
    result = {"name": name, "copy_ms": {"forward": time_copy(forward_rows * row_bytes, flush, options.repeats),
                                        "backward": time_copy(backward_rows * row_bytes, flush, options.repeats)}}
    ways = {"pytorch": lambda: eager, "torch_compile": lambda: eager and torch.compile(eager, dynamic=False)}
    if public is not None and options.generative_recommenders:
        ways["triton"] = lambda: public[1](__import__(f"generative_recommenders.ops.triton.{public[0]}", fromlist=["x"]))
    exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
    reference = outcome(lambda: (formula[0] if formula else eager)(*exact), exact)
    for way, make in ways.items():
        try:
            layer = make()
            if layer is None:
                continue
            if agreement.check(result, way, "bf16", outcome(lambda: layer(*inputs), inputs), reference):  # noqa: B023
                result[way] = time_way(layer, inputs, flush, options.repeats)
        except Exception as error:  # the others are timed all the same
            print(f"{name} by {way}: {str(error).splitlines()[0] if str(error) else type(error).__name__}", file=sys.stderr)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", default="", metavar="REGEX", help="only instances whose name has a match")
    parser.add_argument("--generative-recommenders", metavar="CHECKOUT")
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    report = report_alone()
    if options.generative_recommenders:
        sys.path.insert(0, str(pathlib.Path(options.generative_recommenders).resolve()))
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    times, agreement = [], Agreement()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("sequence_peers: told to stop; what was timed is written"))
    try:
        for cell in instances(Batch()):
            if re.search(options.op, cell[0]):
                torch._dynamo.reset()
                times.append(time_instance(cell, flush, options, agreement))
                torch.cuda.empty_cache()
    finally:
        write_report(report, times)
    return agreement.exit_code()


if __name__ == "__main__":
    sys.exit(main())
