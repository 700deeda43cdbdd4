"""What replaces which functions of the public HSTU packages, and which of their calls no operator here serves.

Data types, sizes and numbers that no operator takes follow from its description (_limits.py). What a function takes
beyond its operator is here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .._interface import operators
from . import generative_recommenders, tzrec
from ._calling import Calling
from ._limits import Limits
from ._masks import build_sla_func_tensor, noting

Function = Callable[..., Any]
Given = Mapping[str, Any]


def _most(op: str, parameter: str) -> int:
    return operators()[op]["parameters"]["properties"][parameter]["maximum"]


# Of the operators that layers are made of: u and the attention output are rows of a norm, u, v, q and k of a product.
_ROW, _PRODUCT = _most("hstu_norm_mul_dropout", "width"), _most("addmm", "n")
_GROUPS = _most("hstu_norm_mul_dropout", "heads")


@dataclass(frozen=True)
class Substitute:
    """A function in place of one of a package.

    Attributes:
        refuses: says of a call's arguments why it is not ours, or "".
        beyond_limits: likewise of what the operator refuses itself. That is asked where no error can be caught, and
            behind an error: a call that is served is not slower for it.
        around: makes the new function of the package's own and of a counter of calls (_fallback.py), in place of one
            that calls ``function``.
    """

    function: Function
    refuses: Callable[[Given], str]
    beyond_limits: Callable[[Given], str]
    around: Callable[[Function, Callable[[str], None]], Function] | None = None


def _nothing(given: Given) -> str:
    return ""


def _tensors(given: Given, *names: str) -> list[torch.Tensor]:
    return [given[name] for name in names if isinstance(given.get(name), torch.Tensor)]


def _attention(given: Given) -> str:
    if given.get("attn_func") is not None and (given.get("max_attn_len") or given.get("min_full_attn_seq_len")):
        return "a window together with a mask tensor"
    return ""


def _products(given: Given) -> str:
    """Sizes are not known while torch.fx traces. Products of the package in PyTorch take all of them."""
    is_plain = getattr(given.get("kernel"), "name", None) == "PYTORCH"
    for value in given.values():
        if is_plain and isinstance(value, torch.fx.Proxy):
            return "a product in PyTorch while torch.fx traces"
        is_on_gpu = isinstance(value, torch.Tensor) and value.is_cuda
        if is_on_gpu and torch.cuda.get_device_properties(value.device).major < 8:
            return "a product on a GPU before Ampere"
    return ""


def _addmm(given: Given) -> str:
    tensors = _tensors(given, "input", "mat1", "mat2")
    if len(tensors) > 2 and all(matrix.dim() == 2 for matrix in tensors[1:]):
        added, mat1, mat2 = tensors
        if tuple(added.shape) not in ((mat2.shape[1],), (mat1.shape[0], mat2.shape[1])):
            return "an input that is neither a row nor a matrix of the result"
    return _products(given)


def _projection(given: Given) -> str:
    sizes = [given.get(name) for name in ("num_heads", "attn_dim", "hidden_dim")]
    integers = [size for size in sizes if isinstance(size, int)]
    if len(integers) == len(sizes):
        heads, attn_dim, hidden_dim = integers
        if heads * hidden_dim > _ROW or 2 * heads * (attn_dim + hidden_dim) > _PRODUCT:
            return "more columns of u, v, q and k than a projection has"
    return _products(given) or _attention(given)


def _compute_output(given: Given) -> str:
    heads, dim = given.get("num_heads"), given.get("linear_dim")
    if isinstance(heads, int) and isinstance(dim, int):
        if heads * dim > _ROW:
            return "more columns of u than a norm has"
        if given.get("group_norm") and heads > _GROUPS:
            return "more heads than a group norm has"
    return _products(given)


# By module of the operators: functions that are replaced.
_MODULES = {
    "ops.hstu_attention": ("hstu_mha", "hstu_mha_cuda", "delta_hstu_mha"),
    "ops.hstu_compute": ("hstu_compute_uqvk", "hstu_preprocess_and_attention", "hstu_compute_output"),
    "ops.jagged_tensors": (
        *("concat_2D_jagged", "concat_2D_jagged_multirow", "split_2D_jagged", "split_2D_jagged_multirow"),
        *("hstu_split_l2_embeddings", "hstu_concat_l2_embeddings", "jagged_dense_bmm_broadcast_add"),
    ),
    "ops.layer_norm": ("layer_norm", "rms_norm", "swish_layer_norm"),
    "ops.mm": ("addmm",),
    "ops.position": ("add_positional_embeddings", "add_timestamp_positional_embeddings"),
}
# By function: which calls are not ours, besides those that its operator refuses.
_REFUSALS: dict[str, Callable[[Given], str]] = {
    "hstu_mha": _attention,
    "hstu_mha_cuda": _attention,
    "delta_hstu_mha": _attention,
    "hstu_compute_uqvk": _projection,
    "hstu_preprocess_and_attention": _projection,
    "hstu_compute_output": _compute_output,
    "jagged_dense_bmm_broadcast_add": _products,
    "addmm": _addmm,
}
_MOVING = ("concat_2d_jagged", "split_2d_jagged")  # whose functions take integers, too


def _substitute(function: Function) -> Substitute:
    calling: Calling = function.calling  # type: ignore[attr-defined]
    refuses = _REFUSALS.get(function.__name__, _nothing)
    limits = Limits(calling, inspect.signature(function).parameters, moves=calling.operator in _MOVING)
    if calling.operator == "hstu_compute_output":  # which draws a seed before the operator can refuse anything
        return Substitute(function, lambda given: refuses(given) or limits.refuse(given), limits.refuse)
    return Substitute(function, refuses, limits.refuse)


# By package: the modules of its operators, and what replaces which function of them.
PACKAGES = {
    package: {
        module: {name: _substitute(getattr(namespace, name)) for name in names if name in namespace.__all__}
        for module, names in _MODULES.items()
    }
    for package, namespace in (("generative_recommenders", generative_recommenders), ("tzrec", tzrec))
}
_builder = Substitute(build_sla_func_tensor, _nothing, _nothing, noting)
PACKAGES["tzrec"]["ops.hstu_attention_utils"] = {"build_sla_func_tensor": _builder}
