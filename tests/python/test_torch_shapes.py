"""Wrong shapes while PyTorch traces: what a plain call says of them is said of tensors without data, too."""

import unittest

from torch_support import torch

from hstujit import errors

if torch:
    import torch_cases

    import hstujit.torch  # noqa: F401

    ops = torch.ops.hstujit


# Operators of whose tensors none has to be as long as another, whatever offsets say.
ANY = {
    "bias_add_backward",
    "complete_cumsum",
    "dense_to_jagged_backward",
    "jagged_dense_broadcast_add_backward",
    "jagged_to_padded_dense",
    "silu",
}


class Recorder(torch.utils._python_dispatch.TorchDispatchMode if torch else object):
    """Keeps operator and arguments, by name, of each call."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        if function.namespace == "hstujit":
            names = [argument.name for argument in function._schema.arguments]
            self.calls.append((function, {**dict(zip(names, arguments)), **(keywords or {})}))
        return function(*arguments, **(keywords or {}))


def calls():
    """One of every operator, forward and backward."""
    cases = {op: (arguments, keywords) for _, op, arguments, keywords in reversed(list(torch_cases.cases()))}
    for op, case in cases.items():
        arguments, keywords = torch_cases.with_gradients(op, *case)
        with Recorder() as recorder:
            outs = getattr(ops, op)(*arguments, **keywords)
            outs = [outs] if isinstance(outs, torch.Tensor) else outs
            if with_gradient := [out.sum() for out in outs if out.requires_grad]:
                sum(with_gradient).backward()
        for function, given in recorder.calls:
            yield (
                function,
                {name: value.detach() if isinstance(value, torch.Tensor) else value for name, value in given.items()},
            )


def holds(axis, given):
    """Whether the flags of a call let the size of this axis be a parameter."""
    return not any(given.get(flag) for flag in axis.get("unless", ())) and (
        "when" not in axis or given.get(axis["when"])
    )


def axes_of(function, given):
    """Name and axis of each tensor but where its size says the instance: others are wrong beside it then."""
    name = function._schema.name.removeprefix("hstujit::")
    described = hstujit._interface.interface(*hstujit._interface.interfaces()[name])
    sizes = ([axis for axis in axes if holds(axis, given)] for axes in described.sizes.values())
    found = (next((axis for axis in axes if given.get(axis["argument"]) is not None), None) for axes in sizes)
    origins = {(axis["argument"], axis["axis"]) for axis in found if axis}
    for name, tensor in given.items():
        for axis in range(tensor.dim() if isinstance(tensor, torch.Tensor) else 0):
            if (name, axis) not in origins:
                yield name, axis


def sentence_of(function, given):
    try:
        function(**given)
    except errors.InvalidArgumentError as error:
        return str(error)
    return ""


def on_meta(given):
    return {name: value.to("meta") if isinstance(value, torch.Tensor) else value for name, value in given.items()}


class Product(torch.nn.Module if torch else object):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(48, 64))

    def forward(self, x):
        return ops.addmm(x, self.weight, 1.0)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Shapes(unittest.TestCase):
    OF_PRODUCT = r"mat2.shape\[0\] is 48; it must be 64, shape \(64, 64\)"

    def test_each_axis_of_each_tensor_of_each_operator(self):
        """Twice as long. Sentences about values, such as those of offsets, come at a launch alone."""
        refused = set()
        for function, given in calls():
            for name, axis in axes_of(function, given):
                tensor = given[name]
                shape = [size * (1 + (axis == index)) for index, size in enumerate(tensor.shape)]
                wrong = {**given, name: torch.zeros(shape, dtype=tensor.dtype)}
                sentence = sentence_of(function, wrong)
                expected = "" if "_offsets[" in sentence else sentence
                with self.subTest(function=function, name=name, axis=axis):
                    self.assertEqual(sentence_of(function, on_meta(wrong)), expected)
                if expected:
                    refused.add(function._schema.name)
        every = {f"hstujit::{name}" for name in hstujit._interface.interfaces()}
        self.assertEqual(every - refused, {f"hstujit::{name}" for name in ANY})

    def test_offsets_without_elements(self):
        x, offsets = torch.zeros(8, 16, device="meta"), torch.zeros(0, dtype=torch.int64, device="meta")
        words = r"seq_offsets.shape\[0\] is 0; it must be B\+1, at least 1, shape \(B\+1\)"
        with self.assertRaisesRegex(errors.InvalidArgumentError, words):
            ops.jagged_to_padded_dense(x, offsets, 4)

    def test_more_sequences_than_a_launch_takes(self):
        most = 2**28
        x, one = torch.zeros(8, 16), torch.zeros(1, dtype=torch.int64)
        for sequences in (most, most + 1):
            given = {"values": x, "seq_offsets": one.expand(sequences + 1), "max_len": 4}
            with self.subTest(sequences=sequences):
                if sequences == most:
                    self.assertEqual(ops.jagged_to_padded_dense(**on_meta(given)).shape, (4 * most, 16))
                else:
                    words = rf"seq_offsets is of {sequences} sequences; allowed: at most {most}"
                    with self.assertRaisesRegex(errors.InvalidArgumentError, words):
                        ops.jagged_to_padded_dense(**on_meta(given))

    def test_sizes_that_have_a_bound(self):
        """Such as rows of tables. None of the tensors has memory."""
        refused = 0
        for function, given in calls():
            bound = set()
            name = function._schema.name.removeprefix("hstujit::")
            for argument in hstujit._interface.interface(*hstujit._interface.interfaces()[name]).inputs:
                for axis, size in enumerate(argument.shape):
                    tensor = given.get(argument.name)
                    if size.max_size is None or tensor is None or size.symbols in bound:
                        continue
                    bound.add(size.symbols)  # others must be as the first one
                    shape = [*tensor.shape[:axis], size.max_size + 1, *tensor.shape[axis + 1 :]]
                    wrong = on_meta(given)
                    wrong[argument.name] = torch.empty(shape, dtype=tensor.dtype, device="meta")
                    with self.subTest(function=function, name=argument.name):
                        sentence = sentence_of(function, wrong)
                        self.assertIn(f", at most {size.max_size}, ", sentence)
                        if size.max_size < 2**28:  # others have outputs as large
                            one = torch.zeros(1, dtype=tensor.dtype)
                            launched = {**given, argument.name: one.expand(shape)}
                            self.assertEqual(sentence_of(function, launched), sentence)
                    refused += 1
        self.assertGreater(refused, 0)

    def test_lengths_are_rows_and_may_be_more(self):
        lengths = torch.empty(2**28 + 1, dtype=torch.int32, device="meta")
        self.assertEqual(ops.complete_cumsum(lengths).shape, (2**28 + 2,))

    def test_numbers_that_no_launch_takes(self):
        """Tries each number of each operator that has a bound, but those that say how large an output is to be."""
        most, refused = 2**28, set()
        for function, given in calls():
            for name, value in given.items():
                if isinstance(value, bool) or not isinstance(value, int) or name.endswith("_rows"):
                    continue
                wrong = {**given, name: most + 1}
                try:
                    sentence = sentence_of(function, wrong)
                except errors.InvalidConfigError:  # it is one of an instance, which both kinds of calls make
                    continue
                if f" is {most + 1}; it must be " in sentence:
                    with self.subTest(function=function, name=name):
                        self.assertEqual(sentence_of(function, on_meta(wrong)), sentence)
                    refused.add(name)
        self.assertLessEqual({"max_seq_len", "max_len"}, refused)

    def test_sizes_that_are_symbols_may_be_any(self):
        mode = torch._subclasses.FakeTensorMode(shape_env=torch.fx.experimental.symbolic_shapes.ShapeEnv())
        with mode:
            rows = mode.shape_env.create_unbacked_symint
            q, k, v = (torch.empty(rows(), 2, 16) for _ in range(3))
            offsets = torch.empty(rows(), dtype=torch.int64)
            self.assertEqual(ops.hstu_attention(q, k, v, offsets, 8, 0.25).shape[1:], (2, 16))
            with self.assertRaisesRegex(errors.InvalidArgumentError, r"k.shape\[2\] is 24; it must be 16"):
                ops.hstu_attention(q, k.new_empty(rows(), 2, 24), v, offsets, 8, 0.25)

    def test_compiled_with_gradients(self):
        x, offsets = torch.zeros(8, 16), torch_cases.offsets()
        q, of_rows, of_columns = (torch.zeros(rows, 2, columns) for rows, columns in ((8, 16), (7, 16), (8, 24)))
        for call, trained, words in (
            (lambda w: ops.addmm(x.repeat(1, 4), w, 1.0), torch.zeros(48, 64), self.OF_PRODUCT),
            (lambda w: ops.layer_norm(x, w, w), torch.zeros(8), r"weight.shape\[0\] is 8; it must be 16"),
            (lambda k: ops.hstu_attention(q, k, q, offsets, 8, 0.25), of_rows, r"k.shape\[0\] is 7; it must be L = 8"),
            (lambda k: ops.hstu_attention(q, k, q, offsets, 8, 0.25), of_columns, r"k.shape\[2\] is 24; it must be 16"),
        ):
            for dynamic in (None, True) if "= 8" not in words else (None,):  # a number of rows is a symbol then
                torch._dynamo.reset()
                compiled = torch.compile(call, backend="aot_eager", dynamic=dynamic)
                with self.subTest(words=words), self.assertRaisesRegex(Exception, words):
                    compiled(trained.clone().requires_grad_())

    def test_exported(self):
        of_rows = {0: torch.export.Dim("rows", min=2, max=1000)}
        for shapes in (None, (of_rows,)):
            with self.assertRaisesRegex(Exception, self.OF_PRODUCT):
                torch.export.export(Product(), (torch.zeros(7, 64),), dynamic_shapes=shapes, strict=False)
