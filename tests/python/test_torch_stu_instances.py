"""Instances that a layer says its calls use, beside those that calls launch."""

import contextlib
import ctypes
import json
import os
import re
import tempfile
import unittest
from unittest import mock

from torch_support import torch

import hstujit

if torch:
    import test_torch_driver as fakes
    import torch_cases
    from test_torch_stu import KEPT, LENGTHS, OFFSETS, ROWS

    from hstujit.torch.stu import STULayer, STULayerConfig, STUStack


class Lengths(torch.utils._python_dispatch.TorchDispatchMode if torch else object):
    """Keeps operator and ``max_seq_len`` of calls that have one."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        names = [argument.name for argument in function._schema.arguments]
        if function.namespace == "hstujit" and "max_seq_len" in names:
            given = {**dict(zip(names, arguments)), **(keywords or {})}
            self.found.add((function._schema.name.removeprefix("hstujit::"), given["max_seq_len"]))
        return function(*arguments, **(keywords or {}))


@contextlib.contextmanager
def launched():
    """A set that gets operator, direction and parameters of what the host backend computes."""
    before, lines = hstujit.default_context(), []
    hstujit.set_default_context(hstujit.Context(log=lambda _, line: lines.append(line)))
    found = set()
    try:
        yield found
    finally:
        hstujit.set_default_context(before)
    for line in lines:
        if made := re.search(r'\bop,op=(\w+),direction=(\w+),backend=host,.*spec=(".*")$', line):
            found.add((made[1], made[2], spec_of(json.loads(json.loads(made[3])))))


def spec_of(instance):
    """With every default, as a config describes it."""
    has_rows = instance["op"] in ("complete_cumsum", "hstu_compute_uqvk")
    lengths = {"rows": 1} if has_rows else {"max_seq_len": 1}
    described = hstujit.Config([{"name": "a", **lengths, **instance}]).describe()["instances"][0]["spec"]
    return tuple(sorted(described.items()))


def promised(instances):
    return {
        (instance["op"], direction, spec_of(instance))
        for instance in instances
        for direction in instance.get("directions", ["forward"])
    }


@unittest.skipUnless(torch, "PyTorch is not installed")
class Instances(unittest.TestCase):
    """STULayer.instances() are what calls launch, no more and no less."""

    CONFIGS = (
        {},
        {"target_aware": False, "use_group_norm": True, "max_attn_len": 4, "contextual_seq_len": 1},
        {"num_softmax_heads": 1},
        {"output_dropout_ratio": 0.0, **KEPT, "attn_alpha": 0.5},
        {"hidden_dim": 8, "causal": False},
    )
    TARGETS = torch.tensor([2, 0, 3]) if torch else None

    def setUp(self):
        self.x = torch_cases.tensor(ROWS, 32, seed=50).bfloat16()

    def layers(self):
        for more in self.CONFIGS:
            sizes = {"embedding_dim": 32, "num_heads": 2, "hidden_dim": 16, "attention_dim": 8, **more}
            yield STULayer(STULayerConfig(**sizes))

    def test_with_gradients(self):
        for index, layer in enumerate(self.layers()):
            targets = self.TARGETS if index < 3 else None
            with launched() as found, Lengths() as lengths:
                layer.train(index % 2 == 0)(self.x, LENGTHS, OFFSETS, 9, targets).sum().backward()
            instances = layer.instances(training=9, num_targets=targets is not None)
            self.assertEqual(found, promised(instances))
            self.assertIn(("stu_layer", instances[0]["max_seq_len"][0]), lengths.found)

    def test_without_gradients(self):
        for index, layer in enumerate(self.layers()):
            with launched() as found, torch.no_grad():
                layer.train(index == 0)(self.x, LENGTHS, OFFSETS, 8, self.TARGETS)
            self.assertEqual(found, promised(layer.instances(inference=[8, 16], num_targets=True)))

    def test_targets_only(self):
        for index, layer in enumerate(self.layers()):
            call = self.x, LENGTHS, OFFSETS, 8, self.TARGETS
            with launched() as found:
                layer.train(index % 2 == 0).forward_targets_only(*call).sum().backward()
            self.assertEqual(found, promised(layer.instances(training=8, num_targets=True, targets_only=True)))
            with launched() as found, torch.no_grad():
                layer.forward_targets_only(*call)
            self.assertEqual(found, promised(layer.instances(inference=8, num_targets=True, targets_only=True)))

    def test_a_cache(self):
        for index, layer in enumerate(self.layers()):
            layer.train(index == 0)
            with launched() as found, torch.no_grad():
                layer(self.x, LENGTHS, OFFSETS, 8, self.TARGETS, 8, LENGTHS)
            self.assertEqual(found, promised(layer.instances(prefill=8, num_targets=True)))
            instances = layer.instances(cached_forward=8 + 2, num_targets=True)
            with launched() as found, Lengths() as lengths, torch.no_grad():
                layer.cached_forward(self.x[:6], self.TARGETS, 10, LENGTHS + 2)
            self.assertEqual(found, promised(instances))
            self.assertIn(("cached_stu_layer", instances[0]["max_seq_len"][0]), lengths.found)

    def test_other_types(self):
        layer = STULayer(STULayerConfig(32, 2, 16, 8))
        cases = (
            (torch.float16, torch.float16, {"dtype": torch.float16}),
            (torch.float32, torch.bfloat16, {"weight_dtype": torch.float32}),
            (torch.bfloat16, torch.float16, {"dtype": torch.float16}),
            (torch.float32, None, {"dtype": torch.float32}),
        )
        for of_x, cast, options in cases:
            autocast = torch.autocast("cpu", cast, enabled=cast is not None)
            with self.subTest(of_x), launched() as found, autocast:
                layer(self.x.to(of_x), LENGTHS.int(), OFFSETS.int(), 8, self.TARGETS).sum().backward()
            wanted = layer.instances(training=8, num_targets=True, offsets_dtype=torch.int32, **options)
            self.assertEqual(found, promised(wanted))

    def test_a_stack_has_each_instance_once(self):
        alike, other = STULayerConfig(32, 2, 16, 8), STULayerConfig(32, 2, 16, 8, max_attn_len=4)
        stack = STUStack([STULayer(alike), STULayer(alike), STULayer(other)])
        with launched() as found:
            stack(self.x, LENGTHS, OFFSETS, 8).sum().backward()
            with torch.no_grad():
                stack(self.x, LENGTHS, OFFSETS, 8, kv_caching_lengths=LENGTHS)
        instances = stack.instances(training=8, prefill=8)
        self.assertEqual(found, promised(instances))
        self.assertEqual(
            [instance["name"] for instance in instances],
            ["layer-0-training", "layer-0-prefill", "layer-0-offsets", "layer-0-keep-16", "layer-0-keep-32",
             "layer-2-training", "layer-2-prefill"],
        )  # fmt: skip
        report = hstujit.check_config(instances, arch="H200")
        self.assertTrue(report)

    def test_alpha_is_that_of_calls(self):
        layer = STULayer(STULayerConfig(32, 2, 16, 8))
        instance = layer.instances(inference=8, num_targets=3)[0]
        described = hstujit.Config([instance]).describe()["instances"][0]
        self.assertEqual((described["alpha"], described["num_targets"]), (layer._alpha, 3))


@unittest.skipUnless(
    torch and fakes.DRIVER and fakes.FUNCTIONS,
    "PyTorch is not installed, or HSTUJIT_FAKE_CUDA or HSTUJIT_FAKE_TORCH names no library",
)
class Images(unittest.TestCase):
    """On the driver of test_torch_driver.py, which computes nothing."""

    def test_a_cache_of_the_instances_has_every_kernel(self):
        config = STULayerConfig(64, 4, 16, 16, output_dropout_ratio=0.2)
        stack = STUStack([STULayer(config), STULayer(config)])
        x, offsets = torch_cases.tensor(50, 64).bfloat16().requires_grad_(), torch.tensor([0, 20, 50])
        lengths, targets = offsets.diff(), torch.tensor([4, 4])
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, HSTUJIT_CUDA_DRIVER=fakes.DRIVER):
            trained = stack.instances(training=64, num_targets=True)
            served = stack.eval().instances(
                inference=64, prefill=64, cached_forward=64 + 8, num_targets=True, name="served"
            )
            hstujit.prewarm(trained + served, context=hstujit.Context(cache_dir=folder))
            self.on_the_fake_driver(hstujit.Context(cache_dir=folder, on_miss="fail"))
            stack.train()(x, lengths, offsets, 64, targets).sum().backward()
            stack.eval()
            with torch.no_grad():
                stack(x, lengths, offsets, 64, targets)
                stack(x, lengths, offsets, 64, targets, 64, lengths)
                for layer in stack._stu_layers:
                    layer.kv_caching_offsets = offsets  # which nothing has computed
                self.assertEqual(stack.cached_forward(x[:16], targets, 64 + 8, lengths + 8).shape, (16, 64))
                with self.assertRaises(hstujit.errors.CacheMissError):
                    stack(x, lengths, offsets, 64)

    def on_the_fake_driver(self, context):
        fakes.Fakes(self)
        self.addCleanup(hstujit.set_default_context, hstujit.default_context())
        hstujit.set_default_context(context)
        driver, primary = ctypes.CDLL(fakes.DRIVER), ctypes.c_void_p()
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(primary), 0)
        driver.cuCtxPushCurrent_v2(primary)
        self.addCleanup(driver.cuCtxPopCurrent_v2, ctypes.byref(primary))
