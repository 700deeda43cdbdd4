#!/usr/bin/env python3
"""Times what other libraries have for the operators of bench/rows.json, on one GPU: PyTorch, torch.compile of it, and the public
Triton operators of Generative Recommenders where a checkout of them is named. Beside them cudaMemcpyAsync, device to device, of as
many bytes as the operator has to read and write.

    bench/row_peers.py [--config FILE] [--op REGEX] [--generative-recommenders CHECKOUT] [--repeats N] > row_peers.json

Times are medians in ms, with the L2 cache emptied before each launch, and the time of the host hidden behind that. Backward is
torch.autograd.grad over inputs, weight and bias. Weights are of the type of rows: PyTorch has no other. What fails is told on stderr
and left out. A way that differs from PyTorch's formula in float64, all without dropout, is not timed (bench/agreement.py).
"""

import argparse
import json
import pathlib
import re
import signal
import statistics
import sys

import torch
import torch.nn.functional as F
from agreement import Agreement

EPS = 1e-6
DROPOUT = 0.1
FLUSH_BYTES = 1 << 30  # takes longer than the host needs to enqueue what is timed


def read_instances(path):
    text = re.sub(r"^\s*//.*$", "", pathlib.Path(path).read_text(encoding="utf-8"), flags=re.MULTILINE)
    config = json.loads(text)
    return [{**config.get("defaults", {}), **op} for op in config["ops"]]


def norm(op, x, weight, bias):
    if op.get("group_norm"):
        return F.group_norm(x.view(len(x), op["heads"], -1), op["heads"], weight, bias, EPS).view(x.shape)
    if op["op"] == "rms_norm" or op.get("norm") == "rms":
        return F.rms_norm(x, x.shape[1:], weight, EPS)
    return F.layer_norm(x, x.shape[1:], weight, bias, EPS)


def by_pytorch(op):
    def layer(x, u, weight, bias):
        y = norm(op, x, weight, bias)
        if op["op"] == "rms_norm" and op.get("silu"):
            return F.silu(y)
        if op["op"] == "swish_layer_norm":
            return x * torch.sigmoid(y)
        if op["op"] != "hstu_norm_mul_dropout":
            return y
        parts = ([u] if op.get("concat_u") else []) + ([x] if op.get("concat_x") else []) + [u * y]
        return F.dropout(torch.cat(parts, 1) if len(parts) > 1 else parts[0], DROPOUT if op.get("dropout") else 0.0)

    return layer


def by_triton(op):
    """The public operator, None where it has no such variant."""
    from generative_recommenders.ops.triton import triton_hstu_linear, triton_layer_norm

    if op["op"] == "layer_norm":
        return lambda x, u, weight, bias: triton_layer_norm.triton_layer_norm(x, weight, bias, EPS)
    if op["op"] == "rms_norm":
        return lambda x, u, weight, bias: triton_layer_norm.triton_rms_norm(x, weight, EPS, bool(op.get("silu")))
    if op["op"] == "swish_layer_norm":
        return lambda x, u, weight, bias: triton_layer_norm.triton_swish_layer_norm(x, [x.shape[1]], weight, bias, EPS)
    if op.get("norm", "layer_norm") != "layer_norm" or bool(op.get("concat_u")) != bool(op.get("concat_x")):
        return None
    both, heads = bool(op.get("concat_u")), op.get("heads", 1)
    return lambda x, u, weight, bias: triton_hstu_linear.triton_norm_mul_dropout(
        x, u, weight, bias, EPS, DROPOUT if op.get("dropout") else 0.0, True, False, both, both, bool(op.get("group_norm")), heads,
        x.shape[1] // heads)


def time_of(launch, flush, repeats, host_cycles=0):
    """Median of ``repeats`` launches in ms. The GPU waits ``host_cycles`` before each: what the host takes beyond a flush."""
    times = []
    for _ in range(repeats + 3):
        flush.zero_()
        if host_cycles:
            torch.cuda._sleep(host_cycles)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        launch()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return round(statistics.median(times[3:]), 5)


def time_copy(size, flush, repeats):
    source = torch.empty(size // 2, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return time_of(lambda: target.copy_(source), flush, repeats)


def report_alone():
    """stdout, for the report: what a library prints goes to stderr from now on."""
    report, sys.stdout = sys.stdout, sys.stderr
    return report


def write_report(report, times):
    json.dump({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "times": times}, report, indent=1)
    print(file=report)


def outcome(layer, inputs, seed=0):
    """Outputs, and the gradients of what `layer` is a function of; the outputs' gradients are the same for the same seed."""
    outputs = layer()
    outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    generator = torch.Generator(outputs[0].device).manual_seed(seed)
    gradients = [torch.randn(out.shape, generator=generator, device=out.device).bfloat16().to(out.dtype) for out in outputs]
    return {"forward": [out.detach() for out in outputs], "gradients": list(torch.autograd.grad(outputs, inputs, gradients, retain_graph=True))}


def time_instance(op, ways, flush, repeats, agreement):
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[op.get("dtype", "bf16")]
    rows, width = op["rows"], op["width"]
    groups = op.get("heads") if op.get("group_norm") else None
    x, u = (torch.randn(rows, width, dtype=dtype, device="cuda", requires_grad=True) for _ in range(2))
    weight, bias = (torch.randn(groups or width, dtype=dtype, device="cuda", requires_grad=True) for _ in range(2))
    has_u = op["op"] == "hstu_norm_mul_dropout"
    inputs = [x] + ([u] if has_u else []) + [weight] + ([] if "rms_norm" in (op["op"], op.get("norm")) else [bias])
    result = {"name": op["name"]}
    columns = 1 + bool(op.get("concat_u")) + bool(op.get("concat_x"))
    row_bytes = rows * width * x.element_size()
    result["copy_ms"] = {"forward": time_copy((1 + has_u + columns) * row_bytes, flush, repeats),
                         "backward": time_copy((2 * (1 + has_u) + columns) * row_bytes, flush, repeats)}
    tensors = (x, u, weight, bias)
    exact = {id(tensor): tensor.detach().double().requires_grad_() for tensor in tensors}
    plain = {**op, "dropout": False}  # the ways draw different masks
    reference = outcome(lambda: by_pytorch(plain)(*exact.values()), [exact[id(tensor)] for tensor in inputs])
    del exact
    for way, make in ways.items():
        try:
            layer = make(plain)
            if layer is None:
                continue
            same = outcome(lambda: layer(*tensors), inputs)  # noqa: B023
            if not agreement.check(result, way, op.get("dtype", "bf16"), same, reference):
                continue
            del same
            layer = make(op)
            out = layer(x, u, weight, bias)
            dout = torch.randn_like(out)
            torch.autograd.grad(out, inputs, dout, retain_graph=True)
            with torch.no_grad():
                forward = time_of(lambda: layer(x, u, weight, bias), flush, repeats)
            backward = time_of(lambda: torch.autograd.grad(out, inputs, dout, retain_graph=True), flush, repeats)
            result[way] = {"forward": forward, "backward": backward}
        except Exception as error:  # the others are timed all the same
            print(f"{op['name']} by {way}: {str(error).splitlines()[0] if str(error) else type(error).__name__}", file=sys.stderr)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default=pathlib.Path(__file__).parent / "rows.json")
    parser.add_argument("--op", default="", metavar="REGEX", help="only instances whose name has a match")
    parser.add_argument("--generative-recommenders", metavar="CHECKOUT")
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    report = report_alone()
    ways = {"pytorch": by_pytorch, "torch_compile": lambda op: torch.compile(by_pytorch(op), dynamic=False)}
    if options.generative_recommenders:
        sys.path.insert(0, options.generative_recommenders)
        ways["triton"] = by_triton
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    times, agreement = [], Agreement()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("row_peers: told to stop; what was timed is written"))
    try:
        for op in read_instances(options.config):
            if not re.search(options.op, op["name"]):
                continue
            torch._dynamo.reset()
            times.append(time_instance(op, ways, flush, options.repeats, agreement))
            torch.cuda.empty_cache()
    finally:
        write_report(report, times)
    return agreement.exit_code()


if __name__ == "__main__":
    sys.exit(main())
