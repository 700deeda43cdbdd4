"""examples/train_ranker.py: both trainings have one curve, in a process and in two, and a wrong curve is noticed."""

import ctypes
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import support
from torch_support import torch

import hstujit

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

if torch:
    import test_torch_driver as fakes
    import torch_cases
    import train_ranker

    from hstujit.torch import STULayer, STULayerConfig


@unittest.skipUnless(torch, "PyTorch is not installed")
class Trainings(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_example(self, *options, launcher=()):
        command = [sys.executable, *launcher, str(EXAMPLES / "train_ranker.py"), "--device", "cpu", *options]
        environment = {**os.environ, "HSTUJIT_CACHE_DIR": str(self.folder)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def run_here(self, function, *options):
        """In this process, which has imported PyTorch."""
        return support.run_main(function, "train_ranker.py", "--device", "cpu", *options)

    def check(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [row.split() for row in re.findall(r"^ +\d+ .*", done.stdout, flags=re.M)]
        for plain, ours in ((float(row[1]), float(row[2])) for row in rows):
            self.assertAlmostEqual(plain, ours, delta=3 * train_ranker.TOLERANCE)
        self.assertLess(float(rows[-1][2]), 0.8 * float(rows[0][2]), done.stdout)
        self.assertIn("both curves agree", done.stdout)
        self.assertIn("nothing is frozen", done.stdout)
        self.assertEqual(done.stdout.count("not measured"), 2)

    def test_in_one_process_and_its_picture(self):
        picture = self.folder / "curves.png"
        if importlib.util.find_spec("matplotlib"):
            self.check(self.run_example("--steps", "20", "--plot", str(picture)))
            self.assertEqual(picture.read_bytes()[:4], b"\x89PNG")
        else:
            self.check(self.run_example("--steps", "20"))
            code, printed = self.run_here(train_ranker.parse, "--plot", str(picture))
            self.assertEqual(code, 2)
            self.assertIn("pip install matplotlib", printed)

    def test_in_two_processes(self):
        launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
        done = self.run_example("--steps", "16", launcher=launcher)
        self.check(done)
        self.assertIn("2 x 32 users", done.stdout)

    def test_fewer_steps_than_a_mean_has(self):
        code, printed = self.run_here(train_ranker.main, "--steps", "3", "--batch", "4")
        self.assertEqual(code, 0, printed)
        self.assertIn("no mean of up to 3 steps differs", printed)

    def test_mistakes_are_sentences(self):
        code, printed = self.run_here(train_ranker.parse, "--width", "42")
        self.assertEqual(code, 2)
        self.assertIn("--width is 42; it must be a multiple of 4, the heads", printed)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Comparison(unittest.TestCase):
    def test_curves_that_agree(self):
        self.assertIsNone(train_ranker.difference([0.7, 0.5], [0.701, 0.499], 0.01))

    def test_curves_that_diverge(self):
        plain, ours = [0.7, 0.6, 0.5, 0.4], [0.7, 0.6, 0.52, 0.5]
        self.assertRegex(
            train_ranker.difference(plain, ours, 0.01, window=1), "steps 2 to 2 .* 0.5000 .* 0.5200 .* 0.01 is allowed"
        )
        self.assertRegex(train_ranker.difference(plain, ours, 0.01), "steps 0 to 3 .* 0.5500 .* 0.5800 .*")

    def test_a_loss_that_is_no_number_and_a_curve_that_ends_early(self):
        self.assertIn("steps 0 to 1", train_ranker.difference([0.7, 0.6], [0.7, float("nan")], 0.01))
        self.assertIn("2 and 1 steps", train_ranker.difference([0.7, 0.6], [0.7], 0.01))

    def test_a_layer_without_the_mask_of_targets_is_noticed(self):
        config = STULayerConfig(64, 4, 16, 16, output_dropout_ratio=0.0)
        torch.manual_seed(0)
        models = [train_ranker.Ranker(train_ranker.PlainSTULayer, config, 2, 64, torch.bfloat16)]
        config = STULayerConfig(64, 4, 16, 16, output_dropout_ratio=0.0, target_aware=False)
        models.append(train_ranker.Ranker(STULayer, config, 2, 64, torch.bfloat16))
        models[1].load_state_dict(models[0].state_dict())
        histories = torch.tensor([20, 30, 48])
        batches = [train_ranker.make_batch(histories, 32, seed) for seed in range(60)]
        plain, ours = (train_ranker.train(m, batches, torch.bfloat16, train_ranker.Ranks("cpu")) for m in models)
        self.assertIsNotNone(train_ranker.difference(plain.losses, ours.losses, train_ranker.TOLERANCE))


@unittest.skipUnless(
    torch and fakes.DRIVER and fakes.FUNCTIONS,
    "PyTorch is not installed, or HSTUJIT_FAKE_CUDA or HSTUJIT_FAKE_TORCH names no library",
)
class Frozen(unittest.TestCase):
    """On the driver of test_torch_driver.py, which computes nothing."""

    def test_the_frozen_kernels_are_those_that_a_layer_launches(self):
        layer = STULayer(STULayerConfig(64, 4, 16, 16, output_dropout_ratio=0.0))
        x, offsets = torch_cases.tensor(50, 64).bfloat16().requires_grad_(), torch.tensor([0, 20, 50])
        fakes.Fakes(self)
        driver, context, before = ctypes.CDLL(fakes.DRIVER), ctypes.c_void_p(), hstujit.default_context()
        self.addCleanup(hstujit.set_default_context, before)
        ranks = types.SimpleNamespace(device=torch.device("cuda", 0), from_first=lambda make: make())
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, HSTUJIT_CACHE_DIR=folder):
            os.environ["HSTUJIT_CUDA_DRIVER"] = fakes.DRIVER
            hstujit.set_default_context(hstujit.Context())
            sentence = train_ranker.freeze(layer.config, 64, "bf16", ranks, folder)
            self.assertRegex(sentence, r"^frozen: \d+ keys for every rank")
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
            driver.cuCtxPushCurrent_v2(context)
            self.addCleanup(driver.cuCtxPopCurrent_v2, ctypes.byref(context))
            layer(x, offsets.diff(), offsets, 64, torch.tensor([4, 4])).sum().backward()
            with self.assertRaisesRegex(hstujit.Error, "HSTUJIT_FROZEN"):  # another instance
                layer(x, offsets.diff(), offsets, 64)
        self.assertEqual(x.grad.shape, x.shape)
