"""Which tensors the kernels of an operator read in place.

The innermost stride is 1, and the address and all other strides are multiples of so many bytes. A launch checks that
(runtime/launch/arguments.cpp), and an operator refuses what fails.
"""

from __future__ import annotations

from typing import Any

import torch

from .._interface import Interface
from ._native import native_library
from ._schema import NAMESPACE

_INTEGERS = ("int32", "int64")


def alignments_of(described: Interface) -> dict[str, int]:
    """By name of each tensor, the bytes that its address and its outer strides are multiples of, at least.

    An operator with the parameter ``alignment`` has kernels for rows that begin at any element, and integers do. All
    else may be read in pieces of the largest alignment that the interface has, a bias, too, of some instances.
    """
    tensors = [argument for argument in described.inputs if argument.is_tensor]
    largest = 1 if described.alignment else max((argument.alignment for argument in tensors), default=1)
    return {argument.name: 1 if argument.dtype in _INTEGERS else largest for argument in tensors}


def are_strides_read(tensor: torch.Tensor, alignment: int) -> bool:
    """Whether a kernel can read the tensor wherever its data begins: what strides say."""
    if tensor.stride(-1) != 1 and tensor.size(-1) != 1:
        return False
    size = tensor.element_size()
    for axis in range(tensor.dim() - 1 if alignment > size else 0):
        if tensor.stride(axis) * size % alignment != 0 and tensor.size(axis) != 1:
            return False
    return True


def begins_aligned(tensor: torch.Tensor, alignment: int) -> bool:
    """Whether its data begins where a kernel can read it.

    While PyTorch traces there are no addresses. Then its place in its storage counts, and storages begin at aligned
    addresses: those of PyTorch's allocators do.
    """
    size = tensor.element_size()
    begin: Any = tensor.storage_offset() * size if is_traced(tensor) else tensor.data_ptr()
    return bool(begin % max(alignment, size) == 0)


def readable(tensor: torch.Tensor, alignment: int) -> torch.Tensor:
    """The tensor, or a copy of it that kernels can read. A gradient flows through the copy."""
    if tensor.dim() == 0:
        return tensor
    if not are_strides_read(tensor, alignment):
        return _copy(tensor)
    if torch.compiler.is_compiling():
        # torch.compile knows no place in a storage. It is known behind it, where this operator is decomposed.
        return _aligned(tensor, alignment) if alignment > tensor.element_size() else tensor
    return _kernel_of_aligned(tensor, alignment)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone(memory_format=torch.contiguous_format)


def _kernel_of_aligned(tensor: torch.Tensor, alignment: int) -> torch.Tensor:
    if begins_aligned(tensor, alignment):
        return tensor
    return _kept_copy(tensor) if is_traced(tensor) else _copy(tensor)


native_library()  # registers hstujit::_copy
library = torch.library.Library(NAMESPACE, "FRAGMENT")
# Inductor takes a clone with the sizes and strides of its tensor for the tensor, wherever that begins.
_kept_copy = torch.ops.hstujit._copy.default  # of libhstujit_torch.so
_kept_copy._tags = [*_kept_copy._tags, torch.Tag.pt2_compliant_tag]
torch.library.register_fake(f"{NAMESPACE}::_copy", lambda tensor: tensor.new_empty(tensor.shape), lib=library)
torch.library.register_autograd(f"{NAMESPACE}::_copy", lambda _, gradient: gradient, lib=library)
library.define("_aligned(Tensor tensor, int alignment) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
library.impl("_aligned", _kernel_of_aligned, "CompositeImplicitAutograd")
_aligned = torch.ops.hstujit._aligned


def is_traced(tensor: torch.Tensor | None = None) -> bool:
    """Whether calls are written down for later ones, with other tensors. A tensor may be one of those without data."""
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack():
        return True
    if tensor is None:
        return False
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return True
    # Tensors of torch.func's transforms, and of is_grads_batched, have the type of others.
    transforms = torch._C._functorch
    return transforms.is_functorch_wrapped_tensor(tensor) or transforms.is_legacy_batchedtensor(tensor)


__all__ = ["alignments_of", "is_traced", "readable"]
