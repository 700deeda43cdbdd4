#!/usr/bin/env python3
"""Times PyTorch's products, which are cuBLAS's, for the operators of bench/products.json on one GPU.

    bench/product_peers.py [--config FILE] [--op REGEX] [--repeats N] > product_peers.json

Each is timed by cuBLAS and by cuBLASLt, with a vector as the fused epilogue where there is one, and the shortest time counts. Times are
medians in ms, with the L2 cache emptied before each launch, and the time of the host hidden behind that.
"""

import argparse
import pathlib
import re

import torch
from row_peers import FLUSH_BYTES, read_instances, report_alone, time_of, write_report


def product(op):
    """A launch of what the operator computes; a transposed factor is a view."""
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[op.get("dtype", "bf16")]
    rows, k, n = op["rows"], op["k"], op["n"]
    mat1 = torch.randn(rows, k, dtype=dtype, device="cuda")
    if op["op"] == "addmm_wgrad":
        dout = torch.randn(rows, n, dtype=dtype, device="cuda")
        if op.get("bias"):
            return lambda: (torch.mm(mat1.t(), dout), dout.sum(0))
        return lambda: torch.mm(mat1.t(), dout)
    mat2 = torch.randn(n, k, dtype=dtype, device="cuda").t() if op.get("transpose_mat2") else torch.randn(k, n, dtype=dtype, device="cuda")
    if op.get("input", "none") == "none":
        return lambda: torch.mm(mat1, mat2)
    bias = torch.randn(n, dtype=dtype, device="cuda")
    return lambda: torch.addmm(bias, mat1, mat2)


def time_instance(op, flush, repeats):
    launch, times = product(op), {}
    torch.backends.cuda.matmul.allow_tf32 = op.get("precision", "tf32") == "tf32"  # of fp32 data alone
    for library in ("cublas", "cublaslt"):
        torch.backends.cuda.preferred_blas_library(library)
        times[library] = time_of(launch, flush, repeats)
    return {"name": op["name"], "ways": times, "pytorch": {"forward": min(times.values())}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default=pathlib.Path(__file__).parent / "products.json")
    parser.add_argument("--op", default="", metavar="REGEX", help="only instances whose name has a match")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    report = report_alone()
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    times = []
    for op in read_instances(options.config):
        if re.search(options.op, op["name"]):
            times.append(time_instance(op, flush, options.repeats))
            torch.cuda.empty_cache()
    write_report(report, times)


if __name__ == "__main__":
    main()
