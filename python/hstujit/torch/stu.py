"""Layers of HSTU as modules, with the configuration, parameter names and calls of the public package."""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from .._interface import interface
from .._words import shown
from ..errors import InvalidArgumentError, UnsupportedError
from ._arguments import contexts_of, dropout_of, integers_as
from ._calling import called_as
from ._kv_cache import Kept, last_rows_of
from ._layer_config import NAMES, Lengths, STULayerConfig, copy_of, instances_of, less_memory_of, parameters_of
from ._nodes import Node, has_proxies
from ._operands import as_read, declarations_of, in_order
from ._schema import DECLARED, dtype_name
from ._schema import OPERATORS as _ops

Contexts = int | torch.Tensor | None
Operands = Mapping[str, torch.Tensor] | None

_CACHED_NAMES = {**NAMES, "x": "delta_x"}
_LAST_NAMES = {"seq_offsets_q": "num_targets", "max_delta_len": "max_targets", "out_rows": "total_targets"}
_EPS = 1e-6
_OUTPUTS = [argument.name for argument in interface("stu_layer", "forward").outputs]


class STULayer(torch.nn.Module):
    """A layer in one call: ``stu_layer`` of docs/ops-layers.md, and over a cache ``cached_stu_layer``.

    x is bf16, fp16, or fp32, whose products have the precision of the configuration. Parameters may be fp32: they are
    rounded to the type of x, as in the public package.
    """

    def __init__(self, config: STULayerConfig, is_inference: bool = False) -> None:
        super().__init__()
        self._config, self.is_inference = copy_of(config), bool(is_inference)
        config = self._config
        self.operand_names = tuple(name for name, _, _ in declarations_of(config.operands))
        v, qk = config.num_heads * config.hidden_dim, config.num_heads * config.attention_dim
        self._columns = v, qk
        self._alpha = config.attention_dim**-0.5 if config.attn_alpha is None else config.attn_alpha
        normed = config.num_heads if config.use_group_norm else v
        self._uvqk_weight = torch.nn.Parameter(torch.empty(config.embedding_dim, 2 * (v + qk)))
        self._uvqk_beta = torch.nn.Parameter(torch.zeros(2 * (v + qk)))
        self._input_norm_weight = torch.nn.Parameter(torch.ones(config.embedding_dim))
        self._input_norm_bias = torch.nn.Parameter(torch.zeros(config.embedding_dim))
        self._output_weight = torch.nn.Parameter(torch.empty((3 if config.concat_ux else 1) * v, config.embedding_dim))
        self._output_norm_weight = torch.nn.Parameter(torch.ones(normed))
        self._output_norm_bias = torch.nn.Parameter(torch.zeros(normed))
        torch.nn.init.xavier_uniform_(self._uvqk_weight)
        torch.nn.init.xavier_uniform_(self._output_weight)
        self.reset_kv_cache()

    @property
    def config(self) -> STULayerConfig:
        """A copy of what the layer is made of. To change it changes no layer."""
        return copy.copy(self._config)

    def _check_rows(self, name: str, rows: torch.Tensor, shape: str) -> None:
        """A launch would take the columns of x for the width, and blame the weights."""
        wanted = self._config.embedding_dim
        if rows.dim() != 2 or rows.size(1) != wanted:
            raise InvalidArgumentError(
                f"{name} has shape {tuple(rows.shape)}; it must be ({shape}, embedding_dim), which is {wanted}"
            )

    def __prepare_scriptable__(self) -> Any:
        raise UnsupportedError(
            "torch.jit.script compiles no STULayer: trace the model with torch.fx.symbolic_trace, and script that graph"
        )

    def extra_repr(self) -> str:
        """Fields of the configuration that are not at their defaults."""
        fields = ((field, getattr(self._config, field.name)) for field in dataclasses.fields(self._config))
        return ", ".join(f"{field.name}={shown(value)}" for field, value in fields if value != field.default)

    def reset_kv_cache(self) -> None:
        self.k_cache: torch.Tensor | None = None
        self.v_cache: torch.Tensor | None = None
        self.kv_caching_offsets: torch.Tensor | None = None
        self.max_kv_caching_len = 0

    def forward(
        self, x: torch.Tensor, x_lengths: torch.Tensor, x_offsets: torch.Tensor, max_seq_len: int,
        num_targets: torch.Tensor | None = None, max_kv_caching_len: int = 0,
        kv_caching_lengths: torch.Tensor | None = None, contextual_seq_len: Contexts = None, operands: Operands = None
    ) -> torch.Tensor:  # fmt: skip
        """A layer over all rows.

        Args:
            x: (L, embedding_dim), the rows of all sequences.
            x_lengths: (B), int32 or int64; its values are not read: ``x_offsets`` says them.
            x_offsets: (B + 1), where sequences begin.
            max_seq_len: no sequence has more rows.
            num_targets: (B), targets at the end of each sequence.
            max_kv_caching_len: none of ``kv_caching_lengths`` is longer; 0: the longest of them.
            kv_caching_lengths: (B), first rows of each sequence whose k and v are kept for :meth:`cached_forward`; a
                prefill, without derivatives.
            contextual_seq_len: in place of the configuration's number: another one, or (B), that of each sequence.
            operands: the tensors that the configuration declares, by name, with gradients where they require them.

        Returns:
            (L, embedding_dim).
        """
        tensors = in_order(self.operand_names, operands)
        call = x, x_lengths, x_offsets, max_seq_len, num_targets
        if has_proxies((*call, contextual_seq_len, *tensors)):
            return node_of(self, call, contextual_seq_len, tensors, kv_caching_lengths)
        config, prefill = self._config, kv_caching_lengths is not None
        if prefill and torch.is_grad_enabled():
            raise InvalidArgumentError(
                "kv_caching_lengths is given, for a prefill; it has no derivative: torch.no_grad()"
            )
        kept = Kept.of(kv_caching_lengths, max_kv_caching_len, x_offsets, "x_offsets")
        outputs = self._call(NAMES, call, contextual_seq_len, tensors, {}, prefill)
        if kept is not None:
            v, qk = self._columns
            _, *vqk = outputs[_OUTPUTS.index("uvqk")].split([v, v, qk, qk], 1)
            if config.silu_uvqk:  # forward gives what silu is applied to
                vqk = [torch.nn.functional.silu(columns) for columns in vqk]
            self._keep(vqk[2], vqk[0], kept)
        return outputs[0]

    def forward_targets_only(
        self, x: torch.Tensor, x_lengths: torch.Tensor, x_offsets: torch.Tensor, max_seq_len: int,
        num_targets: torch.Tensor, contextual_seq_len: Contexts = None, operands: Operands = None, *,
        max_targets: int | None = None, total_targets: int | None = None
    ) -> torch.Tensor:  # fmt: skip
        """The targets' rows of :meth:`forward`, and no others: for the last layer where the loss is of targets alone.

        Args:
            x, x_lengths, x_offsets, max_seq_len, contextual_seq_len, operands: those of :meth:`forward`.
            num_targets: (B), the last rows of each sequence that are wanted, also where the mask knows no targets.
            max_targets, total_targets: the largest of them, and their sum, which is the number of rows of the result.
                Where one is None both are read, which waits for a GPU once.
        """
        tensors = in_order(self.operand_names, operands)
        call = x, x_lengths, x_offsets, max_seq_len, num_targets
        if has_proxies((*call, contextual_seq_len, *tensors)):
            raise UnsupportedError("forward_targets_only is called while torch.fx traces; a graph has forward alone")
        drops = self.training and self._config.output_dropout_ratio > 0
        last = last_rows_of(num_targets, x_offsets, max_targets, total_targets, drops)
        return self._call({**NAMES, **_LAST_NAMES}, call, contextual_seq_len, tensors, last)[0]

    def cached_forward(
        self, delta_x: torch.Tensor, num_targets: torch.Tensor | None = None, max_kv_caching_len: int = 0,
        kv_caching_lengths: torch.Tensor | None = None, contextual_seq_len: Contexts = None, operands: Operands = None
    ) -> torch.Tensor:  # fmt: skip
        """A layer over as many new rows of each sequence, behind those that a prefill has kept.

        Args:
            delta_x: (B * new rows, embedding_dim).
            num_targets: (B), targets at the end of each sequence, new rows included.
            max_kv_caching_len: none of ``kv_caching_lengths`` is longer; 0: the longest of them.
            kv_caching_lengths: (B), rows of each sequence that are kept from now on; None: the cache stays as it is.
            contextual_seq_len, operands: those of :meth:`forward`; of rows there are cached and new ones.

        Returns:
            (B * new rows, embedding_dim).
        """
        tensors = in_order(self.operand_names, operands)
        if has_proxies((delta_x, num_targets, kv_caching_lengths, contextual_seq_len, *tensors)):
            raise UnsupportedError("cached_forward is called while torch.fx traces, and a graph keeps no cache")
        if self.k_cache is None or self.v_cache is None or self.kv_caching_offsets is None:
            raise InvalidArgumentError("there is no cache: forward with kv_caching_lengths makes it")
        self._check_rows("delta_x", delta_x, "B * new rows")
        offsets = self.kv_caching_offsets
        batch = offsets.numel() - 1
        new_rows = delta_x.size(0) // max(batch, 1)
        seq_offsets = offsets + new_rows * torch.arange(batch + 1, device=offsets.device, dtype=offsets.dtype)
        kept = Kept.of(kv_caching_lengths, max_kv_caching_len, seq_offsets, "the prefill")
        cache = {"k_cache": self.k_cache, "v_cache": self.v_cache, "kv_caching_offsets": offsets}
        arguments = self._arguments(delta_x, num_targets, offsets, contextual_seq_len, tensors)
        rows: dict[str, Any] = {"max_delta_len": new_rows, "full_k_rows": self.k_cache.size(0) + delta_x.size(0)}
        rows |= {"seq_offsets": seq_offsets, "max_seq_len": self.max_kv_caching_len + new_rows}
        full_k, full_v, out = called_as(_CACHED_NAMES, _ops.cached_stu_layer, x=delta_x, **cache, **rows, **arguments)
        if kept is not None:
            self._keep(full_k, full_v, kept)
        return out

    def _call(
        self, names: Any, call: Any, contexts: Contexts, tensors: Any, more: dict[str, Any], prefill: bool = False
    ) -> Any:
        """Calls ``stu_layer`` with the arguments of :meth:`forward` up to ``num_targets``, and with ``more``."""
        x, _, seq_offsets, max_seq_len, num_targets = call
        self._check_rows("x", x, "L")
        arguments = self._arguments(x, num_targets, seq_offsets, contexts, tensors)
        arguments |= dropout_of(self._config.output_dropout_ratio, self.training, x)
        again = {name: prefill or getattr(self._config, name) for name in ("recompute_normed_x", "recompute_y")}
        again |= {"recompute_uvqk": not prefill and self._config.recompute_uvqk, **less_memory_of(self._config)}
        rows = {"x": x, "seq_offsets": seq_offsets, "max_seq_len": max_seq_len}
        training = torch.is_grad_enabled() or prefill  # in eval mode, too: it has a derivative there
        return called_as(names, _ops.stu_layer, **rows, **arguments, **again, training=training, **more)

    def _arguments(
        self, x: torch.Tensor, num_targets: torch.Tensor | None, offsets: torch.Tensor, contexts: Contexts, tensors: Any
    ) -> dict[str, object]:
        """Arguments that both operators take of the layer and of a call. Weights of norms are rounded, too."""
        config = self._config
        if num_targets is not None:
            num_targets = integers_as("num_targets", num_targets, offsets.dtype) if config.target_aware else None
        weights = {name: getattr(self, own).to(x.dtype) for name, own in NAMES.items() if own.startswith("_")}
        numbers = {"eps": _EPS, "num_targets": num_targets, "alpha": self._alpha}
        of_call = {} if contexts is None else {"contextual_seq_len": 0, **contexts_of(contexts, offsets)}
        if tensors:
            of_call[DECLARED] = [as_read(*operand) for operand in zip(self.operand_names, tensors)]
        return {**weights, **numbers, **parameters_of(config), **of_call}

    def _keep(self, k: torch.Tensor, v: torch.Tensor, kept: Kept) -> None:
        self.k_cache, self.v_cache = kept.first_rows(k), kept.first_rows(v)
        self.kv_caching_offsets, self.max_kv_caching_len = kept.offsets, kept.longest

    def instances(
        self, *, training: Lengths = (), inference: Lengths = (), prefill: Lengths = (), cached_forward: Lengths = (),
        num_targets: bool | int = False, contexts: bool | int = False, targets_only: bool = False,
        dtype: torch.dtype = torch.bfloat16, weight_dtype: torch.dtype | None = None,
        offsets_dtype: torch.dtype = torch.int64, name: str = "layer"
    ) -> list[dict[str, Any]]:  # fmt: skip
        """The instances that calls use, as :func:`hstujit.prewarm` and :class:`hstujit.Config` take them.

        Each kind of call is given with the lengths that it has, one or several; what is not given is left out. Dropout
        is there where it is now: ``train()`` and ``eval()`` say it.

        Args:
            training: ``max_seq_len`` of calls with gradients, and of their backward.
            inference: ``max_seq_len`` of calls without: ``torch.no_grad()``.
            prefill: ``max_seq_len`` of calls with ``kv_caching_lengths``.
            cached_forward: rows of a cache and new ones together: ``max_kv_caching_len`` plus the new rows.
            num_targets: whether calls give them; a count is that of generated inputs, as in a config.
            contexts: whether calls give a tensor as ``contextual_seq_len``; a count is that of generated inputs, too.
            targets_only: whether calls with and without gradients are those of :meth:`forward_targets_only`.
            dtype: of x, or of autocast.
            weight_dtype: of the weights of norms; None: ``dtype``. Autocast leaves them fp32 where x is.
            offsets_dtype: of x_offsets.
            name: what names of instances begin with.
        """
        calls = {"training": training, "inference": inference, "prefill": prefill, "cached_forward": cached_forward}
        dtypes = {"dtype": dtype, "weight_dtype": weight_dtype or dtype, "offsets_dtype": offsets_dtype}
        shared: dict[str, Any] = {key: dtype_name(given) for key, given in dtypes.items()}
        shared["num_targets"] = num_targets if self._config.target_aware else False
        shared |= {"contextual_seq_len": 0, "num_contexts": contexts} if contexts else {}
        return instances_of(self, calls, shared, name, targets_only)


class STUStack(torch.nn.Module):
    """Layers in order, a call for each, whose weights are tensors of their own: ``stu_stack`` takes stacked ones."""

    def __init__(self, stu_list: Iterable[STULayer], is_inference: bool = False) -> None:
        super().__init__()
        layers = list(stu_list)
        for place, layer in enumerate(layers):
            width, wanted = layer.config.embedding_dim, layers[0].config.embedding_dim
            if width != wanted:
                raise InvalidArgumentError(
                    f"stu_list[{place}] has the embedding_dim {width}; it must be {wanted}, as that of stu_list[0]"
                )
        self.is_inference = bool(is_inference)
        self._stu_layers = torch.nn.ModuleList(layers)

    def forward(
        self, x: torch.Tensor, x_lengths: torch.Tensor, x_offsets: torch.Tensor, max_seq_len: int,
        num_targets: torch.Tensor | None = None, max_kv_caching_len: int = 0,
        kv_caching_lengths: torch.Tensor | None = None, contextual_seq_len: Contexts = None, operands: Operands = None
    ) -> torch.Tensor:  # fmt: skip
        of_call = x_lengths, x_offsets, max_seq_len, num_targets, max_kv_caching_len, kv_caching_lengths
        for layer, own in self._each(operands):
            x = layer(x, *of_call, contextual_seq_len, own)
        return x

    def cached_forward(
        self, delta_x: torch.Tensor, num_targets: torch.Tensor | None = None, max_kv_caching_len: int = 0,
        kv_caching_lengths: torch.Tensor | None = None, contextual_seq_len: Contexts = None, operands: Operands = None
    ) -> torch.Tensor:  # fmt: skip
        of_call = num_targets, max_kv_caching_len, kv_caching_lengths, contextual_seq_len
        for layer, own in self._each(operands):
            delta_x = layer.cached_forward(delta_x, *of_call, own)
        return delta_x

    def _each(self, operands: Any) -> list[tuple[Any, Any]]:
        """Each layer, with the operands that it declares."""
        layers: list[Any] = list(self._stu_layers)
        if not isinstance(operands, Mapping):
            return [(layer, operands) for layer in layers]
        declared = {name for layer in layers for name in layer.operand_names}
        if unknown := [name for name in operands if name not in declared]:
            raise InvalidArgumentError(
                f"operands has {', '.join(unknown)}; it must have {', '.join(sorted(declared)) or 'nothing'}, as the "
                "configs of the layers declare"
            )
        return [(layer, {n: operands[n] for n in layer.operand_names if n in operands}) for layer in layers]

    def instances(self, *, name: str = "layer", **options: Any) -> list[dict[str, Any]]:
        """Those of all layers, each one once. Arguments are those of :meth:`STULayer.instances`."""
        found: dict[str, dict[str, Any]] = {}
        for index, layer in enumerate(self._stu_layers):
            assert isinstance(layer, STULayer)
            for instance in layer.instances(name=f"{name}-{index}", **options):
                found.setdefault(repr({**instance, "name": ""}), instance)
        return list(found.values())


def node_of(layer: STULayer, call: tuple[Any, ...], contexts: Any, operands: list[Any], kv_caching_lengths: Any) -> Any:
    """The node of a call of ``STULayer.forward`` in a graph of torch.fx, which calls the layer when the graph runs.

    Args:
        call: the arguments of ``forward`` up to ``num_targets``.
        operands: in the order of their declarations.
    """
    if kv_caching_lengths is not None:
        raise UnsupportedError(
            "kv_caching_lengths is given while torch.fx traces, and a graph keeps no cache; it must be None: where the "
            "layer itself is traced, by concrete_args={'max_kv_caching_len': 0, 'kv_caching_lengths': None}"
        )
    arguments = dict(zip(_node.parameters, call))
    parameters = [getattr(layer, name) for name, _ in layer.named_parameters()]  # proxies
    arguments["parameters"] = [*parameters, *operands]
    arguments["config"] = json.dumps(dataclasses.asdict(layer.config))
    arguments["training"], arguments["contextual_seq_len"] = layer.training, contexts
    return _node.add(arguments)


def stu_layer(
    x: torch.Tensor, x_lengths: torch.Tensor, x_offsets: torch.Tensor, max_seq_len: int,
    num_targets: torch.Tensor | None, parameters: list[torch.Tensor], config: str, training: bool,
    contextual_seq_len: int | torch.Tensor | None = None
) -> torch.Tensor:  # fmt: skip
    """A call of a layer.

    Args:
        parameters: in the order of ``STULayer.named_parameters``, and behind them the operands as they are declared.
        config: the fields of its STULayerConfig, as JSON.
        training: whether the layer is in train mode.
    """
    empty = _layer_without_data(config)
    layer = copy.copy(empty)
    layer._parameters = dict(zip(empty._parameters, parameters))  # type: ignore[arg-type]
    layer.training = training
    operands = dict(zip(layer.operand_names, parameters[len(empty._parameters) :]))
    call = x, x_lengths, x_offsets, max_seq_len, num_targets
    return layer(*call, contextual_seq_len=contextual_seq_len, operands=operands)


@functools.lru_cache(maxsize=256)
def _layer_without_data(config: str) -> STULayer:
    with torch.device("meta"):
        return STULayer(STULayerConfig(**json.loads(config)))


_node = Node(stu_layer)
