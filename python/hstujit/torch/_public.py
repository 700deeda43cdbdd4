"""What replaces which functions of the public HSTU packages, and which of their calls no operator here serves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from . import functional, functional_layer

Function = Callable[..., Any]
Given = dict[str, Any]


@dataclass(frozen=True)
class Substitute:
    """A function in place of one of a package; ``refuses`` says of a call's arguments why it is not ours, or ""."""

    function: Function
    refuses: Callable[[Given], str] = lambda given: ""


def _concat_with_length(
    max_seq_len: int,
    values_left: torch.Tensor,
    values_right: torch.Tensor,
    max_len_left: int | None = None,
    max_len_right: int | None = None,
    offsets_left: torch.Tensor | None = None,
    offsets_right: torch.Tensor | None = None,
    kernel: Any = None,
) -> torch.Tensor:
    return functional.concat_2D_jagged(
        values_left, values_right, max_len_left, max_len_right, offsets_left, offsets_right
    )


def _concat_multirow(
    max_seq_len: int,
    values_left: torch.Tensor,
    values_right: torch.Tensor,
    offsets_left: torch.Tensor | None,
    offsets_right: torch.Tensor | None,
    max_len_left: int,
    max_len_right: int,
    kernel: Any = None,
) -> torch.Tensor:
    return functional.concat_2D_jagged(
        values_left, values_right, max_len_left, max_len_right, offsets_left, offsets_right
    )


def _split_l2(
    max_seq_len: int,
    x: torch.Tensor,
    prefix_offsets: torch.Tensor,
    l2_offsets: torch.Tensor,
    contextual_seq_len: int,
    kernel: Any = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    return functional.split_2D_jagged(
        max_seq_len, x, offsets_left=prefix_offsets, offsets_right=l2_offsets, n_prefix_to_right=contextual_seq_len
    )


def _concat_l2(
    max_prefix_len: int,
    prefix_x: torch.Tensor,
    prefix_offsets: torch.Tensor,
    max_l2_len: int,
    l2_x: torch.Tensor,
    l2_offsets: torch.Tensor,
    contextual_seq_len: int,
    kernel: Any = None,
) -> torch.Tensor:
    return functional.concat_2D_jagged(
        prefix_x, l2_x, offsets_left=prefix_offsets, offsets_right=l2_offsets, n_prefix_from_right=contextual_seq_len
    )


def _compute_output_ux(
    attn: torch.Tensor,
    u: torch.Tensor,
    x: torch.Tensor,
    norm_weight: torch.Tensor,
    norm_bias: torch.Tensor,
    norm_eps: float,
    output_weight: torch.Tensor,
    num_heads: int,
    linear_dim: int,
    dropout_ratio: float,
    training: bool,
    concat_ux: bool,
    group_norm: bool,
    recompute_y_in_backward: bool,
    kernel: Any = None,
) -> torch.Tensor:
    return functional_layer.hstu_compute_output(
        attn,
        u,
        x,
        norm_weight,
        norm_bias,
        norm_eps,
        output_weight,
        num_heads,
        linear_dim,
        dropout_ratio,
        training,
        concat_ux,
        concat_ux,
        "none",
        group_norm,
        recompute_y_in_backward,
    )


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


_attention_functions = {
    "hstu_mha": Substitute(functional.hstu_mha, _attention),
    "delta_hstu_mha": Substitute(functional.delta_hstu_mha, _delta_attention),
}
_layer_functions = {
    "hstu_compute_uqvk": Substitute(functional_layer.hstu_compute_uqvk, _uqvk),
    "hstu_preprocess_and_attention": Substitute(functional_layer.hstu_preprocess_and_attention, _uqvk),
}
_norms = {
    "layer_norm": Substitute(functional.layer_norm),
    "rms_norm": Substitute(functional.rms_norm),
    "swish_layer_norm": Substitute(functional.swish_layer_norm),
}
_positions = {"add_timestamp_positional_embeddings": Substitute(functional.add_timestamp_positional_embeddings)}
_products_functions = {"addmm": Substitute(functional_layer.addmm, _addmm)}

# By package: the modules of its operators, and what replaces which function of them.
PACKAGES: dict[str, dict[str, dict[str, Substitute]]] = {
    "generative_recommenders": {
        "ops.hstu_attention": {**_attention_functions, "hstu_mha_cuda": Substitute(functional.hstu_mha, _attention)},
        "ops.hstu_compute": {
            **_layer_functions,
            "hstu_compute_output": Substitute(functional_layer.hstu_compute_output, _compute_output),
        },
        "ops.jagged_tensors": {
            "concat_2D_jagged": Substitute(_concat_with_length),
            "concat_2D_jagged_multirow": Substitute(_concat_multirow),
            "split_2D_jagged": Substitute(functional.split_2D_jagged),
            "split_2D_jagged_multirow": Substitute(functional.split_2D_jagged),
            "hstu_split_l2_embeddings": Substitute(_split_l2),
            "hstu_concat_l2_embeddings": Substitute(_concat_l2),
            "jagged_dense_bmm_broadcast_add": Substitute(
                functional_layer.jagged_dense_bmm_broadcast_add, _jagged_dense_bmm
            ),
        },
        "ops.layer_norm": _norms,
        "ops.mm": _products_functions,
        "ops.position": _positions,
    },
    "tzrec": {
        "ops.hstu_attention": _attention_functions,
        "ops.hstu_compute": {
            **_layer_functions,
            "hstu_compute_output": Substitute(_compute_output_ux, _compute_output),
        },
        "ops.jagged_tensors": {
            "concat_2D_jagged": Substitute(functional.concat_2D_jagged),
            "split_2D_jagged": Substitute(functional.split_2D_jagged),
        },
        "ops.layer_norm": _norms,
        "ops.mm": _products_functions,
        "ops.position": {
            **_positions,
            "add_positional_embeddings": Substitute(functional.add_positional_embeddings),
        },
    },
}
