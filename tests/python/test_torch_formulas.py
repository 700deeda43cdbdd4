"""Every operator that is a program, on the CPU, against the formulas of formulas.py in float64: results and gradients.

The library's own reference runs the same steps as its kernels, so that it agrees with a program that is put together
wrongly. This one knows no steps.
"""

import unittest

from torch_support import torch

import hstujit

if torch:
    import formulas

    import hstujit.torch

    ops = torch.ops.hstujit

WIDTH, HEADS, ATTN, HIDDEN, LONGEST = 23, 2, 7, 25, 8  # rows that begin at multiples of one element
V, P = HEADS * HIDDEN, 2 * HEADS * (ATTN + HIDDEN)
LENGTHS = (5, 0, 3)
ROWS = sum(LENGTHS)
# Relative to the norm of a tensor. Steps round to fp32, and single sums of either sign, as of attn_scale, may cancel; a
# step that is wired wrongly is off by some 0.1 and more.
TOLERANCE = 2e-5

# Operators that are no program in either direction: tests of kernels compare them with formulas of their own.
KERNELS = {
    "add_positional_embeddings",
    "add_timestamp_positional_embeddings",
    "addmm_wgrad",
    "bias_add",
    "complete_cumsum",
    "delta_hstu_attention",
    "hstu_attention",
    "hstu_norm_mul_dropout",
    "jagged_dense_broadcast_add",
    "jagged_jagged_bmm",
    "layer_norm",
    "rms_norm",
    "silu",
    "swish_layer_norm",
}


def numbers(*shape, seed=0, scale=1.0):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(100 * seed + sum(shape)))


def offsets(*lengths):
    return torch.tensor([0, *lengths]).cumsum(0)


def sizes(**more):
    return {"heads": HEADS, "attn_dim": ATTN, "hidden_dim": HIDDEN, "precision": "ieee", **more}


def sequences():
    return {"seq_offsets": offsets(*LENGTHS), "max_seq_len": LONGEST, "alpha": 0.3}


def layer(layers=None, bias=True, group_norm=False):
    """The tensors of a layer, or of so many stacked ones."""
    stacked = () if layers is None else (layers,)
    normed = HEADS if group_norm else V
    weights = {
        "input_norm_weight": 1 + numbers(*stacked, WIDTH, seed=1, scale=0.1),
        "uvqk_weight": numbers(*stacked, WIDTH, P, seed=2, scale=0.2),
        "output_weight": numbers(*stacked, 3 * V, WIDTH, seed=3, scale=0.1),
        "output_norm_weight": 1 + numbers(*stacked, normed, seed=4, scale=0.1),
    }
    if bias:
        weights["input_norm_bias"] = numbers(*stacked, WIDTH, seed=5, scale=0.1)
        weights["uvqk_bias"] = numbers(*stacked, P, seed=6, scale=0.1)
        weights["output_norm_bias"] = numbers(*stacked, normed, seed=7, scale=0.1)
    return {"x": numbers(ROWS, WIDTH), **weights, **sequences()}


def biases(rab_heads=1, scales=ROWS):
    return {"rab": numbers(len(LENGTHS), rab_heads, LONGEST, LONGEST, seed=8), "attn_scale": numbers(scales, seed=9)}


KEPT = {"recompute_normed_x": False, "recompute_uvqk": False, "recompute_y": False}


def layers():
    plain = sizes()
    yield "stu_layer", layer(), plain
    yield "stu_layer", {**layer(), **biases(), "num_targets": torch.tensor([2, 0, 1])}, {**plain, **KEPT}
    yield "stu_layer", {**layer(), **biases(HEADS, 1)}, {**plain, "recompute_attn": True, "causal": False}
    yield "stu_layer", layer(group_norm=True), {**plain, "group_norm": True, "backward_head_groups": 2}
    yield "stu_layer", {**layer(), **biases()}, {**plain, "num_softmax_heads": 1}
    yield "stu_layer", layer(), {**plain, "num_softmax_heads": HEADS, "backward_head_groups": 2}
    silu = {**plain, "silu_uvqk": True}
    yield "stu_layer", {**layer(), **biases()}, silu
    yield "stu_layer", layer(), {**silu, **KEPT, "residual": False}
    yield "stu_layer", layer(), {**silu, "backward_head_groups": 2, "recompute_attn": True}
    rms = layer(bias=False)
    yield "stu_layer", {**rms, "output_weight": numbers(V, WIDTH)}, {
        **plain, "norm": "rms_norm", "concat_u": False, "concat_x": False, "score": "relu2"
    }  # fmt: skip
    of_last = {"seq_offsets_q": offsets(2, 0, 3), "max_delta_len": 4}
    yield "stu_layer", {**layer(), **of_last}, plain
    yield "stu_layer", {**layer(), **biases(HEADS, 1), **of_last}, {**plain, "recompute_attn": True}
    kept = {"recompute_normed_x": False, "recompute_y": False, "out_rows": 5}
    yield "stu_layer", {**layer(), **of_last, "num_targets": torch.tensor([2, 0, 1])}, {**silu, **kept}
    yield "stu_layer", {**rms, **of_last}, {**plain, "norm": "rms_norm", "residual": False}
    for count in (1, 2, 3):
        yield "stu_stack", {**layer(count), **biases()}, plain
    yield "stu_stack", {**layer(2), **biases(HEADS, 1), "scaling_seqlen": 5}, {**plain, **KEPT}
    yield "stu_stack", {**layer(3), **biases()}, {**plain, "recompute_attn": True}
    yield "stu_stack", {**layer(2), **biases(HEADS, 1)}, {**plain, "num_softmax_heads": 1}
    yield "stu_stack", layer(3), {**plain, "backward_head_groups": 2, "recompute_attn": True}
    yield "stu_stack", layer(2), {**silu, "recompute_uvqk": False}
    yield "stu_stack", layer(2), {**silu, "residual": False}
    again = layer(3, bias=False)
    yield "stu_stack", {**again, "attn_scale": numbers(1, seed=10)}, {**plain, "norm": "rms_norm", "score": "tanh"}


def halves():
    taken = ("x", "input_norm_weight", "input_norm_bias", "uvqk_weight", "uvqk_bias")
    of_input = {name: value for name, value in layer().items() if name in taken}
    yield "hstu_compute_uqvk", of_input, sizes()
    yield "hstu_compute_uqvk", of_input, sizes(recompute_normed_x=False)
    yield "hstu_compute_uqvk", of_input, sizes(silu_uvqk=True)
    yield "hstu_preprocess_and_attention", {**of_input, **sequences(), **biases()}, sizes()
    yield (
        "hstu_preprocess_and_attention",
        {**of_input, **sequences()},
        sizes(recompute_normed_x=False, recompute_uvqk=False),
    )
    output = {name: value for name, value in layer().items() if name in ("x", "output_weight")}
    output |= {"attn": numbers(ROWS, V, seed=10), "u": numbers(ROWS, V, seed=11)}
    normed = {"output_norm_weight": numbers(V, seed=12), "output_norm_bias": numbers(V, seed=13)}
    of_heads = {name: value[:HEADS] for name, value in normed.items()}
    chosen = {"heads": HEADS, "hidden_dim": HIDDEN, "precision": "ieee"}
    yield "hstu_compute_output", {**output, **normed}, {**chosen, "mul_u_activation": "sigmoid", "silu_u": True}
    yield "hstu_compute_output", {**output, **of_heads}, {**chosen, "group_norm": True, "recompute_y": False}
    columns = HEADS * (2 * ATTN + HIDDEN)
    rows = {"x": numbers(ROWS, columns), "weight": numbers(columns, seed=1), "bias": numbers(columns, seed=2)}
    yield "norm_attention", {**rows, **sequences(), **biases(HEADS)}, sizes()
    yield "norm_attention", {"x": rows["x"], **sequences()}, sizes(norm="rms_norm")
    yield "norm_attention", {**rows, **sequences(), **biases(HEADS)}, sizes(num_softmax_heads=1)


def caches():
    cached, new = offsets(3, 0, 4), 2
    of_cache = {
        "k_cache": numbers(7, HEADS * ATTN, seed=1), "v_cache": numbers(7, V, seed=2), "kv_caching_offsets": cached
    }  # fmt: skip
    heads = {name: value for name, value in sizes().items() if name != "precision"}
    rows = {"delta_k": numbers(6, HEADS * ATTN, seed=3), "delta_v": numbers(6, V, seed=4), "delta_size": new}
    yield "construct_full_kv", {**of_cache, **rows}, heads
    full = {"k": numbers(13, HEADS * ATTN, seed=5), "v": numbers(13, V, seed=6), "kv_caching_offsets": cached}
    yield "update_kv_cache", {**full, "delta_offsets": offsets(2, 2, 2)}, {**heads, "k_cache_rows": 7}
    weights = {**layer(), "x": numbers(6, WIDTH), "max_delta_len": new, "seq_offsets": offsets(5, 2, 6)}
    yield "cached_stu_layer", {**weights, **of_cache}, sizes(full_k_rows=13)
    yield "cached_stu_layer", {**weights, **of_cache}, sizes(full_k_rows=13, silu_uvqk=True, residual=False)


def gradient_programs():
    vector = {"input": numbers(16, seed=3), "beta": 0.5}
    product = {"mat1": numbers(ROWS, 24), "mat2": numbers(24, 16, seed=2), "alpha": 2.0}
    precise = {"precision": "ieee"}
    yield "addmm", {**product, **vector}, precise
    yield "addmm", {**product, "input": numbers(ROWS, 16, seed=3), "beta": 0.5}, precise
    yield "addmm", {**product, "mat2": numbers(16, 24)}, {**precise, "transpose_mat2": True}
    rows = {"jagged": numbers(ROWS, 24), "seq_offsets": offsets(*LENGTHS), "max_seq_len": LONGEST}
    yield "jagged_dense_bmm_broadcast_add", {**rows, "dense": numbers(3, 24, 16), "bias": numbers(3, 16)}, precise
    yield "jagged_dense_bmm_broadcast_add", {
        **rows, "dense": numbers(3, 16, 24), "bias": numbers(ROWS, 16)
    }, {**precise, "elementwise": True, "transpose_dense": True}  # fmt: skip
    sides = {"offsets_left": offsets(*LENGTHS), "offsets_right": offsets(2, 3, 1)}
    yield "concat_2d_jagged", {"left": numbers(ROWS, 12), "right": numbers(6, 12), **sides}, {}
    yield "concat_2d_jagged", {
        "left": numbers(ROWS, 12), "right": numbers(6, 12), **sides, "n_prefix_from_right": 2
    }, {}  # fmt: skip
    yield "split_2d_jagged", {"values": numbers(14, 12), **sides, "n_prefix_to_right": 1}, {"left_rows": ROWS}
    yield "jagged_to_padded_dense", {
        "values": numbers(ROWS, 12), "seq_offsets": offsets(*LENGTHS), "max_len": 4, "padding_value": 1.5
    }, {}  # fmt: skip
    yield "dense_to_jagged", {
        "dense": numbers(12, 12), "seq_offsets": offsets(*LENGTHS), "max_len": 4
    }, {"out_rows": ROWS}  # fmt: skip

    last = {"seq_offsets": offsets(*LENGTHS), "seq_offsets_q": offsets(2, 0, 3)}
    yield "take_last_rows", {"values": numbers(ROWS, 12), **last}, {}
    yield "place_last_rows", {"values": numbers(5, 12), **last}, {"out_rows": ROWS}


def cases():
    for kind in (layers, halves, caches, gradient_programs):
        yield from kind()


def results(value):
    return (value,) if isinstance(value, torch.Tensor) else tuple(value)


def compared(op, outs, count):
    """The results that the formula has: those that are kept for backward have none."""
    kept = {"attn", "uvqk", "normed_x", "y", "hidden_states"} - {
        "hstu_compute_uqvk": {"uvqk"}, "hstu_preprocess_and_attention": {"attn"}
    }.get(op, set())  # fmt: skip
    names = [output.name for output in hstujit._interface.interface(op, "forward").outputs]
    found = [out for name, out in zip(names, outs) if name not in kept]
    assert len(found) == count, (op, names)
    return found


@unittest.skipUnless(torch, "PyTorch is not installed")
class Formulas(unittest.TestCase):
    def test_every_program_has_a_case(self):
        programs = {op for op, _, _ in cases()}
        self.assertEqual(programs | KERNELS, set(hstujit._interface.operators()))
        self.assertEqual(programs & KERNELS, set())

    def test_results_and_gradients(self):
        for number, (op, arguments, keywords) in enumerate(cases()):
            with self.subTest(op, number=number, **keywords):
                self.compare(op, arguments, keywords)

    def compare(self, op, arguments, keywords):
        in_formula = {name: value for name, value in keywords.items() if name != "precision"}
        own, exact = ({name: leaf(value, dtype) for name, value in arguments.items()} for dtype in (None, float))
        wanted = results(getattr(formulas, op)(**exact, **in_formula))
        found = compared(op, results(getattr(ops, op)(**own, **keywords)), len(wanted))
        for index, (one, other) in enumerate(zip(found, wanted)):
            self.expect_near(one, other, f"output {index}")
        if f"{op}_backward" not in hstujit._interface.interfaces():
            return
        grads = [numbers(*out.shape, seed=20 + index) for index, out in enumerate(found)]
        names = [name for name, value in own.items() if isinstance(value, torch.Tensor) and value.requires_grad]
        gradients = torch.autograd.grad(found, [own[name] for name in names], grads)
        expected = torch.autograd.grad(wanted, [exact[name] for name in names], [grad.double() for grad in grads])
        for name, one, other in zip(names, gradients, expected):
            self.expect_near(one, other, f"gradient of {name}")

    def expect_near(self, found, wanted, what):
        self.assertEqual(found.shape, wanted.shape, what)
        self.assertLess(float((found.double() - wanted).norm() / wanted.norm().clamp(min=1e-30)), TOLERANCE, what)


def leaf(value, dtype):
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    return value.clone().to(torch.float64 if dtype is float else value.dtype).requires_grad_()


if __name__ == "__main__":
    unittest.main()
