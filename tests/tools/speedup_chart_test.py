"""tools/speedup_chart.py: what it draws, and the check that the picture is in step."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "speedup_chart.py"


class Chart(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.picture, self.baseline = self.folder / "speedup.svg", self.folder / "baseline.json"
        row = {"name": "a", "direction": "forward", "median_ms": 0.5}
        rows = [row, {**row, "direction": "backward", "median_ms": 2.0}, {**row, "name": "alone"},
                {"name": "failed", "direction": "forward", "error": {}}]
        report = {"environment": {"date": "2026-01-01", "gpu": "NVIDIA H200"}, "results": rows}
        (self.folder / "results").mkdir()
        (self.folder / "results" / "bench.json").write_text(json.dumps(report))
        times = {"fwd_ms": {"triton": 1.0, "meta_cuda": 0.8}, "bwd_ms": {"triton": 5.0}}
        self.baseline.write_text(json.dumps({"a": times, "failed": times}))
        self.arguments = ["--picture", self.picture, "--results", self.folder / "results",
                          "--baseline", self.baseline]

    def run_script(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)

    def texts(self):
        tree = xml.etree.ElementTree.parse(self.picture)
        return [element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")]

    def test_a_bar_for_each_direction_against_the_best_peer(self):
        self.assertEqual(self.run_script(*self.arguments, "--check").returncode, 1)
        self.assertEqual(self.run_script(*self.arguments).returncode, 0)
        texts = self.texts()
        self.assertIn("1.60×", texts)
        self.assertIn("2.50×", texts)
        self.assertIn("a", texts)
        self.assertTrue(any("NVIDIA H200" in text for text in texts))
        self.assertEqual(self.run_script(*self.arguments, "--check").returncode, 0)

    def test_what_has_no_peer_or_no_time_has_no_bar(self):
        self.run_script(*self.arguments)
        self.assertEqual({"alone", "failed"} & set(self.texts()), set())

    def test_nothing_to_compare_is_a_mistake(self):
        self.baseline.write_text("{}")
        result = self.run_script(*self.arguments)
        self.assertEqual((result.returncode, "no shape has both" in result.stderr), (2, True))


if __name__ == "__main__":
    unittest.main()
