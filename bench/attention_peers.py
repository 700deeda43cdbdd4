#!/usr/bin/env python3
"""Times attention beside public kernels: the Triton operator of Generative Recommenders, and NVIDIA's of FBGEMM. The same tensors in
the same process.

    bench/attention_peers.py [--generative-recommenders CHECKOUT] [--fbgemm FOLDER] [--config FILE] [--op REGEX] [--repeats N] \
        > attention_peers.json

FOLDER has the wheels fbgemm-gpu-hstu-nightly and nvidia-cuda-runtime-cu12 of PyPI, unpacked. One of both has to be given. A public
kernel that does not know the mask of a cell has no time there.

The config is a grid such as bench/grid.json, or one that bench/traffic.py wrote. Backward is the kernels alone: neither side goes
through autograd. Times are medians in ms, with the L2 cache emptied before each launch, and the time of the host hidden behind that.
"difference" has the distances of both results to a float64 reference, over its norm. Results that are further apart than their type
allows have no times (bench/agreement.py).

Each cell has a process of its own. One configuration of the public backward kernel accesses memory that is not its own, which ends
the process while Triton tunes: then the cell says so, and what was timed before stays. The public operator is timed without TMA, which
it does not use for q, k and v by itself.
"""

import argparse
import ctypes
import inspect
import json
import os
import pathlib
import re
import signal
import sys

import torch
from agreement import Agreement
from processes import printed_by
from references import attention
from row_peers import FLUSH_BYTES, time_of, write_report

GRID = pathlib.Path(__file__).parent / "grid.json"
MULTIPROCESSORS_OF_CUDA_12 = 388  # offset in bytes of multiProcessorCount in cudaDeviceProp
HOST_CYCLES = 4_000_000  # of the GPU: longer than the host needs for one call of either
MASK = ("max_attn_len", "contextual_seq_len", "sla_k1", "sla_k2")


def read_cells(path):
    text = re.sub(r"^\s*//.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    read = json.loads(text)
    return read if isinstance(read, list) else [{**read.get("defaults", {}), **op} for op in read["ops"]]


class Call:
    """Tensors of a cell, and both ways to compute it."""

    def __init__(self, cell):
        torch.manual_seed(0)
        self.cell, self.dtype = cell, cell.get("dtype", "bf16")
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[self.dtype]
        lengths = torch.tensor(cell["lengths"])
        heads, self.max_seq_len = cell["heads"], cell["max_seq_len"]
        self.alpha = cell.get("alpha", 1 / cell["attn_dim"])
        self.mask = {name: cell.get(name, 0) for name in MASK}
        self.offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).cuda()
        rows, targets = int(lengths.sum()), int(cell.get("num_targets", 0))
        self.targets = lengths.clamp(max=targets).cuda() if targets else None

        def tensor(columns):
            return torch.randn(rows, heads, columns, dtype=dtype, device="cuda")

        self.q, self.k = tensor(cell["attn_dim"]), tensor(cell["attn_dim"])
        self.v, self.dout = tensor(cell["hidden_dim"]), tensor(cell["hidden_dim"])

    def own(self):
        import hstujit.torch  # registers the operators

        ops, common = torch.ops.hstujit, (self.offsets, self.max_seq_len, self.alpha, self.targets)
        qkv = (self.q, self.k, self.v)
        return (lambda: ops.hstu_attention(*qkv, *common, **self.mask),
                lambda: ops.hstu_attention_backward(*qkv, self.dout, *common, **self.mask)[:3])

    def public(self):
        """None under a mask that the operator does not have."""
        if self.mask["sla_k1"] or self.mask["sla_k2"]:
            return None
        from generative_recommenders.ops.triton import triton_hstu_attention as triton

        gradients = [torch.empty_like(tensor) for tensor in (self.q, self.k, self.v)]
        given = {"N": self.max_seq_len, "q": self.q, "k": self.k, "v": self.v, "seq_offsets": self.offsets, "alpha": self.alpha,
                 "num_targets": self.targets, "sort_by_length_indices": None, "enable_tma": False, "num_softmax_heads": 0,
                 "dout": self.dout, **dict(zip(("dq", "dk", "dv"), gradients, strict=True)), **self.mask}

        def call(function):
            # Selects the arguments that the function takes: not every version has all.
            names = inspect.signature(getattr(function, "_init_fn", function)).parameters
            return function(**{name: given[name] for name in names})

        def backward():
            call(triton.triton_hstu_attention_bwd)
            return gradients

        return lambda: call(triton.triton_hstu_attention_fwd), backward

    def fbgemm(self):
        """None under a mask that these kernels do not have, and for widths that differ."""
        if self.mask["sla_k1"] or self.mask["sla_k2"] or self.q.shape[2] != self.v.shape[2]:
            return None
        offsets, sequences = self.offsets.int(), len(self.offsets) - 1
        contexts = self.mask["contextual_seq_len"]
        given = (offsets, offsets, self.max_seq_len, self.max_seq_len,
                 torch.full((sequences,), contexts, dtype=torch.int32, device="cuda") if contexts else None,
                 None if self.targets is None else self.targets.int(), 1, self.mask["max_attn_len"] or -1, 0, self.alpha)
        ops = torch.ops.fbgemm
        return (lambda: ops.hstu_varlen_fwd_90(self.q, self.k, self.v, *given)[0],
                lambda: ops.hstu_varlen_bwd_90(self.dout, self.q, self.k, self.v, *given)[:3])

    def ways(self, options):
        """Forward and backward by name, each a function of a launch."""
        ways = {"hstujit": self.own(), "triton": self.public() if options.generative_recommenders else None,
                "fbgemm": self.fbgemm() if options.fbgemm else None}
        return {name: launches for name, launches in ways.items() if launches}

    def reference(self):
        inputs = [tensor.detach().double().requires_grad_() for tensor in (self.q, self.k, self.v)]
        out = attention(*inputs, self.offsets, self.max_seq_len, self.alpha, self.targets, **self.mask)
        return {"forward": [out.detach()], "gradients": list(torch.autograd.grad(out, inputs, self.dout.double()))}


def load_fbgemm(folder):
    """Registers the operators of torch.ops.fbgemm. The library wants CUDA 12's runtime, wherever that is.

    It asks PyTorch how many multiprocessors there are. Of a PyTorch of CUDA 13, whose cudaDeviceProp has no clockRate and no
    deviceOverlap, it reads `integrated` in place of that, and launches no CTA; so the number is written there.
    """
    ctypes.CDLL(next(folder.rglob("libcudart.so.12")), mode=ctypes.RTLD_GLOBAL)
    torch.ops.load_library(next(folder.rglob("fbgemm_gpu_experimental_hstu.so")))
    if int(torch.version.cuda.split(".")[0]) >= 13:
        properties = ctypes.CDLL("libtorch_cuda.so", mode=os.RTLD_NOLOAD)._ZN2at4cuda26getCurrentDevicePropertiesEv
        properties.restype = ctypes.c_void_p
        torch.cuda.init()
        count = torch.cuda.get_device_properties(0).multi_processor_count
        ctypes.c_int.from_address(properties() + MULTIPROCESSORS_OF_CUDA_12).value = count


def time_cell(cell, options):
    """Prints a line of JSON for each time that it has taken: the process may end before the next one."""
    call, agreement = Call(cell), Agreement()
    reference = call.reference()
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    ways = call.ways(options)
    for place, (direction, kind) in enumerate((("forward", "forward"), ("backward", "gradients"))):
        compared = {"name": cell["name"]}
        for way, launches in ways.items():
            launch = launches[place]
            found = launch()
            found = list(found) if isinstance(found, (tuple, list)) else [found]
            if agreement.check(compared, way, call.dtype, {kind: found}, {kind: reference[kind]}):
                compared[way] = time_of(launch, flush, options.repeats, HOST_CYCLES)
            print(json.dumps({direction: {name: value for name, value in compared.items() if name != "name"}}), flush=True)


def in_a_process(cell, options):
    """Output of a process of its own for a cell, and why it ended, if it did before its time."""
    command = [sys.executable, __file__, "--repeats", str(options.repeats), "--cell", "-"]
    for name, value in (("--generative-recommenders", options.generative_recommenders), ("--fbgemm", options.fbgemm)):
        command += [name, str(value)] if value else []
    result = {"name": cell["name"], "rows": sum(cell["lengths"])}
    found, error = printed_by(command, json.dumps(cell), options.timeout)
    for times in found:
        for direction, of_direction in times.items():
            result.setdefault(direction, {}).update(of_direction)
    if error:
        result["ended"] = error
        print(f"{cell['name']}: {error}", file=sys.stderr)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generative-recommenders", metavar="CHECKOUT", help="a checkout of the public package")
    parser.add_argument("--fbgemm", type=pathlib.Path, metavar="FOLDER", help="unpacked wheels of NVIDIA's kernels")
    parser.add_argument("--config", type=pathlib.Path, default=GRID)
    parser.add_argument("--op", default="", metavar="REGEX", help="only cells whose name has a match")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--timeout", type=int, default=180, help="seconds for a cell, most of which Triton tunes")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.generative_recommenders and not options.fbgemm:
        parser.error("there is no peer; give --generative-recommenders, --fbgemm or both")
    if options.cell:
        if options.generative_recommenders:
            sys.path.insert(0, options.generative_recommenders)
        if options.fbgemm:
            load_fbgemm(options.fbgemm)
        time_cell(json.load(sys.stdin), options)
        return 0
    cells = [cell for cell in read_cells(options.config) if re.search(options.op, cell["name"])]
    results = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("attention_peers: told to stop; what was timed is written"))
    try:
        for cell in cells:
            results.append(in_a_process(cell, options))
    finally:
        write_report(sys.stdout, results)
    wrong = [f"{cell['name']}: {reason}" for cell in results for direction in ("forward", "backward")
             for reason in cell.get(direction, {}).get("not_compared", {}).values()]
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
