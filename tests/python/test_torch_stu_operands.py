"""Layers with semi-local attention, a mask and a score of their own, operands, and contexts of each sequence."""

import itertools
import re
import unittest

from torch_support import torch

import hstujit

if torch:
    import test_torch_graphs
    import torch_cases
    from test_torch_stu import LENGTHS, OFFSETS, ROWS, distance, plain_layer
    from test_torch_stu_instances import launched, promised
    from torch.nn import functional as F

    from hstujit.torch import STULayer, STULayerConfig, STUStack

TARGETS = (2, 0, 3)
OPERANDS = "ts: row(int64), by_age: table(9, grad), by_distance: table(15, heads, grad), slope: head(grad), g: scalar"


def score(x, b, h, row, col, ts, by_age, by_distance, slope, g):
    age = torch.log(1.0 + (ts[row] - ts[col]).abs()).int()
    return F.silu(x + by_age[age] + by_distance[row - col + 7, h] - slope[h] * (row - col)) * g


def plain_score(x, ts, by_age, by_distance, slope, g):
    """The same, of the products (heads, n, n) of a sequence whose times are ``ts``."""
    place = torch.arange(len(ts))
    distance = place[:, None] - place
    age = torch.log(1.0 + (ts[:, None] - ts).abs()).int()
    biases = by_distance[distance + 7].movedim(-1, 0) - slope[:, None, None] * distance
    return F.silu(x + by_age[age] + biases) * g


def attention_of(valid, weigh=lambda x, sequence: F.silu(x)):
    """Attention of one sequence for ``plain_layer``. ``valid(row, col, n, targets, sequence)`` is the mask."""

    def attend(q, k, v, alpha, max_seq_len, targets, sequence):
        place = torch.arange(len(q))
        mask = valid(place[:, None], place, len(q), targets, sequence)
        weights = weigh(alpha * torch.einsum("ihd,jhd->hij", q, k), sequence) / max_seq_len
        return torch.einsum("hij,jhd->ihd", torch.where(mask, weights, 0), v)

    return attend


def targets_apart(row, col, n, targets, sequence):
    history = n - targets
    return (row == col) | ((col < row) & (col < history))


def semi_local(row, col, n, targets, sequence):
    own = (col < torch.clamp(row + 1, max=2)) | ((torch.clamp(row - 2, min=2) <= col) & (col <= row))
    return torch.where(row < n - targets, own, col < n - targets)


def near_or_first(row, col, n, targets, sequence):
    return (col <= row) & ((row - col < 3) | (col < n - targets))


@unittest.skipUnless(torch, "PyTorch is not installed")
class Layers(unittest.TestCase):
    def setUp(self):
        generator = torch.Generator().manual_seed(5)
        self.targets = torch.tensor(TARGETS)
        self.operands = {"ts": torch.randint(0, 2000, (ROWS,), generator=generator)}
        for name, size in (("by_age", (9,)), ("by_distance", (15, 2)), ("slope", (2,)), ("g", ())):
            self.operands[name] = torch.randn(size, generator=generator).requires_grad_()
        self.x = torch_cases.tensor(ROWS, 32, seed=40)

    def make(self, **more):
        torch.manual_seed(3)
        sizes = {"embedding_dim": 32, "num_heads": 2, "hidden_dim": 16, "attention_dim": 8}
        layer = STULayer(STULayerConfig(**sizes, output_dropout_ratio=0.0, precision="ieee", **more))
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        return layer

    def with_operands(self):
        return self.make(score=score, operands=OPERANDS)

    def check(self, layer, attend, call=None, operands=()):
        """The output, and gradients of x, parameters and operands, beside those of plain PyTorch in float64."""
        weights = torch_cases.tensor(ROWS, 32, seed=41)
        ours, exact = self.x.clone().requires_grad_(), self.x.double().requires_grad_()
        out = layer(ours, LENGTHS, OFFSETS, 8, self.targets, **(call or {}))
        expected = plain_layer(layer, exact, 8, self.targets, attend)
        self.assertLess(distance(out, expected), 1e-5)
        leaves = [*layer.parameters(), *operands]
        found = torch.autograd.grad((out * weights).sum(), [ours, *leaves])
        wanted = torch.autograd.grad((expected * weights).sum(), [exact, *leaves])
        for own, other in zip(found, wanted, strict=True):
            self.assertLess(distance(own, other.double()), 1e-4)

    def test_masks(self):
        text = "col <= row and (row - col < 3 or col < n - targets)"
        for mask in (text, lambda b, h, row, col, n, targets: (col <= row) & ((row - col < 3) | (col < n - targets))):
            layer = self.make(mask=mask)
            self.assertEqual(layer.config.mask, text)
            self.check(layer, attention_of(near_or_first))
        self.check(self.make(sla_k1=3, sla_k2=2), attention_of(semi_local))

    def test_a_score_of_its_own(self):
        for own in ("tanh(x)", lambda x, b, h, row, col: torch.tanh(x)):
            self.check(self.make(score=own), attention_of(targets_apart, lambda x, sequence: torch.tanh(x)))

    def weigh(self, x, sequence):
        begin, end = OFFSETS[sequence : sequence + 2].tolist()
        exact = {name: t.double() for name, t in self.operands.items()}
        return plain_score(x, exact.pop("ts")[begin:end], **exact)

    def test_operands_have_gradients(self):
        text = self.with_operands().config.score
        for says in (score, text):
            layer = self.make(score=says, operands=OPERANDS)
            leaves = [tensor for tensor in self.operands.values() if tensor.requires_grad]
            self.check(layer, attention_of(targets_apart, self.weigh), {"operands": self.operands}, leaves)
        self.operands["by_age"].requires_grad_(False)
        layer(self.x, LENGTHS, OFFSETS, 8, operands=self.operands).sum().backward()
        self.assertEqual([tensor.grad is None for tensor in self.operands.values()], [True, True, False, False, False])

    def test_contexts_of_each_sequence(self):
        contexts = torch.tensor([2, 0, 3])
        for number in (0, 4):
            layer = self.make(contextual_seq_len=number)
            found = layer(self.x, LENGTHS, OFFSETS, 8, self.targets, contextual_seq_len=contexts)
            for sequence, own in enumerate(contexts.tolist()):
                rows = slice(*OFFSETS[sequence : sequence + 2].tolist())
                offsets = torch.tensor([0, rows.stop - rows.start])
                call = self.x[rows], offsets.diff(), offsets, 8, self.targets[sequence : sequence + 1]
                self.assertLess(distance(found[rows], layer(*call, contextual_seq_len=own)), 1e-5)
            self.assertFalse(torch.allclose(found, layer(self.x, LENGTHS, OFFSETS, 8, self.targets)))

    def test_new_rows_over_a_cache(self):
        kept, last = LENGTHS - 1, OFFSETS[1:] - 1
        contexts = {"contextual_seq_len": torch.tensor([2, 0, 3])}
        cases = (
            ({"sla_k1": 3, "sla_k2": 2}, contexts, self.targets),
            ({"mask": "col <= row and (row - col < 3 or col < n - targets)"}, {}, self.targets),
            ({"score": score, "operands": OPERANDS}, {"operands": self.operands, **contexts}, None),
        )
        for fields, call, targets in cases:
            stack = STUStack([self.make(**fields), self.make(**fields)]).eval()
            with self.subTest(fields), torch.no_grad():
                whole = stack(self.x, LENGTHS, OFFSETS, 8, targets, 7, kept, **call)
                new = stack.cached_forward(self.x[last], targets, **call)
                self.assertLess(distance(new, whole[last].double()), 1e-5)

    def test_layers_of_a_stack_take_what_they_declare(self):
        other = self.make(score="silu(x - slope * (row - col))", operands="slope: head(grad)")
        stack = STUStack([self.with_operands(), other, self.make()])
        found = stack(self.x, LENGTHS, OFFSETS, 8, operands=self.operands)
        first, second, third = stack._stu_layers
        wanted = first(self.x, LENGTHS, OFFSETS, 8, operands=self.operands)
        wanted = second(wanted, LENGTHS, OFFSETS, 8, operands={"slope": self.operands["slope"]})
        self.assertTrue(torch.equal(found, third(wanted, LENGTHS, OFFSETS, 8)))
        with self.assertRaisesRegex(
            hstujit.errors.InvalidArgumentError, "^operands has w; it must have by_age, by_dis"
        ):
            stack(self.x, LENGTHS, OFFSETS, 8, operands={**self.operands, "w": self.x})

    def test_a_compiled_and_an_exported_stack(self):
        stack = STUStack([self.with_operands(), self.make(sla_k1=3, sla_k2=2)])
        call = self.x, LENGTHS, OFFSETS, 8, self.targets
        more = {"contextual_seq_len": torch.tensor([2, 0, 3]), "operands": self.operands}
        wanted = stack(*call, **more)
        leaves = [*stack.parameters(), *(tensor for tensor in self.operands.values() if tensor.requires_grad)]
        torch._dynamo.reset()
        compiled = torch.compile(stack, fullgraph=True, dynamic=True, backend="aot_eager")(*call, **more)
        self.assertTrue(torch.equal(compiled, wanted))
        for own, other in zip(*(torch.autograd.grad(out.sum(), leaves) for out in (compiled, wanted)), strict=True):
            self.assertTrue(torch.equal(own, other))
        exported = torch.export.export(stack, call, more).module()
        self.assertTrue(torch.equal(exported(*call, **more), wanted))

    def test_graphs_of_torch_fx(self):
        stack = STUStack([self.with_operands(), self.make(sla_k1=3, sla_k2=2)]).eval()

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.stack = stack

            def forward(self, x, offsets, contexts, ts, by_age, by_distance, slope, g):
                operands = {"ts": ts, "by_age": by_age, "by_distance": by_distance, "slope": slope, "g": g}
                return self.stack(x, offsets.diff(), offsets, 8, contextual_seq_len=contexts, operands=operands)

        arguments = self.x, OFFSETS, torch.tensor([2, 0, 3]), *self.operands.values()
        graph, wanted = torch.fx.symbolic_trace(Model()), Model()(*arguments)
        for called in (graph, test_torch_graphs.scripted(graph)):
            found = called(*arguments)
            self.assertTrue(torch.equal(found, wanted))
        leaf = self.operands["by_age"]
        for own, other in zip(*(torch.autograd.grad(out.sum(), leaf) for out in (found, wanted)), strict=True):
            self.assertTrue(torch.equal(own, other))

    def test_a_layer_that_is_traced_itself_has_operands_as_one_input(self):
        layer = self.with_operands()
        fixed = {"max_seq_len": 8, "num_targets": None, "max_kv_caching_len": 0, "kv_caching_lengths": None}
        graph = torch.fx.symbolic_trace(layer, concrete_args={**fixed, "contextual_seq_len": None})
        call = self.x, LENGTHS, OFFSETS, 8, None, 0, None, None, self.operands
        self.assertTrue(torch.equal(graph(*call), layer(*call)))

    def test_instances(self):
        stack = STUStack([self.with_operands(), self.make(mask="col <= row - targets")])
        calls = ((None, {}, False), (self.targets, {"contextual_seq_len": torch.tensor([2, 0, 3])}, True))
        for layer, (targets, call, contexts) in itertools.product(stack._stu_layers, calls):
            if layer.operand_names:
                call = {**call, "operands": {**self.operands, "g": self.operands["g"].detach()}}
            elif targets is None or contexts:  # the mask reads them, and has no contexts
                targets, call, contexts = self.targets, {}, False
            says = {"num_targets": targets is not None, "contexts": contexts, "dtype": torch.float32}
            with launched() as found:
                layer(self.x, LENGTHS, OFFSETS, 8, targets, **call).sum().backward()
            self.assertEqual(found, promised(layer.instances(training=8, **says)))
            with launched() as found, torch.no_grad():
                layer(self.x, LENGTHS, OFFSETS, 8, targets, 7, LENGTHS - 1, **call)
                layer.cached_forward(self.x[:3], targets, **call)
            self.assertEqual(found, promised(layer.instances(prefill=8, cached_forward=8, **says)))

    def test_mistakes_name_the_argument(self):
        sizes, around = {"embedding_dim": 32, "num_heads": 2, "hidden_dim": 16, "attention_dim": 8}, torch.ones(3)
        for fields, words in (
            ({"mask": 7}, "mask is 7; it must be a text or a function of Python"),
            ({"operands": {"g": "scalar"}}, "operands is {'g': 'scalar'}; it must be a text, such as 'ts: row(int64)'"),
            ({"operands": "g: number", "score": "x * g"}, 'operands is "g: number", but '),
            ({"score": "silu(x + w[row - col])"}, 'score is "silu(x + w[row - col])", but '),
            ({"score": lambda x, b, h, row, col: x * around[row]}, "score is <lambda>, line"),
            ({"score": lambda x, b, h, row, col, w: x * w[row, h], "operands": "w: row"}, "score is <lambda>, line"),
            ({"mask": "col <= row", "max_attn_len": 3}, "max_attn_len is 3, but mask replaces it"),
            ({"sla_k1": 2, "causal": False}, "causal is false"),
            ({"score": "x * g", "operands": "g: scalar", "backward_head_groups": 2}, "backward_head_groups is 2"),
        ):
            with (
                self.subTest(words),
                self.assertRaisesRegex(hstujit.errors.InvalidArgumentError, "^" + re.escape(words)),
            ):
                STULayerConfig(**sizes, **fields)
        layer, other = self.with_operands(), self.make(mask="col <= row - targets")
        short = {"ts": self.operands["ts"], "w": self.x}
        for called, call, words in (
            (layer, {}, "operands has nothing; it must have ts, by_age, by_distance, slope, g, as the layer's config"),
            (layer, {"operands": short}, "operands has ts, w; it must have ts, by_age, by_distance, slope, g"),
            (layer, {"operands": [1]}, "operands is [1]; it must be a mapping from names to tensors"),
            (layer, {"operands": {**self.operands, "g": 2.0}}, "g is 2.0; it must be a tensor"),
            (layer, {"operands": {**self.operands, "ts": self.operands["ts"][1:]}}, "ts.shape[0] is 12"),
            (self.make(), {"operands": short}, "operands has ts, w; it must have nothing"),
            (self.make(), {"contextual_seq_len": LENGTHS[:2]}, "contextual_seq_len.shape[0] is 2"),
            (other, {}, 'mask is "col <= row - targets", but launches take no num_targets'),
            (
                other,
                {"num_targets": LENGTHS, "contextual_seq_len": LENGTHS},
                "contextual_seq_len is set, but mask replaces it",
            ),
        ):
            with self.subTest(words), self.assertRaises(hstujit.errors.Error) as raised:
                called(self.x, LENGTHS, OFFSETS, 8, **call)
            self.assertTrue(str(raised.exception).startswith(words), str(raised.exception))
