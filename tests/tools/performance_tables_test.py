"""tools/performance_tables.py: tables from the newest file of a step, and the check that the page is in step with it."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "performance_tables.py"
sys.path.insert(0, str(SCRIPT.parent))
from performance_tables import BLOCKS, CLIFFS, FEW_TILES, PRODUCTS  # noqa: E402


def report(step, rows, **more):
    return {"step": step, "environment": {"gpu": "GPU", "date": "2026-01-02", "commit": "abc1234"}, **more,
            "results": [{"direction": "forward", **row} for row in rows]}


def cliffs(share):
    cells = [f"{stem}-{length}" for stem in CLIFFS for length in ("1k", "4k")] + [name + kind for name in FEW_TILES for kind in ("", "-small")]
    return report("cliffs", [{"name": name, "fraction_of_limit": share, "median_ms": 0.0131} for name in cells])


class PerformanceTables(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.page = self.folder / "page.md"
        self.page.write_text("before\n" + "".join(f"<!-- {block[0]}:begin -->\n<!-- {block[0]}:end -->\n" for block in BLOCKS) + "after\n")

    def add(self, name, content):
        (self.folder / name).write_text(json.dumps(content))

    def run_script(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, "--results", self.folder, "--page", self.page, *arguments],
                              capture_output=True, text=True, check=False)

    def test_the_newest_file_of_a_step_is_shown_and_named(self):
        self.add("cliffs_2026-01-01.json", cliffs(0.9) | {"environment": {"gpu": "GPU", "date": "2026-01-01", "commit": "old"}})
        self.add("cliffs_2026-01-02.json", cliffs(0.225))
        self.add("cliffs_h100_2026-01-03.json", cliffs(0.5))  # has another name
        self.assertEqual(self.run_script("--check").returncode, 1)
        self.assertEqual(self.run_script().returncode, 0)
        text = self.page.read_text()
        self.assertIn("From `bench/results/cliffs_2026-01-02.json`: GPU, at abc1234.", text)
        self.assertIn("| D = 32 | 22 | 22 |", text)
        self.assertIn("| one of 512 rows | 13.1 | 13.1 |", text)
        self.assertTrue(text.startswith("before\n") and text.endswith("after\n"))
        self.assertEqual(self.run_script("--check").returncode, 0)

    def test_a_cell_that_a_file_lacks_is_a_sentence(self):
        content = cliffs(0.5)
        content["results"] = content["results"][1:]
        self.add("cliffs_2026-01-02.json", content)
        outcome = self.run_script()
        self.assertEqual(outcome.returncode, 2)
        self.assertIn("cliffs_2026-01-02.json: d32-1k is missing, or has no time", outcome.stderr)

    def test_untuned_products_are_compared_within_the_tuners_run(self):
        times = [{"name": name, "pytorch": {"forward": 0.9}} for name in [*PRODUCTS, "8x8x8-dmat1"]]
        others = [{"name": "8x8x8-dmat2-bias", "pytorch": {"forward": 2.0}}, {"name": "8x8x8-tf32-dmat1", "pytorch": {"forward": 4.5}}]
        rows = [{"name": row["name"], "median_ms": 1.0} for row in times]
        rows += [{"name": "8x8x8-dmat2-bias", "median_ms": 1.0}, {"name": "8x8x8-tf32-dmat1", "median_ms": 9.0}]
        self.add("products_2026-01-02.json", report("products", rows, peers={"times": times + others}))
        self.add("tune_products_2026-01-02.json", {"step": "tune", "result": {"keys": [
            {"name": row["name"], "winner_us": 1000, "heuristic_us": 1250 if row["name"] == "300x512x2048" else 1000} for row in times]}})
        self.assertEqual(self.run_script().returncode, 0)
        text = self.page.read_text()
        self.assertIn("| 300 × 512 × 2048 | 1.000 | 0.900 | 0.90 | 25.0 % |", text)
        self.assertIn("| 131072 × 512 × 2048 | 1.000 | 0.900 | 0.90 | 0.0 % |", text)
        self.assertIn(f"| these three | 0.90 | 0.90: 131072 × 512 × 2048 | {len(times)} of {len(times)} |", text)
        self.assertIn("| that of weights, with the gradient of a bias | 2.00 | 2.00: 8 × 8 × 8 | 0 of 1 |", text)
        self.assertIn("| all three of fp32, `tf32` | 0.50 | 0.50: 8 × 8 × 8 | 1 of 1 |", text)
        self.assertIn("1 lose more than 10 %, none more than 25 %.", text)


if __name__ == "__main__":
    unittest.main()
