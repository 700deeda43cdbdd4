"""examples/train_mlperf.py: its model learns, and the last layer of targets alone is that of all rows."""

import pathlib
import re
import sys
import unittest

import support
from torch_support import torch

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

if torch:
    import train_mlperf

    from hstujit.torch import STULayerConfig


def run(function, *options):
    return support.run_main(function, "train_mlperf.py", "--device", "cpu", *options)


@unittest.skipUnless(torch, "PyTorch is not installed")
class Training(unittest.TestCase):
    def test_it_learns(self):
        code, printed = run(train_mlperf.main, "--steps", "16", "--batch", "16", "--layers", "1")
        self.assertEqual(code, 0, printed)
        self.assertIn("1 layer of width 64, the last one of targets alone; 1 x 16 sequences of up to 64 rows", printed)
        first, last = map(float, re.search(r"loss ([0-9.]+) -> ([0-9.]+), the means of 4 steps", printed).groups())
        self.assertLess(last, 0.7 * first, printed)

    def test_targets_alone_are_those_of_all_rows(self):
        config = STULayerConfig(64, 4, 16, 16, 0.0, contextual_seq_len=train_mlperf.CONTEXTS)
        lengths = train_mlperf.draw_lengths(6, 40, torch.Generator().manual_seed(1))
        batch = train_mlperf.Batch(lengths, 64, seed=2, device="cpu")
        torch.manual_seed(3)
        targets = train_mlperf.Model(config, layers=2, whole=False)
        whole = train_mlperf.Model(config, layers=2, whole=True)
        whole.load_state_dict(targets.state_dict())
        self.assertTrue(torch.equal(targets(batch), whole(batch)))
        gradients = [
            torch.autograd.grad(model(batch).square().sum(), list(model.parameters())) for model in (targets, whole)
        ]
        for one, other in zip(*gradients):
            self.assertLess((one - other).norm().item(), 0.02 * other.norm().item() + 1e-6)

    def test_lengths_have_room_for_contexts_and_targets(self):
        lengths = train_mlperf.draw_lengths(2000, 4095, torch.Generator().manual_seed(4))
        self.assertGreaterEqual(int(lengths.min()), train_mlperf.CONTEXTS + 1 + train_mlperf.TARGETS)
        self.assertEqual(int(lengths.max()), 4095)
        self.assertAlmostEqual(lengths.float().mean().item(), 2600, delta=100)

    def test_mistakes_are_sentences(self):
        cases = {
            ("--width", "42"): "--width is 42; it must be a multiple of 4, the heads",
            ("--max-rows", "9"): "--max-rows is 9; it must be at least 10",
            ("--dropout", "1"): "--dropout is 1; it must be at least 0 and less than 1",
            ("--steps", "0"): "must be at least 1",
            ("--batch", "0"): "--batch is 0; it must be a multiple of 1, the number of processes",
        }
        for options, sentence in cases.items():
            with self.subTest(options):
                code, printed = run(train_mlperf.parse, *options)
                self.assertEqual(code, 2)
                self.assertIn(sentence, printed)
