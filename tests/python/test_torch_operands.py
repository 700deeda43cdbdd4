"""Tensors that a score reads: their kinds, attention with them, and their gradients."""

import unittest

from torch_support import JaggedAttention, torch

if torch:
    from torch.nn import functional as F

    import hstujit.errors
    import hstujit.torch
    from hstujit.torch._autograd import with_gradients
    from hstujit.torch._operands import Reads, declared, facts_of
    from hstujit.torch._tracing import Term, text_of

    ops = torch.ops.hstujit

TEXT = (
    "silu(x + by_age[int(log(1.0 + abs(ts[row + 1] - ts[col])))] + by_distance[row - col + 64] - slope * (row - col)"
    " + g * a[col])"
)
OPERANDS = (
    "ts: row(int64), by_age: table(9, grad), by_distance: table(129, heads, grad), slope: head(grad), g: scalar(grad), "
    "a: row(heads, grad)"
)


def score(x, b, h, row, col, ts, by_age, by_distance, slope, g, a):
    age = torch.log(1.0 + (ts[row + 1] - ts[col]).abs()).int()
    bias = by_age[age] + by_distance[row - col + 64, h] - slope[h] * (row - col)
    return F.silu(x + bias + g * a[col, h])


def traced(function, *tensors, q=None, **named):
    """The text of a function, and its declarations."""
    q = torch.zeros(40, 2, 16) if q is None else q
    reads = Reads([facts_of(name, tensor, q, len(q)) for name, tensor in named.items()], q, len(q))
    terms = [Term(name) for name in ("x", "b", "head", "row", "col")]
    text = text_of("score", function, terms, reads.named, is_condition=False, reader=reads)
    return text, declared({**named, **reads.tensors}, reads.kinds(), q)[0]


@unittest.skipUnless(torch, "PyTorch is not installed")
class Kinds(unittest.TestCase):
    def test_how_a_tensor_is_read_says_its_kind(self):
        ts, big, slope = torch.arange(40), torch.zeros(129, dtype=torch.bfloat16), torch.zeros(2, requires_grad=True)
        rows, pairs = torch.zeros(40, 2, dtype=torch.float16), torch.zeros(3, 1, 9, 9, dtype=torch.float16)
        for function, text, operands in (
            (lambda x, b, h, row, col: x + ts[row + 1] - ts[col], "x + operand0[row + 1] - operand0[col]",
             "operand0: row(int64)"),
            (lambda x, b, h, row, col: x + hstujit.torch.table(ts)[row], "x + operand0[row]",
             "operand0: table(40, int64)"),
            (lambda x, b, h, row, col: x * slope[h] + big[h], "x * operand0 + operand1[head]",
             "operand0: head(grad), operand1: table(129, bf16)"),
            (lambda x, b, h, row, col: rows[row, h] * x, "operand0[row] * x", "operand0: row(fp16, heads)"),
            (lambda x, b, h, row, col: hstujit.torch.table(slope.view(1, 2))[row, h] * x, "operand0[row] * x",
             "operand0: table(1, heads, grad)"),
            (
                lambda x, b, h, row, col: x + big[ts[row] - ts[col]] + big[(ts[row] // 2).int()],
                "x + operand1[operand0[row] - operand0[col]] + operand1[int(operand0[row] // 2)]",
                "operand0: row(int64), operand1: table(129, bf16)",
            ),
            (lambda x, b, h, row, col: x * slope[:1].detach(), "x * operand0", "operand0: scalar"),
            (lambda x, b, h, row, col: slope[0] * x, "operand0 * x",
             "operand0: scalar(grad)"),
            (lambda x, b, h, row, col: x * slope[b] + hstujit.torch.sequence(big)[b], "x * operand0 + operand1",
             "operand0: sequence(grad), operand1: sequence(bf16)"),
            (lambda x, b, h, row, col: x + pairs[b, h, row, col], "x + operand0[row, col]",
             "operand0: pair(fp16, heads=1)"),
        ):  # fmt: skip
            with self.subTest(text=text):
                self.assertEqual(traced(function), (text, operands))

    def test_an_element_of_each_sequence_is_named_or_read_at_b(self):
        own = torch.zeros(2)
        says = traced(lambda x, b, h, row, col, own: x + own, own=hstujit.torch.sequence(own))
        self.assertEqual(says, ("x + own", "own: sequence"))

    def test_named_ones_are_asked_for(self):
        text, operands = traced(
            lambda x, b, h, row, col, w, g: x * w[row - col, h] + g, w=torch.zeros(7, 1), g=torch.ones(())
        )
        self.assertEqual((text, operands), ("x * w[row - col] + g", "w: table(7, heads=1), g: scalar"))

    def test_a_text_says_them_too(self):
        sizes = {"ts": (40,), "by_age": (9,), "by_distance": (129, 2), "slope": (2,), "g": (1,), "a": (40, 2)}
        q = torch.zeros(40, 2, 16)
        reads = Reads([facts_of(name, torch.zeros(size), q, 40) for name, size in sizes.items()])
        for operand in reads.named.values():
            operand.read_in(TEXT)
        self.assertEqual(reads.kinds(), ("row", "table", "table", "head", "scalar", "row"))
        clamped = Reads([facts_of("ts", torch.zeros(40), q, 40)])
        clamped.named["ts"].read_in("silu(x + ts[min(row + 1, n - 1)] - ts[max(col - 1, 0)] - ts[clamp(row, 0, 7)])")
        self.assertEqual(clamped.kinds(), ("row",))

    def test_the_kind_follows_from_the_index_alone(self):
        """Whatever the sizes are: a batch may have as many rows as a table has entries."""
        ts, ones = torch.arange(40), torch.zeros(40)
        for function in (
            lambda x, b, h, row, col: x + ts[row] + ts[row // 2],
            lambda x, b, h, row, col: x + ts[row * 1],
            lambda x, b, h, row, col: x + ts[39 - col],
        ):
            with self.assertRaisesRegex(
                hstujit.errors.InvalidArgumentError, "may be a row of the sequence or an entry"
            ):
                traced(function)
        short = torch.zeros(39)
        self.assertRaisesRegex(
            hstujit.errors.InvalidArgumentError, "has not as many elements as the batch has rows", traced,
            lambda x, b, h, row, col: x + short[row],
        )  # fmt: skip
        for index in (lambda row, col: row - col, lambda row, col: ts[row] - ts[col]):
            declared = traced(lambda x, b, h, row, col, index=index: x + ones[index(row, col)])[1]
            self.assertIn("table(40)", declared)
        self.assertEqual(traced(lambda x, b, h, row, col: x + hstujit.torch.row(ts)[row // 2])[1],
                         "operand0: row(int64)")  # fmt: skip
        self.assertEqual(traced(lambda x, b, h, row, col: x + hstujit.torch.table(ts)[row - col])[1],
                         "operand0: table(40, int64)")  # fmt: skip

    def test_what_cannot_be_read_says_which_line(self):
        plain, of_heads = torch.zeros(9), torch.zeros(9, 2)
        for function, sentence in (
            (lambda x, b, h, row, col: x + plain, r"line \d+ of test_torch_operands.py .*it must read an element"),
            (lambda x, b, h, row, col: x + of_heads[row], "at 1 indices; the tensor has 2 axes"),
            (lambda x, b, h, row, col: x + of_heads[row, col], "at `col` of its second axis, which is that of heads"),
            (lambda x, b, h, row, col: x + plain[row < col], "takes numbers, and `row < col` is a condition"),
        ):
            with self.subTest(sentence=sentence):
                self.assertRaisesRegex(hstujit.errors.InvalidArgumentError, sentence, traced, function)
        self.assertRaisesRegex(
            hstujit.errors.InvalidArgumentError, "plain, which neither the score nor the mask reads", traced,
            lambda x, b, h, row, col: x, plain=plain,
        )  # fmt: skip

    def test_gradients_are_asked_for_by_their_word(self):
        text = "ts: row(int64), w:table( 9, grad ,heads=2), slope: head(grad), g: scalar"
        self.assertEqual(
            with_gradients(text, (False, True, False, True)),
            "ts: row(int64), w: table(9, heads=2, grad), slope: head, g: scalar(grad)",
        )


@unittest.skipUnless(torch, "PyTorch is not installed")
class Attention(JaggedAttention):
    def setUp(self):
        super().setUp()
        generator = torch.Generator().manual_seed(2)
        ts = torch.cat([torch.randint(0, 3000, (n,), generator=generator).sort().values for n in self.lengths])
        self.tensors = {"ts": ts}
        for name, size in (("by_age", (9,)), ("by_distance", (129, 2)), ("slope", (2,)), ("g", (1,)), ("a", (101, 2))):
            self.tensors[name] = torch.randn(size, generator=generator).mul_(0.3).requires_grad_()
        self.real = [tensor for name, tensor in self.tensors.items() if name != "ts"]

    def attend(self, score, **operands):
        return hstujit.torch.attention(*self.qkv, self.offsets, self.longest, score=score, operands=operands)

    def formula(self, q, k, v, by_age, by_distance, slope, g, a):
        parts = []
        split = (tensor.split(self.lengths) for tensor in (q, k, v, a, self.tensors["ts"]))
        for one, two, three, factors, ts in zip(*split, strict=True):
            place = torch.arange(len(one))
            distance = place[:, None] - place
            following = torch.cat([ts[1:], ts.new_zeros(1)])[: len(ts)]
            age = torch.log(1.0 + (following[:, None] - ts).abs().float()).int().clamp(0, 8)
            x = torch.einsum("nhd,mhd->hnm", one, two) / 4
            x = x + by_age[age] + by_distance[distance + 64].movedim(-1, 0) - slope[:, None, None] * distance
            x = F.silu(x + g * factors.T[:, None, :])
            parts.append(torch.einsum("hnm,mhd->nhd", x.tril() / 64, three))
        return torch.cat(parts)

    def test_a_text_and_a_function_compute_the_formula(self):
        for says in (TEXT, score):
            self.check(self.attend(says, **self.tensors), self.formula, *self.real)

    def test_tensors_around_a_function_are_read(self):
        named = dict(self.tensors)
        found = self.attend(lambda x, b, h, row, col: score(x, b, h, row, col, **named))
        self.check(found, self.formula, *self.real)

    def test_an_element_of_each_sequence_has_a_gradient(self):
        own = torch.randn(len(self.lengths), generator=torch.Generator().manual_seed(3)).requires_grad_()

        def formula(q, k, v, own):
            parts = []
            split = (tensor.split(self.lengths) for tensor in (q, k, v))
            for one, two, three, element in zip(*split, own, strict=True):
                x = torch.einsum("nhd,mhd->hnm", one, two) / 4
                parts.append(torch.einsum("hnm,mhd->nhd", F.silu(x * element).tril() / self.longest, three))
            return torch.cat(parts)

        sequence = hstujit.torch.sequence(own)
        self.check(self.attend("silu(x * own)", own=sequence), formula, own)
        self.check(self.attend(lambda x, b, h, row, col: F.silu(x * own[b])), formula, own)

    def test_an_element_of_each_pair_has_a_gradient(self):
        size = len(self.lengths), 2, self.longest, self.longest
        bias = torch.randn(size, generator=torch.Generator().manual_seed(4)).requires_grad_()

        def formula(q, k, v, bias):
            parts = []
            split = (tensor.split(self.lengths) for tensor in (q, k, v))
            for one, two, three, each in zip(*split, bias, strict=True):
                n = len(one)
                x = F.silu(torch.einsum("nhd,mhd->hnm", one, two) / 4 + each[:, :n, :n])
                parts.append(torch.einsum("hnm,mhd->nhd", x.tril() / self.longest, three))
            return torch.cat(parts)

        self.check(self.attend("silu(x + w[row, col])", w=bias), formula, bias)
        self.check(self.attend(lambda x, b, h, row, col: F.silu(x + bias[b, h, row, col])), formula, bias)

    def test_the_operator_adds_the_gradients_that_are_required(self):
        def attend(text):
            return ops.hstu_attention(
                *self.qkv, self.offsets, self.longest, 0.25, score=TEXT, operands=text,
                operand_tensors=tuple(self.tensors.values()),
            )  # fmt: skip

        out = attend(OPERANDS.replace(", grad", "").replace("(grad)", ""))
        self.check(out, self.formula, *self.real)
        out = attend(OPERANDS)
        self.check(out, self.formula, *self.real)
        detached = [tensor.detach() for tensor in self.qkv]
        out = ops.hstu_attention(
            *detached, self.offsets, self.longest, 0.25, score="x * g", operands="g: scalar",
            operand_tensors=[self.tensors["g"]],
        )  # fmt: skip
        self.assertTrue(out.requires_grad)

    def test_backward_lists_gradients_in_the_order_of_declaration(self):
        operands = {name: tensor.detach() for name, tensor in self.tensors.items()}
        given = [tensor.detach() for tensor in self.qkv]
        for text, names in ((OPERANDS, list(operands)[1:]), (OPERANDS.replace("table(9, grad)", "table(9)"), None)):
            gradients = ops.hstu_attention_backward(
                *given, self.dout, self.offsets, self.longest, 0.25, score=TEXT, operands=text,
                operand_tensors=list(operands.values()),
            )[5:]  # fmt: skip
            wanted = [operands[name].shape for name in names or list(operands)[2:]]
            self.assertEqual([gradient.shape for gradient in gradients], wanted)
        self.assertEqual(ops.hstu_attention_backward(*given, self.dout, self.offsets, self.longest, 0.25)[5:], [])

    def test_other_operators_that_attend_have_them(self):
        """New rows alone, and the first half of a layer beside its two steps."""
        table = self.tensors["by_distance"]
        says = {"score": "silu(x + w[row - col + 64])", "operands": "w: table(129, heads)", "operand_tensors": [table]}
        offsets, longest = torch.tensor([0, 40, 80]), self.longest
        q, k, v = (tensor.detach()[:80] for tensor in self.qkv)
        whole = ops.hstu_attention(q, k, v, offsets, longest, 0.25, **says)
        new = torch.cat([q[38:40], q[78:]])
        last = ops.delta_hstu_attention(new, k, v, offsets, longest, 2, 0.25, **says)
        self.assertLess((last - torch.cat([whole[38:40], whole[78:]])).abs().max(), 1e-5)

        x, weight = torch.randn(80, 32), torch.randn(32, 128) * 0.1
        norm, sizes = (torch.ones(32), torch.zeros(32)), {"heads": 2, "attn_dim": 16, "hidden_dim": 16}
        _, _, _, out = ops.hstu_preprocess_and_attention(
            x, norm[0], weight, offsets, longest, 0.25, norm[1], **sizes, precision="ieee", **says
        )
        _, uvqk = ops.hstu_compute_uqvk(x, norm[0], weight, norm[1], **sizes, precision="ieee")
        _, v, q, k = (rows.reshape(80, 2, 16) for rows in uvqk.split(32, 1))
        wanted = ops.hstu_attention(q, k, v, offsets, longest, 0.25, precision="ieee", **says).flatten(1)
        self.assertLess((out.flatten(1) - wanted).abs().max(), 1e-5)
        own, other = (torch.autograd.grad(rows, table, torch.ones_like(rows))[0] for rows in (out, wanted))
        self.assertGreater(other.norm(), 0)
        self.assertLess((own - other).norm() / other.norm(), 1e-3)

    def test_autocast_leaves_tables_as_they_are(self):
        with torch.autocast("cpu", torch.bfloat16):
            out = self.attend(TEXT, **self.tensors)
        self.assertEqual(out.dtype, torch.bfloat16)
        (gradient,) = torch.autograd.grad(out, self.tensors["by_age"], self.dout.bfloat16())
        self.assertEqual(gradient.dtype, torch.float32)
        exact = self.formula(*(tensor.detach().double() for tensor in (*self.qkv, *self.real)))
        self.assertLess((out.double() - exact).norm() / exact.norm(), 2e-2)

    def test_a_compiled_and_an_exported_model_have_them(self):
        attend, longest = hstujit.torch.attention, self.longest

        class Model(torch.nn.Module):
            def __init__(self, tensors):
                super().__init__()
                for name, tensor in tensors.items():
                    setattr(self, name, torch.nn.Parameter(tensor.detach().clone(), tensor.is_floating_point()))

            def forward(self, q, k, v, offsets, ts, a):
                named = {"ts": ts, "by_age": self.by_age, "by_distance": self.by_distance, "slope": self.slope}
                return attend(q, k, v, offsets, longest, score=score, operands={**named, "g": self.g, "a": a})

        rows = {"ts", "a"}
        model = Model({name: tensor for name, tensor in self.tensors.items() if name not in rows})
        arguments = (
            *(tensor.detach() for tensor in self.qkv),
            self.offsets,
            *(self.tensors[name] for name in ("ts", "a")),
        )
        wanted = self.attend(score, **self.tensors)
        compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")(*arguments)
        self.assertTrue(torch.equal(compiled, wanted))
        parameters = [model.by_age, model.by_distance, model.slope, model.g]
        own = torch.autograd.grad(compiled, parameters, self.dout)
        other = torch.autograd.grad(
            wanted, [self.tensors[n] for n in ("by_age", "by_distance", "slope", "g")], self.dout
        )
        for one, two in zip(own, other, strict=True):
            self.assertTrue(torch.equal(one, two))
        arguments = tuple(tensor.detach() for tensor in arguments)
        exported = torch.export.export(model, arguments).module()
        self.assertTrue(torch.equal(exported(*arguments), wanted))

    def test_errors_name_the_operand(self):
        refused = hstujit.errors.InvalidArgumentError
        ts, by_age = self.tensors["ts"], self.tensors["by_age"]
        text = "x + by_age[ts[row]]"
        for tensors, sentence in (
            ([ts], "by_age is missing"),
            ([ts, by_age, ts], r"operands\[2\] is not declared in operands"),
            ([ts.int(), by_age], "ts has dtype int32; it must be int64"),
            ([ts, by_age[:, None]], r"by_age has rank 2, shape \(9, 1\); it must be \(9\)"),
            ([ts, by_age[1:]], r"by_age.shape\[0\] is 8"),
            ([ts[1:], by_age], r"ts.shape\[0\] is 100"),
        ):
            for mode in ("eager", "fake"):
                with self.subTest(sentence=sentence, mode=mode), self.assertRaisesRegex(refused, sentence):
                    call = {"score": text, "operands": "ts: row(int64), by_age: table(9)", "operand_tensors": tensors}
                    given = (*self.qkv, self.offsets, self.longest, 0.25)
                    if mode == "eager":
                        ops.hstu_attention(*given, **call)
                        continue
                    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
                        ops.hstu_attention(*given, **call)
        with self.assertRaisesRegex(refused, "operands has ts, and there is no score"):
            self.attend(None, ts=ts)
        with self.assertRaisesRegex(refused, "flags has dtype bool"):
            self.attend("x * flags[row]", flags=ts > 3)
        with self.assertRaisesRegex(refused, "ts is 7; it must be a tensor"):
            self.attend("x * ts", ts=7)

    def test_arrays_are_given_by_name(self):
        q, k, v = (tensor.detach().numpy() for tensor in self.qkv)
        given = q, k, v, self.offsets.numpy(), self.longest, 0.25
        arrays = {name: tensor.detach().numpy() for name, tensor in self.tensors.items()}
        found = hstujit.hstu_attention(*given, score=TEXT, operands=OPERANDS, **arrays)
        wanted = self.attend(TEXT, **self.tensors).detach().numpy()
        self.assertLess(abs(found - wanted).max(), 1e-6)
        with self.assertRaisesRegex(hstujit.errors.InvalidArgumentError, "by_agee is not declared in operands"):
            hstujit.hstu_attention(*given, score=TEXT, operands=OPERANDS, **arrays, by_agee=arrays["by_age"])
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'by_age'"):
            hstujit.hstu_attention(*given, by_age=arrays["by_age"])


if __name__ == "__main__":
    unittest.main()
