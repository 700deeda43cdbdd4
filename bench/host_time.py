#!/usr/bin/env python3
"""Host time of calls through torch.ops.hstujit, beside torch.add in the same run.

    bench/host_time.py [--repeats N]

On a GPU calls are launched there, fewer at a time than the queue of launches holds. Without one, or with --cpu:

- with HSTUJIT_FAKE_CUDA and HSTUJIT_FAKE_TORCH, libraries of a build (build/release/test_libraries), tensors of the CPU
  take the way of those of a GPU, to a driver that computes nothing.
- else the host backend computes; tensors have one row, so that there is little to compute.

Each time is the least of N repeats of 50 calls: what a call takes on a core that does nothing else.
"""

import argparse
import ctypes
import os
import tempfile
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=200, help="of 50 calls each; the least counts")
    parser.add_argument("--cpu", action="store_true", help="also where there is a GPU")
    options = parser.parse_args()

    import torch

    on_gpu = torch.cuda.is_available() and not options.cpu
    fakes = os.environ.get("HSTUJIT_FAKE_CUDA"), os.environ.get("HSTUJIT_FAKE_TORCH")
    is_fake = all(fakes) and not on_gpu
    if is_fake:
        os.environ["HSTUJIT_CUDA_DRIVER"] = fakes[0]
        os.environ["HSTUJIT_CACHE_DIR"] = tempfile.mkdtemp()

    import hstujit.torch

    where = "a GPU" if on_gpu else "the host backend"
    one = torch.ones(1, device="cuda" if on_gpu else "cpu")
    if is_fake:
        pretend(*fakes)
        where = "a driver that computes nothing"
    print(f"PyTorch {torch.__version__}, {where}")
    for name, call in calls(torch, one.device, torch.bfloat16 if on_gpu or is_fake else torch.float32).items():
        print(f"{name:36} {time_of(torch, call, options.repeats, on_gpu) * 1e6:6.1f} us")


def pretend(driver, functions):
    """Makes tensors of the CPU those of a GPU for the package, and the driver's context this thread's."""
    from hstujit.torch import _native

    context, opened = ctypes.c_void_p(), ctypes.CDLL(driver)
    opened.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    opened.cuCtxPushCurrent_v2(context)
    used = _native.native_library().library.hstujit_torch_functions
    used.restype = ctypes.c_void_p
    ctypes.CDLL(functions).fake_torch_install(ctypes.c_void_p(used()))


def calls(torch, device, dtype):
    ops = torch.ops.hstujit
    q, k, v = (torch.randn(1, 1, 64, device=device, dtype=dtype) for _ in range(3))
    rest = (torch.tensor([0, 1], device=device), 16, 0.125)
    leaf = q.clone().requires_grad_()
    x, weight, bias = torch.randn(1, 64, device=device), torch.ones(64, device=device), torch.zeros(64, device=device)
    x_leaf = x.clone().requires_grad_()
    out, one = torch.ones_like(q), torch.ones(1, device=device)
    one_leaf = one.clone().requires_grad_()
    return {
        "torch.add": lambda: torch.add(one, one),
        "torch.add, recorded": lambda: torch.add(one_leaf, one),
        "torch.add, forward and backward": lambda: torch.autograd.grad(torch.add(one_leaf, one), one_leaf, one),
        "hstu_attention": lambda: ops.hstu_attention(q, k, v, *rest),
        "hstu_attention, recorded": lambda: ops.hstu_attention(leaf, k, v, *rest),
        "hstu_attention, forward and backward": lambda: torch.autograd.grad(
            ops.hstu_attention(leaf, k, v, *rest), leaf, out
        ),
        "layer_norm": lambda: ops.layer_norm(x, weight, bias),
        "layer_norm, recorded": lambda: ops.layer_norm(x_leaf, weight, bias),
        "layer_norm, forward and backward": lambda: torch.autograd.grad(
            ops.layer_norm(x_leaf, weight, bias), x_leaf, x
        ),
    }


def time_of(torch, call, repeats, on_gpu):
    for _ in range(20):
        call()
    best = float("inf")
    for _ in range(repeats):
        if on_gpu:
            torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(50):
            call()
        best = min(best, (time.perf_counter() - begin) / 50)
    return best


if __name__ == "__main__":
    main()
