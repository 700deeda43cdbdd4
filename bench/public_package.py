"""The public package generative_recommenders, from a checkout: its modules, and a layer of the best parts there are."""

import contextlib
import importlib
import pathlib
import sys
import types

import torch
import torch.nn.functional as F
from row_peers import EPS


def import_from(checkout, *names):
    """Modules of the package, by their names in it."""
    sys.path.insert(0, str(pathlib.Path(checkout).resolve()))
    # Modules that the package imports, and none of its layers calls.
    for name in ("torchrec", "torchrec.modules", "torchrec.modules.sorted_index_select"):
        sys.modules.setdefault(name, types.ModuleType(name)).maybe_sorted_index_select = None
    with contextlib.redirect_stdout(sys.stderr):  # which gets what it prints
        return [importlib.import_module(f"generative_recommenders.{name}") for name in names]


def _split(uvqk, heads, attn_dim, hidden_dim):
    """silu(u), q, k and v of a projected matrix."""
    hidden, attn = heads * hidden_dim, heads * attn_dim
    u, v, q, k = uvqk.split([hidden, hidden, attn, attn], dim=1)
    return F.silu(u), q, k, v


class Formulas:
    """The halves of a layer in PyTorch's formulas, which torch.compile fuses; their products are cuBLAS's."""

    def __init__(self):
        self.uqvk = torch.compile(self.uqvk_formula, dynamic=False)
        self.output = torch.compile(self.output_formula, dynamic=False)

    @staticmethod
    def uqvk_formula(x, norm_weight, norm_bias, weight, bias, heads, attn_dim, hidden_dim):
        normed = F.layer_norm(x, x.shape[1:], norm_weight, norm_bias, EPS)
        return _split(torch.addmm(bias, normed, weight), heads, attn_dim, hidden_dim)

    @staticmethod
    def output_formula(attn, u, x, norm_weight, norm_bias, weight, dropout, training, concat=True):
        y = u * F.layer_norm(attn, attn.shape[1:], norm_weight, norm_bias, EPS)
        return torch.addmm(x, F.dropout(torch.cat([u, attn, y], 1) if concat else y, dropout, training), weight)


class TritonRows:
    """The same with the package's Triton kernels for what is done to rows, and cuBLAS for products."""

    def __init__(self, checkout):
        layer_norm, linear = import_from(checkout, "ops.triton.triton_layer_norm", "ops.triton.triton_hstu_linear")
        self._norm, self._gate = layer_norm.triton_layer_norm, linear.triton_norm_mul_dropout

    def uqvk(self, x, norm_weight, norm_bias, weight, bias, heads, attn_dim, hidden_dim):
        normed = self._norm(x, norm_weight, norm_bias, EPS)
        return _split(torch.addmm(bias, normed, weight), heads, attn_dim, hidden_dim)

    def output(self, attn, u, x, norm_weight, norm_bias, weight, dropout, training, concat=True):
        y = self._gate(attn, u, norm_weight, norm_bias, EPS, dropout, training, concat_u=concat, concat_x=concat)
        return torch.addmm(x, y, weight)


def mixed_layer(checkout, halves):
    """A class like the package's STULayer, with the package's attention between two halves; keeps all intermediates."""
    common, stu, attention = import_from(checkout, "common", "modules.stu", "ops.hstu_attention")

    class MixedLayer(stu.STULayer):
        def forward(self, x, x_lengths, x_offsets, max_seq_len, num_targets):
            heads, attn_dim, hidden_dim = self._num_heads, self._attention_dim, self._hidden_dim
            parameters = (self._input_norm_weight, self._input_norm_bias, self._uvqk_weight, self._uvqk_beta)
            u, q, k, v = halves.uqvk(x, *(tensor.to(x.dtype) for tensor in parameters), heads, attn_dim, hidden_dim)
            attn = attention.hstu_mha(
                max_seq_len, self._attn_alpha, q.reshape(-1, heads, attn_dim), k.reshape(-1, heads, attn_dim),
                v.reshape(-1, heads, hidden_dim), x_offsets, training=self.training,
                num_targets=num_targets if self._target_aware else None, max_attn_len=self._max_attn_len,
                contextual_seq_len=self._contextual_seq_len, sort_by_length=self._sort_by_length, kernel=self.hammer_kernel())
            parameters = (self._output_norm_weight, self._output_norm_bias, self._output_weight)
            return halves.output(attn.view(-1, heads * hidden_dim), u, x, *(tensor.to(x.dtype) for tensor in parameters),
                                 self._output_dropout_ratio, self.training)

    return with_kernel(stu, MixedLayer, common.HammerKernel.TRITON)


def with_kernel(stu, layer, kernel):
    """Module as time_layer of layer_peers.py takes it: a config and a constructor of layers that run `kernel`."""

    def made(config):
        instance = layer(config)
        instance.set_hammer_kernel(kernel)
        return instance

    return types.SimpleNamespace(STULayerConfig=stu.STULayerConfig, STULayer=made, __name__=layer.__name__)


def public_layer(checkout):
    """The package's STULayer with its Triton kernels, without TMA.

    On Hopper the layer would read q, k and v by TMA descriptors whose rows are heads * dimension apart. There q, k and v are columns of
    one matrix with u, and their rows are further apart, so that attention would be of other elements: 0.3 of the result's norm in the
    cells of layers.json. The package's attention alone is given tensors of their own, and is right either way.
    """
    common, stu, attention = import_from(checkout, "common", "modules.stu", "ops.triton.triton_hstu_preprocess_and_attention")
    if hasattr(attention, "_should_enable_tma"):
        attention._should_enable_tma = lambda: False
    return with_kernel(stu, stu.STULayer, common.HammerKernel.TRITON)
