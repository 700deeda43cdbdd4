#!/usr/bin/env python3
"""Times attention whose mask is a tensor, attn_func, beside the same pairs by sla_k1 and sla_k2, on one GPU.

    HSTUJIT_ON_MISS=tune bench/intervals.py [--cell NAME] [--repeats N] > intervals.json

Each cell has semi-local attention of causal sequences, bf16, 4 heads of 128: a row sees the first sla_k2 columns and the sla_k1 before
it. As intervals these are [0, sla_k2) and [row - sla_k1 + 1, row + 1), cut at the row. Times are medians in ms, with the L2 cache
emptied before each launch. Both ways have to agree with float64 (bench/agreement.py); "same_bits" says whether they agree with each
other to the bit.
"""

import argparse
import json
import sys

import torch
from agreement import Agreement
from references import attention
from row_peers import FLUSH_BYTES, report_alone, time_of, write_report

# Longest sequence, sequences, sla_k1, sla_k2. Lengths are drawn between 0.3 and 1 of the longest.
CELLS = {"4k": (4096, 64, 512, 64), "16k": (16384, 6, 1024, 128), "ultra": (8192, 32, 256, 32)}
HEADS, COLUMNS, HOST_CYCLES = 4, 128, 4_000_000


def intervals(offsets, sla_k1, sla_k2):
    """attn_func, (1, 3, L)."""
    rows = torch.cat([torch.arange(end - begin) for begin, end in zip(offsets, offsets[1:])])
    ends = [torch.clamp(rows + 1, max=sla_k2), torch.clamp(rows - sla_k1 + 1, min=0), rows + 1]
    return torch.stack(ends).to(torch.int32)[None].cuda()


class Cell:
    def __init__(self, longest, sequences, sla_k1, sla_k2):
        torch.manual_seed(longest)
        lengths = torch.randint(longest * 3 // 10, longest + 1, (sequences,))
        lengths[0] = longest
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        self.longest, self.offsets, self.fields = longest, offsets.cuda(), {"sla_k1": sla_k1, "sla_k2": sla_k2}
        self.intervals = {"attn_func": intervals(offsets.tolist(), sla_k1, sla_k2)}
        self.tensors = [torch.randn(int(offsets[-1]), HEADS, COLUMNS, dtype=torch.bfloat16, device="cuda") for _ in range(4)]

    def launches(self, mask):
        """Forward and backward."""
        import hstujit.torch  # registers the operators

        ops, common = torch.ops.hstujit, (self.offsets, self.longest, 1 / COLUMNS)
        return (lambda: [ops.hstu_attention(*self.tensors[:3], *common, **mask)],
                lambda: list(ops.hstu_attention_backward(*self.tensors, *common, **mask)[:3]))

    def reference(self):
        inputs = [tensor.double().requires_grad_() for tensor in self.tensors[:3]]
        out = attention(*inputs, self.offsets, self.longest, 1 / COLUMNS, **self.fields)
        return {"forward": [out.detach()], "gradients": list(torch.autograd.grad(out, inputs, self.tensors[3].double()))}


def time_cell(name, options, agreement):
    cell = Cell(*CELLS[name])
    reference = cell.reference()
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    result = {"name": name, "rows": len(cell.tensors[0])}
    ways = {"fields": cell.launches(cell.fields), "intervals": cell.launches(cell.intervals)}
    for place, (direction, kind) in enumerate((("forward", "forward"), ("backward", "gradients"))):
        compared = result[direction] = {"name": f"{name}, {direction}"}
        found = {way: launches[place]() for way, launches in ways.items()}
        compared["same_bits"] = all(map(torch.equal, found["fields"], found["intervals"]))
        for way, launches in ways.items():
            if agreement.check(compared, way, "bf16", {kind: found[way]}, {kind: reference[kind]}):
                compared[way] = time_of(launches[place], flush, options.repeats, HOST_CYCLES)
        if "fields" in compared and "intervals" in compared:
            compared["ratio"] = round(compared["intervals"] / compared["fields"], 3)
        print(name, direction, compared, file=sys.stderr, flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cell", choices=CELLS, action="append", help="only these")
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    report, agreement = report_alone(), Agreement()
    write_report(report, [time_cell(name, options, agreement) for name in options.cell or CELLS])
    return agreement.exit_code()


if __name__ == "__main__":
    sys.exit(main())
