"""hstujit.torch.attention: texts of Python functions, and what attention computes with them."""

import re
import unittest

import formulas
from torch_support import JaggedAttention, torch

if torch:
    from torch.nn import functional as F

    import hstujit.errors
    import hstujit.torch
    from hstujit.torch._tracing import Term, Unavailable, text_of

WINDOW = 8
PLACES = ("row", "col")


def mask_text(function):
    absent = [Unavailable(name, "it is not") for name in "bh"]
    names = {name: Term(name) for name in ("n", "targets")}
    return text_of("mask", function, (*absent, *map(Term, PLACES)), names, is_condition=True)


def score_text(function):
    terms = [Term(name) for name in ("x", "b", "head", *PLACES)]
    return text_of("score", function, terms, {}, is_condition=False)


def window(b, h, row, col):
    return (col <= row) & ((row - col < WINDOW) | (col % 16 == 3))


def targets_see_the_history(b, h, row, col, n, targets):
    history = n - targets
    return torch.where(row < history, col <= row, (col < history) | (col == row))


def branches(b, h, row, col):
    if row > 3:
        return col < row
    return col <= row


@unittest.skipUnless(torch, "PyTorch is not installed")
class Texts(unittest.TestCase):
    def test_operators_functions_and_methods_become_a_text(self):
        for function, text in (
            (window, "col <= row and (row - col < 8 or col % 16 == 3)"),
            (targets_see_the_history, "where(row < n - targets, col <= row, col < n - targets or col == row)"),
            (lambda b, h, row, col: ~(row < col) & (row >= 0), "not row < col and row >= 0"),
            (lambda b, h, row, col: (row - (col - 3)).abs() // 64 == 2, "abs(row - (col - 3)) // 64 == 2"),
            (lambda b, h, row, col: (row - col) // (WINDOW // 2) == torch.tensor(1), "(row - col) // 4 == 1"),
            (lambda b, h, row, col: (row == col) | True, "row == col or true"),
        ):
            with self.subTest(text=text):
                if text is None:
                    self.assertRaisesRegex(
                        hstujit.errors.InvalidArgumentError, "`==` takes numbers", mask_text, function
                    )
                else:
                    self.assertEqual(mask_text(function), text)

    def test_scores(self):
        for function, text in (
            (lambda x, b, h, row, col: F.silu(x - 0.5 * (row - col)), "silu(x - 0.5 * (row - col))"),
            (lambda x, b, h, row, col: torch.clamp(x, min=0) ** 2, "pow(max(x, 0), 2)"),
            (lambda x, b, h, row, col: x.sigmoid() / (1 + row) / 2, "sigmoid(x) / (1 + row) / 2"),
            (
                lambda x, b, h, row, col: torch.where(h == 0, x, -x.clamp(-1, 1)),
                "where(head == 0, x, -clamp(x, -1, 1))",
            ),
            (
                lambda x, b, h, row, col: x + 0.5 * (row - col).float().log2().int(),
                "x + 0.5 * int(log2(1.0 * (row - col)))",
            ),
            (lambda x, b, h, row, col: F.leaky_relu(x, 0.1) - (x - 1), "leaky_relu(x, 0.1) - (x - 1)"),
        ):
            self.assertEqual(score_text(function), text)

    def test_what_cannot_be_traced_says_which_line(self):
        for function, sentence in (
            (
                branches,
                r"mask is branches, line \d+ of test_torch_attention.py \(`if row > 3:`\): `row > 3` has no value",
            ),
            (lambda b, h, row, col: col <= row & row - col < 3, "`and` takes conditions, and `row` is a number"),
            (lambda b, h, row, col: 0 <= row - col < 5, "`row - col >= 0` has no value"),
            (lambda b, h, row, col: min(row, col) < 5, "`torch.minimum`"),
            (lambda b, h, row, col: row == b, "`b` is not there: it is not"),
            (lambda b, h, row, col: row - col, "it returns `row - col`, which is no condition"),
            (lambda b, h, row, col: torch.ones(3)[col] > 0, "reads a tensor at a place that the function computes"),
            (lambda b, h, row, col: torch.ones(3) > col, r"reads a tensor of shape \(3,\)"),
            (lambda b, h, row, col: torch.cumsum(row, 0) < col, "`cumsum` has no counterpart in a text"),
            (lambda b, h, row, col: row.sigmod() < col, 'did you mean "sigmoid"'),
            (lambda b, h, row, col: row.clamp() < col, "neither a least nor a largest value"),
            (lambda b, h, row, col: float("nan") < col, "it computes with nan"),
            (lambda b, h, row, col: int(row) < col, "`row` has no value"),
            (
                lambda row, col: col <= row,
                re.escape("mask is a function of (row, col); it is called with (b, h, row, col)"),
            ),
            (7, "mask is 7; it must be a text or a function of Python"),
        ):
            with self.subTest(sentence=sentence):
                self.assertRaisesRegex(hstujit.errors.InvalidArgumentError, sentence, mask_text, function)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Attention(JaggedAttention):
    def attend(self, *qkv, **says):
        return hstujit.torch.attention(*qkv, self.offsets, self.longest, **says)

    def with_text(self, **says):
        return torch.ops.hstujit.hstu_attention(*self.qkv, self.offsets, self.longest, 16**-0.5, **says)

    def test_heads_of_any_width(self):
        for attn, hidden in ((25, 25), (50, 3), (1, 30)):
            self.qkv = [torch.randn(101, 2, width, requires_grad=True) for width in (attn, attn, hidden)]
            self.dout = torch.randn(101, 2, hidden)
            found = hstujit.torch.attention(*self.qkv, self.offsets, self.longest, alpha=0.2)
            self.check(found, lambda q, k, v: formulas.attention(q, k, v, self.offsets, self.longest, 0.2))

    def test_a_function_is_its_text(self):
        found, wanted = self.attend(*self.qkv, mask=window), self.with_text(mask=mask_text(window))
        self.assertTrue(torch.equal(found, wanted))
        for own, other in zip(*(torch.autograd.grad(out, self.qkv, self.dout) for out in (found, wanted)), strict=True):
            self.assertTrue(torch.equal(own, other))

    def test_a_function_of_a_score_is_what_it_says(self):
        def slope(x, b, h, row, col, heads):
            return F.silu(x - (row - col) * 2.0 ** (-8.0 * (h + 1) / heads))

        def formula(q, k, v):
            parts = []
            for one, two, three in zip(*(tensor.split(self.lengths) for tensor in (q, k, v)), strict=True):
                place = torch.arange(len(one))
                distance = place[:, None] - place
                x = torch.einsum("nhd,mhd->hnm", one, two) / 4
                x = torch.stack([F.silu(x[h] - distance * 2.0 ** (-4.0 * (h + 1))) for h in range(2)])
                parts.append(torch.einsum("hnm,mhd->nhd", x.tril() / 64, three))
            return torch.cat(parts)

        self.check(self.attend(*self.qkv, score=slope), formula)

    def test_without_a_mask_it_is_causal(self):
        self.assertTrue(torch.equal(self.attend(*self.qkv), self.with_text()))
        self.assertTrue(torch.equal(self.attend(*self.qkv, max_attn_len=5), self.with_text(max_attn_len=5)))

    def test_a_compiled_and_an_exported_model_have_it(self):
        def window(b, h, row, col):
            return (col <= row) & ((row - col < 8) | (col % 16 == 3))

        class Model(torch.nn.Module):
            def forward(self, q, k, v, offsets):
                return hstujit.torch.attention(q, k, v, offsets, 64, mask=window)

        arguments = (*(tensor.detach() for tensor in self.qkv), self.offsets)
        wanted = self.with_text(mask=mask_text(window))
        self.assertTrue(torch.equal(torch.compile(Model(), fullgraph=True)(*arguments), wanted))
        self.assertTrue(torch.equal(torch.export.export(Model(), arguments).module()(*arguments), wanted))

    def test_a_compiled_call_has_the_function_that_it_is_given(self):
        class Window:
            size = 1

        def within(size):
            return lambda b, h, row, col: (col <= row) & (row - col < size)

        def within_default(size):
            return lambda b, h, row, col, size=size: (col <= row) & (row - col < size)

        def within_attribute(size):
            Window.size = size
            return lambda b, h, row, col: (col <= row) & (row - col < Window.size)

        def falling(slope):
            return lambda x, b, h, row, col: x - slope * (row - col)

        def check(what, make, values):
            compiled = torch.compile(lambda function: self.attend(*self.qkv, **{what: function}), backend="eager")
            inside = torch.compile(lambda value: self.attend(*self.qkv, **{what: make(value)}), backend="eager")
            for value in values:
                wanted = self.attend(*self.qkv, **{what: make(value)})
                with self.subTest(what=make.__name__, value=value):
                    self.assertTrue(torch.equal(compiled(make(value)), wanted))
                    self.assertTrue(torch.equal(inside(value), wanted))

        for make in (within, within_default, within_attribute):
            check("mask", make, (1, 3, 9, 2))
        check("score", falling, (0.5, 0.25, 2.0))

    def test_a_text_does_not_end_at_a_nul(self):
        with self.assertRaisesRegex(hstujit.errors.InvalidArgumentError, "mask holds a NUL character"):
            self.attend(*self.qkv, mask="col <= row\0")

    def test_a_mistake_in_a_text_has_its_column(self):
        with self.assertRaisesRegex(hstujit.errors.InvalidConfigError, 'column 8: there is no "rwo"'):
            self.attend(*self.qkv, mask="col <= rwo")


if __name__ == "__main__":
    unittest.main()
