"""A layer's configuration, and what ``stu_layer`` makes of it: limits, names, parameters, instances in a config."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._structs import is_number
from .._words import shown
from ..config import Config
from ..errors import InvalidArgumentError, InvalidConfigError
from ._arguments import fp32_precision
from ._attention import Function, scores_of, texts_of
from ._calling import rename

if TYPE_CHECKING:
    from .stu import STULayer

Lengths = int | Sequence[int]

_BATCH = 256  # sequences of generated inputs, as a config's default

# By what ``stu_layer`` names in a sentence: what a caller of a layer knows it as.
NAMES = {
    "width": "embedding_dim",
    "heads": "num_heads",
    "attn_dim": "attention_dim",
    "seq_offsets": "x_offsets",
    "num_contexts": "contextual_seq_len",
    "group_norm": "use_group_norm",
    "dropout_ratio": "output_dropout_ratio",
    "alpha": "attn_alpha",
    "input_norm_weight": "_input_norm_weight",
    "input_norm_bias": "_input_norm_bias",
    "uvqk_weight": "_uvqk_weight",
    "uvqk_bias": "_uvqk_beta",
    "output_weight": "_output_weight",
    "output_norm_weight": "_output_norm_weight",
    "output_norm_bias": "_output_norm_bias",
}


@dataclass
class STULayerConfig:
    """Configuration of one layer.

    Attributes:
        embedding_dim: elements of a row of x.
        num_heads: heads of attention.
        hidden_dim: head dimension of v and u.
        attention_dim: head dimension of q and k.
        output_dropout_ratio: of the elements that become 0 in training, from 0 to 1.
        target_aware: whether the last rows of a sequence, as many as ``num_targets``, do not see each other.
        max_attn_len: a window of so many rows; None: none.
        attn_alpha: what dot products are multiplied by; None: 1 / sqrt(attention_dim).
        use_group_norm: whether heads of the attention output are normalised apart.
        recompute_normed_x, recompute_uvqk, recompute_y: whether backward computes it again, for less memory.
        sort_by_length: taken, and without effect.
        contextual_seq_len: leading rows that see the whole history.
        recompute_attn: whether backward computes the attention output again, too. The public package keeps it.
        backward_head_groups: attention's backward goes through the heads in so many groups, for less memory.
        num_softmax_heads: so many of the first heads have softmax in place of silu and the scale.
        precision: of products of fp32 rows, "tf32" or "ieee"; None: "tf32" where PyTorch's setting allows it
            (``torch.backends.cuda.matmul``), else "ieee".
        sla_k1, sla_k2: semi-local attention: a row sees so many rows up to itself, and so many first ones; 0, 0: all.
        mask: which columns a row sees, in place of the fields that say so: a text of docs/expressions.md, or a function
            ``mask(b, h, row, col)`` as :func:`hstujit.torch.attention` takes it.
        score: the weight of a pair in place of silu: likewise a text, or ``score(x, b, h, row, col)``.
        softmax_score: the same of what heads with softmax normalise; ``score`` is it where all heads have softmax.
        silu_uvqk: whether v, q and k have silu, too, as in NVIDIA's recsys-examples; u has it always.
        residual: whether x is added to the result.
        concat_ux: whether u and the attention output are projected beside the product of the two.
        operands: declares the tensors that these read: ``"ts: row(int64), by_age: table(129, grad)"``. Calls give them
            by name, and a function asks for them by name.

    A function is called once, when the configuration is made, and becomes a text.

    Raises:
        hstujit.errors.InvalidArgumentError: a value that no layer can have.
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
    recompute_attn: bool = False
    backward_head_groups: int = 1
    num_softmax_heads: int = 0
    precision: str | None = None
    sla_k1: int = 0
    sla_k2: int = 0
    mask: str | Function | None = None
    score: str | Function | None = None
    operands: str = ""
    softmax_score: str | Function | None = None
    silu_uvqk: bool = False
    residual: bool = True
    concat_ux: bool = True

    def __post_init__(self) -> None:
        scores = scores_of(self.score, self.softmax_score, self.num_softmax_heads == self.num_heads)
        self.mask, self.score, self.softmax_score = texts_of(self.operands, self.mask, *scores)
        check_values(self)


def copy_of(config: STULayerConfig) -> STULayerConfig:
    """Checked, since it may have been changed. It may be the public package's, too, which has fewer fields."""
    fields = dataclasses.fields(STULayerConfig)
    values: dict[str, Any] = {field.name: getattr(config, field.name, field.default) for field in fields}
    absent = [name for name, value in values.items() if value is dataclasses.MISSING]
    if absent:
        raise InvalidArgumentError(f"config is {shown(config)}; it must be an STULayerConfig: it has no {absent[0]}")
    return STULayerConfig(**values)


def check_values(config: STULayerConfig) -> None:
    """Raises InvalidArgumentError with every value that no layer can have, by the library's rules of ``stu_layer``."""
    ratio, alpha = config.output_dropout_ratio, config.attn_alpha
    if not is_number(ratio) or not 0 <= ratio <= 1:
        raise InvalidArgumentError(f"output_dropout_ratio is {shown(ratio)}; it must be a number from 0 to 1")
    instance = {"name": "layer", "op": "stu_layer", "max_seq_len": 1, "dtype": "fp32", "width": config.embedding_dim}
    instance |= {**parameters_of(config), **less_memory_of(config), **({} if alpha is None else {"alpha": alpha})}
    instance["num_targets"] = re.search(r"\btargets\b", str(instance)) is not None
    try:
        Config([instance])
    except InvalidConfigError as error:
        wrong = InvalidArgumentError(re.sub(r"^\[0\]\.", "", str(error), flags=re.M))
        wrong.argument = error.argument.removeprefix("[0].")
        texts = "mask", "score", "softmax_score", "operands"  # whose names are their own
        rename(wrong, {} if wrong.argument in texts else NAMES, "stu_layer")
        raise wrong from None


def parameters_of(config: STULayerConfig) -> dict[str, Any]:
    """Parameters of ``stu_layer`` and of ``cached_stu_layer``."""
    alike = "hidden_dim causal contextual_seq_len num_softmax_heads sla_k1 sla_k2 operands silu_uvqk residual"
    return {name: getattr(config, name) for name in alike.split()} | {
        "heads": config.num_heads,
        "attn_dim": config.attention_dim,
        "max_attn_len": config.max_attn_len or 0,
        "group_norm": config.use_group_norm,
        "concat_u": config.concat_ux,
        "concat_x": config.concat_ux,
        "precision": fp32_precision() if config.precision is None else config.precision,
        "mask": config.mask or "",
        "score": config.score or "silu",
        "softmax_score": config.softmax_score or "",
    }


def less_memory_of(config: STULayerConfig) -> dict[str, Any]:
    """Parameters that the public package's configuration does not have."""
    return {"recompute_attn": config.recompute_attn, "backward_head_groups": config.backward_head_groups}


def instances_of(
    layer: STULayer, calls: Mapping[str, Lengths], shared: Mapping[str, Any], name: str, targets_only: bool
) -> list[dict[str, Any]]:
    """Instances of calls with these lengths, by kind of call. ``shared`` are parameters of all but a cache's."""
    config, dropout = layer.config, layer.training and layer.config.output_dropout_ratio > 0
    lengths = {call: _list_of(given) for call, given in calls.items()}
    both = {"width": config.embedding_dim, "alpha": layer._alpha, **parameters_of(config), **shared}
    whole = {**both, "op": "stu_layer", "dropout": dropout, "seed_tensor": dropout, **less_memory_of(config)}
    recomputed = {field: getattr(config, field) for field in ("recompute_normed_x", "recompute_uvqk", "recompute_y")}
    rows = {**whole, **recomputed}
    if targets_only:
        rows |= {"targets_only": True, "row_numbers": dropout}
    parameters: dict[str, dict[str, Any]] = {
        "training": {**rows, "directions": ["forward", "backward"]},
        "inference": {**rows, "training": False},
        "prefill": {**whole, "recompute_uvqk": False},
        "cached_forward": {**both, "op": "cached_stu_layer"},
    }
    made = [{"name": f"{name}-{call}", **parameters[call], "max_seq_len": own} for call, own in lengths.items() if own]
    cached, offsets = sorted({*lengths["prefill"], *lengths["cached_forward"]}), shared["offsets_dtype"]
    if cached or targets_only:
        made.append({"name": f"{name}-offsets", "op": "complete_cumsum", "dtype": offsets, "rows": _BATCH})
    if cached:  # keeps the first rows of each sequence
        split = {"op": "split_2d_jagged", "dtype": shared["dtype"], "offsets_dtype": offsets, "max_seq_len": cached}
        made += [{"name": f"{name}-keep-{width}", "width": width, **split} for width in sorted({*layer._columns})]
    return made


def _list_of(lengths: Any) -> list[int]:
    """Lengths as a list, also those of an array, whose rank is 0 where it is one length."""
    is_list = isinstance(lengths, Iterable) and getattr(lengths, "ndim", 1) > 0
    return [int(length) for length in (lengths if is_list else [lengths])]
