"""Layers of HSTU as modules, with the configuration, parameter names and calls of the public package."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from ..errors import InvalidArgumentError
from .functional import complete_cumsum, split_2D_jagged

_ops = torch.ops.hstujit
_EPS = 1e-6


@dataclass
class STULayerConfig:
    """Of one layer.

    Attributes:
        embedding_dim: elements of a row of x, a multiple of 8.
        num_heads: heads of attention.
        hidden_dim: head dimension of v and u, a multiple of 8.
        attention_dim: head dimension of q and k, a multiple of 8.
        output_dropout_ratio: of the elements that become 0 in training.
        target_aware: whether the last rows of a sequence, as many as ``num_targets``, do not see each other.
        max_attn_len: a window of so many rows; None: none.
        attn_alpha: what dot products are multiplied by; None: 1 / sqrt(attention_dim).
        use_group_norm: whether heads of the attention output are normalised apart.
        recompute_normed_x, recompute_y: whether backward computes it again, for less memory.
        recompute_uvqk: taken, and without effect: the projection is always computed again.
        sort_by_length: taken, and without effect.
        contextual_seq_len: leading rows that see the whole history.
    """

    embedding_dim: int
    num_heads: int
    hidden_dim: int
    attention_dim: int
    output_dropout_ratio: float = 0.3
    causal: bool = True
    target_aware: bool = True
    max_attn_len: int | None = None
    attn_alpha: float | None = None
    use_group_norm: bool = False
    recompute_normed_x: bool = True
    recompute_uvqk: bool = True
    recompute_y: bool = True
    sort_by_length: bool = True
    contextual_seq_len: int = 0


class STULayer(torch.nn.Module):
    """A layer in one call: ``stu_layer`` of docs/ops.md, and over a cache ``cached_stu_layer``.

    x is bf16 or fp16. Parameters may be fp32: they are rounded to the type of x, as in the public package. On a GPU it
    needs Hopper.
    """

    def __init__(self, config: STULayerConfig, is_inference: bool = False) -> None:
        super().__init__()
        self.config, self.is_inference = config, is_inference
        v, qk = config.num_heads * config.hidden_dim, config.num_heads * config.attention_dim
        self._columns = v, qk
        self._alpha = config.attn_alpha or config.attention_dim**-0.5
        normed = config.num_heads if config.use_group_norm else v
        self._uvqk_weight = torch.nn.Parameter(torch.empty(config.embedding_dim, 2 * (v + qk)))
        self._uvqk_beta = torch.nn.Parameter(torch.zeros(2 * (v + qk)))
        self._input_norm_weight = torch.nn.Parameter(torch.ones(config.embedding_dim))
        self._input_norm_bias = torch.nn.Parameter(torch.zeros(config.embedding_dim))
        self._output_weight = torch.nn.Parameter(torch.empty(3 * v, config.embedding_dim))
        self._output_norm_weight = torch.nn.Parameter(torch.ones(normed))
        self._output_norm_bias = torch.nn.Parameter(torch.zeros(normed))
        torch.nn.init.xavier_uniform_(self._uvqk_weight)
        torch.nn.init.xavier_uniform_(self._output_weight)
        self.reset_kv_cache()

    def _check_columns(self, name: str, rows: torch.Tensor) -> None:
        wanted = self.config.embedding_dim
        if rows.dim() == 2 and rows.size(1) != wanted:
            raise InvalidArgumentError(f"{name} has {rows.size(1)} columns; it must have {wanted}, the embedding_dim")

    def reset_kv_cache(self) -> None:
        self.k_cache: torch.Tensor | None = None
        self.v_cache: torch.Tensor | None = None
        self.kv_caching_offsets: torch.Tensor | None = None
        self.max_kv_caching_len = 0

    def forward(
        self,
        x: torch.Tensor,
        x_lengths: torch.Tensor,
        x_offsets: torch.Tensor,
        max_seq_len: int,
        num_targets: torch.Tensor | None = None,
        max_kv_caching_len: int = 0,
        kv_caching_lengths: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """A layer over all rows.

        Args:
            x: (L, embedding_dim), the rows of all sequences.
            x_lengths: (B), not read: ``x_offsets`` says it.
            x_offsets: (B + 1), where sequences begin.
            max_seq_len: no sequence has more rows.
            num_targets: (B), targets at the end of each sequence.
            max_kv_caching_len: the longest of ``kv_caching_lengths``; 0: read from them.
            kv_caching_lengths: (B), first rows of each sequence whose k and v are kept for :meth:`cached_forward`; a
                prefill, without derivatives.

        Returns:
            (L, embedding_dim).
        """
        config, prefill = self.config, kv_caching_lengths is not None
        self._check_columns("x", x)
        if prefill and torch.is_grad_enabled():
            raise InvalidArgumentError(
                "kv_caching_lengths is given, for a prefill; it has no derivative: torch.no_grad()"
            )
        ratio = config.output_dropout_ratio if self.training else 0.0
        dropout = {}
        if ratio > 0:
            dropout = {"dropout_ratio": ratio, "seed": int(torch.randint(2**62, (1,)).item()), "offset": 0}
        training = torch.is_grad_enabled()  # in eval mode, too: dropout apart, a layer has a derivative there
        out, *kept = _ops.stu_layer(
            x=x,
            seq_offsets=x_offsets,
            max_seq_len=max_seq_len,
            **self._arguments(x, num_targets, x_offsets),
            **dropout,
            training=training or prefill,
            recompute_normed_x=prefill or config.recompute_normed_x,
            recompute_uvqk=not prefill,
            recompute_y=prefill or config.recompute_y,
        )
        if prefill:
            v, qk = self._columns
            uvqk = next(tensor for tensor in kept if tensor.dim() == 2 and tensor.size(1) == 2 * (v + qk))
            self._keep(uvqk[:, 2 * v + qk :], uvqk[:, v : 2 * v], x_offsets, max_kv_caching_len, kv_caching_lengths)
        return out

    def cached_forward(
        self,
        delta_x: torch.Tensor,
        num_targets: torch.Tensor | None = None,
        max_kv_caching_len: int = 0,
        kv_caching_lengths: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """A layer over as many new rows of each sequence, behind those that a prefill has kept.

        Args:
            delta_x: (B * new rows, embedding_dim).
            num_targets: (B), targets at the end of each sequence, new rows included.
            kv_caching_lengths: (B), rows of each sequence that are kept from now on; None: the cache stays as it is.

        Returns:
            (B * new rows, embedding_dim).
        """
        if self.k_cache is None or self.v_cache is None or self.kv_caching_offsets is None:
            raise InvalidArgumentError("there is no cache: forward with kv_caching_lengths makes it")
        self._check_columns("delta_x", delta_x)
        offsets = self.kv_caching_offsets
        batch = offsets.numel() - 1
        new_rows = delta_x.size(0) // max(batch, 1)
        seq_offsets = offsets + new_rows * torch.arange(batch + 1, device=offsets.device, dtype=offsets.dtype)
        full_k, full_v, out = _ops.cached_stu_layer(
            x=delta_x,
            k_cache=self.k_cache,
            v_cache=self.v_cache,
            kv_caching_offsets=offsets,
            max_delta_len=new_rows,
            seq_offsets=seq_offsets,
            max_seq_len=self.max_kv_caching_len + new_rows,
            **self._arguments(delta_x, num_targets, offsets),
            full_k_rows=self.k_cache.size(0) + delta_x.size(0),
        )
        if kv_caching_lengths is not None:
            self._keep(full_k, full_v, seq_offsets, max_kv_caching_len, kv_caching_lengths)
        return out

    def _arguments(self, x: torch.Tensor, num_targets: torch.Tensor | None, offsets: torch.Tensor) -> dict[str, object]:
        """What both operators take of the layer. Weights of norms are rounded, too, as the public layer's are."""
        config = self.config
        if num_targets is not None:
            num_targets = num_targets.to(offsets.dtype) if config.target_aware else None
        return {
            "input_norm_weight": self._input_norm_weight.to(x.dtype),
            "input_norm_bias": self._input_norm_bias.to(x.dtype),
            "uvqk_weight": self._uvqk_weight.to(x.dtype),
            "uvqk_bias": self._uvqk_beta.to(x.dtype),
            "output_weight": self._output_weight.to(x.dtype),
            "output_norm_weight": self._output_norm_weight.to(x.dtype),
            "output_norm_bias": self._output_norm_bias.to(x.dtype),
            "eps": _EPS,
            "num_targets": num_targets,
            "alpha": self._alpha,
            "heads": config.num_heads,
            "attn_dim": config.attention_dim,
            "hidden_dim": config.hidden_dim,
            "causal": config.causal,
            "max_attn_len": config.max_attn_len or 0,
            "contextual_seq_len": config.contextual_seq_len,
            "group_norm": config.use_group_norm,
        }

    def _keep(
        self,
        k: torch.Tensor,
        v: torch.Tensor,
        seq_offsets: torch.Tensor,
        max_kv_caching_len: int,
        kv_caching_lengths: torch.Tensor | None,
    ) -> None:
        """The first rows of each sequence."""
        assert kv_caching_lengths is not None
        offsets = complete_cumsum(kv_caching_lengths.to(seq_offsets.dtype))
        longest = max_kv_caching_len or int(kv_caching_lengths.max().item())
        rest = seq_offsets - offsets
        self.k_cache, _ = split_2D_jagged(longest, k, offsets_left=offsets, offsets_right=rest)
        self.v_cache, _ = split_2D_jagged(longest, v, offsets_left=offsets, offsets_right=rest)
        self.kv_caching_offsets, self.max_kv_caching_len = offsets, longest


class STUStack(torch.nn.Module):
    """Layers in order."""

    def __init__(self, stu_list: Iterable[STULayer], is_inference: bool = False) -> None:
        super().__init__()
        self.is_inference = is_inference
        self._stu_layers = torch.nn.ModuleList(stu_list)

    def forward(
        self,
        x: torch.Tensor,
        x_lengths: torch.Tensor,
        x_offsets: torch.Tensor,
        max_seq_len: int,
        num_targets: torch.Tensor | None = None,
        max_kv_caching_len: int = 0,
        kv_caching_lengths: torch.Tensor | None = None,
    ) -> torch.Tensor:
        for layer in self._stu_layers:
            x = layer(x, x_lengths, x_offsets, max_seq_len, num_targets, max_kv_caching_len, kv_caching_lengths)
        return x

    def cached_forward(
        self,
        delta_x: torch.Tensor,
        num_targets: torch.Tensor | None = None,
        max_kv_caching_len: int = 0,
        kv_caching_lengths: torch.Tensor | None = None,
    ) -> torch.Tensor:
        for layer in self._stu_layers:
            assert isinstance(layer, STULayer)
            delta_x = layer.cached_forward(delta_x, num_targets, max_kv_caching_len, kv_caching_lengths)
        return delta_x
