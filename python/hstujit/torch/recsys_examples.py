"""The fused layer of NVIDIA's recsys-examples, whose ``FusedHSTULayer`` calls it.

It runs with this one by changing the import in ``modules/fused_hstu_layer.py``. docs/pytorch.md has the line.
"""

from __future__ import annotations

from typing import Any

import torch

from ._arguments import dropout_of, fp32_precision, weight_like
from ._calling import calling
from ._masks import masks_of
from ._schema import OPERATORS as _ops


@calling(
    "stu_layer",
    x="input",
    seq_offsets="seqlen_offsets",
    max_seq_len="max_seqlen",
    uvqk_weight="linear_uvqk_weight",
    uvqk_bias="linear_uvqk_bias",
    output_weight="linear_proj_weight",
    heads="num_heads",
    hidden_dim="linear_dim_per_head",
    attn_dim="attention_dim_per_head",
    eps="ln_eps",
    num_contexts="num_contextuals",
    contextual_seq_len="num_contextuals",
)
def fused_hstu_op(
    input: torch.Tensor, seqlen_offsets: torch.Tensor, max_seqlen: int, scaling_seqlen: int,
    linear_uvqk_weight: torch.Tensor, linear_uvqk_bias: torch.Tensor | None, linear_proj_weight: torch.Tensor,
    num_heads: int, linear_dim_per_head: int, attention_dim_per_head: int, ln_eps: float, dropout_ratio: float,
    training: bool, input_norm_weight: torch.Tensor | None = None, input_norm_bias: torch.Tensor | None = None,
    output_norm_weight: torch.Tensor | None = None, output_norm_bias: torch.Tensor | None = None,
    attn_backend: Any = None, num_targets: torch.Tensor | None = None,
    num_contextuals: int | torch.Tensor | None = None, target_group_size: int = 1, alpha: float = 1.0,
    causal: bool = True, seed: int | None = None, residual: bool = True, wgrad_stream: Any = None,
    wgrad_event: Any = None, recompute_input_layernorm: bool = False, recompute_input_silu: bool = False
) -> torch.Tensor:  # fmt: skip
    """A layer: norm, projection, silu of u, v, q and k, attention, norm of that times u, dropout, projection, residual.

    ``stu_layer`` of docs/ops-layers.md with ``silu_uvqk``. Norms without weights have ones, and no gradient of them.
    ``attn_backend``, the stream, the event and ``recompute_input_silu`` are taken, without effect: silu is always
    computed again.

    Returns:
        (L, hidden size).
    """
    norms = {}
    columns = {"input": input.shape[-1], "output": num_heads * linear_dim_per_head}
    given = {"input": (input_norm_weight, input_norm_bias), "output": (output_norm_weight, output_norm_bias)}
    for side, (weight, bias) in given.items():
        norms[f"{side}_norm_weight"] = weight_like(input.new_ones(columns[side]) if weight is None else weight, input)
        norms[f"{side}_norm_bias"] = weight_like(input.new_zeros(columns[side]) if bias is None else bias, input)
    return _ops.stu_layer(
        x=input,
        uvqk_weight=linear_uvqk_weight.to(input.dtype),
        uvqk_bias=None if linear_uvqk_bias is None else linear_uvqk_bias.to(input.dtype),
        output_weight=linear_proj_weight.to(input.dtype),
        seq_offsets=seqlen_offsets,
        max_seq_len=max_seqlen,
        alpha=alpha,
        eps=ln_eps,
        scaling_seqlen=scaling_seqlen,
        heads=num_heads,
        attn_dim=attention_dim_per_head,
        hidden_dim=linear_dim_per_head,
        causal=causal,
        target_group_size=target_group_size,
        silu_uvqk=True,
        residual=residual,
        concat_u=False,
        concat_x=False,
        precision=fp32_precision(),
        training=torch.is_grad_enabled(),
        recompute_normed_x=recompute_input_layernorm or not torch.is_grad_enabled(),
        recompute_uvqk=not torch.is_grad_enabled(),
        **norms,
        **masks_of(None, num_targets, 0 if num_contextuals is None else num_contextuals, seqlen_offsets),
        **dropout_of(dropout_ratio, training, input, seed),
    )[0]


__all__ = ["fused_hstu_op"]
