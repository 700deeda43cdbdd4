"""Calls that do not go through PyTorch's dispatcher, whose reading of twenty arguments takes two of five us.

A function of libhstujit_torch.so, which Python calls as any of its own in C, reads tensors through PyTorch's
DLPackExchangeAPI, and launches (python/native/direct.cpp). Where anything but the operator's kernels has a say in a
call, autograd, a mode or a transform, where an argument is not of the plainest type, and where a call fails, a function
in Python is asked instead.
"""

from __future__ import annotations

import torch
from torch.autograd import forward_ad

from ._guards import guards, profilers, registered_kernels
from ._native import Library


def has_direct_calls(library: Library) -> bool:
    """Gives the library what such calls need. False where this PyTorch does not have it."""
    try:
        objects = {
            "none": None, "not_implemented": NotImplemented, "true_": True, "false_": False,
            "tensor": torch.Tensor, "parameter": torch.nn.Parameter, "float_": float, "int_": int, "str": str,
            "runtime_error": RuntimeError, "level_of": forward_ad, "level": "_current_level",
            "is_grad_enabled": torch.is_grad_enabled, "requires_grad": "requires_grad",
            "is_neg": torch.Tensor.is_neg, "kernels": registered_kernels,
            "tensors_from_handles": torch._C._aoti.alloc_tensors_by_stealing_from_void_ptrs,
            "exchange_api": torch.Tensor.__dlpack_c_exchange_api__,  # type: ignore[attr-defined]
            "profilers": profilers(), "guards": [*guards(), torch._C._is_any_autocast_enabled],
        }  # fmt: skip
    except AttributeError:
        return False
    return library.open_python(objects)
