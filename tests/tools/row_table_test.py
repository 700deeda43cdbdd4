"""tools/row_table.py: the newest results with other libraries' times, and the check that the page is in step with them."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "row_table.py"


def report(date, ours, **peers):
    times = [{"name": "norm", "copy_ms": {"forward": 0.09, "backward": 0.1}, **peers}]
    rows = [{"name": "norm", "direction": "forward", "median_ms": ours, "tuned": False}, {"name": "norm", "direction": "backward"},
            {"name": "other", "direction": "forward", "median_ms": 7}]
    return {"step": "rows", "environment": {"gpu": "GPU", "date": date, "commit": "abc1234"}, "results": rows,
            "peers": {"torch": "2.0", "times": times}}


class RowTable(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.page = self.folder / "results.md"
        self.page.write_text("before\n<!-- rows:begin -->\nold\n<!-- rows:end -->\nafter\n")

    def add(self, name, content):
        (self.folder / name).write_text(json.dumps(content))

    def run_script(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, "--results", self.folder, "--page", self.page, *arguments],
                              capture_output=True, text=True, check=False)

    def test_the_newest_with_others_is_shown(self):
        self.add("rows_2026-01-01.json", report("2026-01-01", 0.5, triton={"forward": 0.4}))
        self.add("rows_2026-01-02.json", report("2026-01-02", 0.1, triton={"forward": 0.2}, pytorch={"forward": 0.15}))
        self.add("rows_2026-01-03.json", {"step": "rows", "environment": {"date": "2026-01-03"}, "results": []})
        self.assertEqual(self.run_script().returncode, 0)
        text = self.page.read_text()
        self.assertIn("| norm | forward | **0.100** | 0.150 | – | 0.200 | **1.50×** | 0.090 | 90 % |", text)
        self.assertIn("Untuned: norm.", text)
        self.assertNotIn("other", text.replace("best other", ""))
        self.assertTrue(text.startswith("before\n") and text.endswith("after\n"))

    def test_a_page_out_of_step_is_shown(self):
        self.add("rows_2026-01-01.json", report("2026-01-01", 0.1))
        self.assertEqual(self.run_script("--check").returncode, 1)
        self.assertEqual(self.run_script().returncode, 0)
        self.assertEqual(self.run_script("--check").returncode, 0)

    def test_a_page_without_a_place_is_a_sentence(self):
        self.page.write_text("nothing")
        outcome = self.run_script()
        self.assertEqual(outcome.returncode, 2)
        self.assertIn("lacks the lines", outcome.stderr)


if __name__ == "__main__":
    unittest.main()
