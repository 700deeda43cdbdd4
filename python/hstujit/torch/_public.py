"""What replaces which functions of the public HSTU packages, and which of their calls no operator here serves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from . import generative_recommenders, tzrec

Function = Callable[..., Any]
Given = dict[str, Any]


@dataclass(frozen=True)
class Substitute:
    """A function in place of one of a package; ``refuses`` says of a call's arguments why it is not ours, or ""."""

    function: Function
    refuses: Callable[[Given], str]


def _nothing(given: Given) -> str:
    return ""


def _tensors(given: Given, *names: str) -> list[torch.Tensor]:
    """Those that are given; torch.fx has others in place of tensors while it traces."""
    return [given[name] for name in names if isinstance(given.get(name), torch.Tensor)]


def _attention(given: Given) -> str:
    if given.get("attn_func") is not None:
        return "masks of a tensor"
    if given.get("dropout_pr", 0) > 0 and given.get("training", True):
        return "dropout of attention"
    for tensor in _tensors(given, "q", "delta_q", "k", "v"):
        if tensor.shape[-1] % 8 != 0 or tensor.shape[-1] > 256:
            return "a head dimension that is no multiple of 8 up to 256"
    return ""


def _delta_attention(given: Given) -> str:
    tensors = _tensors(given, "delta_q", "k", "v")
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return "a derivative of delta attention"
    return _attention(given)


def _products(given: Given, *names: str) -> str:
    tensors = _tensors(given, *names)
    if len(tensors) < len(names):
        return "a product while torch.fx traces"
    if any(tensor.dtype not in (torch.bfloat16, torch.float16, torch.float32) for tensor in tensors):
        return "a product of other types than bf16, fp16 and fp32"
    if any(tensor.dtype != tensors[0].dtype for tensor in tensors):
        return "a product of different types"
    if any(size % 8 != 0 or not 8 <= size <= 65536 for tensor in tensors for size in tensor.shape[1:]):
        return "a product with a size that is no multiple of 8"
    if any(tensor.is_cuda and torch.cuda.get_device_properties(tensor.device).major < 8 for tensor in tensors):
        return "a product on a GPU before Ampere"
    return ""


def _addmm(given: Given) -> str:
    reason = _products(given, "input", "mat1", "mat2")
    if reason:
        return reason
    rows, columns, added = given["mat1"].shape[0], given["mat2"].shape[1], given["input"]
    if tuple(added.shape) not in ((columns,), (rows, columns)) or columns % 8 != 0:
        return "an input that is neither a row nor a matrix of the result"
    return ""


def _jagged_dense_bmm(given: Given) -> str:
    return _products(given, "jagged", "dense", "bias")


def _uqvk(given: Given) -> str:
    reason = _products(given, "x", "uvqk_weight", "uvqk_bias")
    if reason:
        return reason
    if given["num_heads"] * given["hidden_dim"] > 16384:
        return "more than 16384 columns of u"
    if any(given[name] % 8 != 0 or given[name] > 256 for name in ("attn_dim", "hidden_dim")):
        return "a head dimension that is no multiple of 8 up to 256"
    return _attention(given)


def _compute_output(given: Given) -> str:
    reason = _products(given, "attn", "u", "x", "output_weight")
    if reason:
        return reason
    if given["linear_dim"] % 8 != 0 or not 8 <= given["linear_dim"] <= 256 or given["x"].shape[1] > 16384:
        return "a head dimension that is no multiple of 8 up to 256"
    return ""


# By module of the operators and function: which calls are not ours.
_REFUSALS: dict[str, dict[str, Callable[[Given], str]]] = {
    "ops.hstu_attention": {"hstu_mha": _attention, "hstu_mha_cuda": _attention, "delta_hstu_mha": _delta_attention},
    "ops.hstu_compute": {
        "hstu_compute_uqvk": _uqvk,
        "hstu_preprocess_and_attention": _uqvk,
        "hstu_compute_output": _compute_output,
    },
    "ops.jagged_tensors": {
        "concat_2D_jagged": _nothing,
        "concat_2D_jagged_multirow": _nothing,
        "split_2D_jagged": _nothing,
        "split_2D_jagged_multirow": _nothing,
        "hstu_split_l2_embeddings": _nothing,
        "hstu_concat_l2_embeddings": _nothing,
        "jagged_dense_bmm_broadcast_add": _jagged_dense_bmm,
    },
    "ops.layer_norm": {"layer_norm": _nothing, "rms_norm": _nothing, "swish_layer_norm": _nothing},
    "ops.mm": {"addmm": _addmm},
    "ops.position": {"add_positional_embeddings": _nothing, "add_timestamp_positional_embeddings": _nothing},
}


def _substitutes(namespace: ModuleType) -> dict[str, dict[str, Substitute]]:
    return {
        module: {
            name: Substitute(getattr(namespace, name), refuses)
            for name, refuses in functions.items()
            if name in namespace.__all__
        }
        for module, functions in _REFUSALS.items()
    }


# By package: the modules of its operators, and what replaces which function of them.
PACKAGES = {
    name: _substitutes(namespace)
    for name, namespace in (("generative_recommenders", generative_recommenders), ("tzrec", tzrec))
}
