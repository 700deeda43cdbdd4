"""The code of the pages runs as it stands, and the pages name every operator."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from torch_support import torch

import hstujit
from hstujit import _interface

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(code, **environment):
    with tempfile.TemporaryDirectory() as cache:
        variables = {**os.environ, "HSTUJIT_CACHE_DIR": cache, **environment}
        return subprocess.run([sys.executable, *code], env=variables, capture_output=True, text=True, check=False)


class Pages(unittest.TestCase):
    def check(self, name):
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)
        self.assertGreater(len(blocks), 3)
        done = run(["-c", "\n".join(blocks)])
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def check_reference(self, name):
        """The page of an interface, which also names every operator."""
        words = set(re.findall(r"`(\w+)`", (ROOT / "docs" / name).read_text(encoding="utf-8")))
        self.assertLessEqual(set(_interface.operators()), words)
        return self.check(name)

    def test_python(self):
        printed = self.check_reference("python.md")
        self.assertIn("(7, 2, 64)", printed)
        self.assertIn("k.shape[0] is 5; it must be L = 7, as in q", printed)

    def test_python_has_every_name(self):
        text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
        words = set(re.findall(r"`(?:hstujit\.)?([A-Za-z_.]+)[`(]", text))
        names = set(hstujit.__all__) - {"operators"}
        for kind in (hstujit.Cache, hstujit.Config, hstujit.Context):
            names |= {f"{kind.__name__}.{name}" for name in vars(kind) if not name.startswith("_")}
        names |= {error.__name__ for error in hstujit.errors.BY_STATUS.values()}
        self.assertLessEqual(names, words)

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_pytorch(self):
        self.assertIn("torch.Size([7, 2, 64])", self.check_reference("pytorch.md"))

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_tutorial(self):
        self.assertRegex(self.check("tutorial.md"), r"ours: first step \S+ s, then \S+ s\ndq: ours .*\ndk: .*\ndv: ")

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_training(self):
        self.check("training.md")

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_readme(self):
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        (block,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)
        done = run(["-c", block + "print(q.grad.shape)"])
        self.assertEqual((done.returncode, done.stdout), (0, "torch.Size([1341, 4, 64])\n"), done.stderr)

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_pictures_of_masks_are_what_the_host_backend_computes(self):
        done = run([str(ROOT / "tools" / "mask_pictures.py"), "--check"])
        self.assertEqual(done.returncode, 0, done.stderr)


class Examples(unittest.TestCase):
    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_torch_attention(self):
        done = run([str(ROOT / "examples" / "torch_attention.py"), "--steps", "20"])
        self.assertEqual(done.returncode, 0, done.stderr)
        losses = [float(loss) for loss in re.findall(r"loss (\d\.\d+)", done.stdout)]
        self.assertLess(losses[-1], 0.7 * losses[0])
        self.assertIn("exported", done.stdout)
