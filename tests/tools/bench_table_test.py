"""tools/bench_table.py: the newest run of each direction, ratios against the best peer, and the check that the page is in step."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "bench_table.py"


def report(date, median):
    common = {"direction": "forward", "rows": 184948, "spread": 0.012, "limit_ms": 0.0881, "limit_by": "compute"}
    return {
        "environment": {"date": date, "gpu": "NVIDIA H200", "arch": "sm_90a", "driver": 12040, "nvrtc": ["13.0"]},
        "ceilings": {"copy_gb_per_s": 4300.0, "matmul_tflop_per_s": 760.0},
        "repeats": 50,
        "results": [
            {"name": "rank-256", "median_ms": median, "fraction_of_limit": 0.0881 / median, **common},
            {"name": "mix", "median_ms": 0.5, "fraction_of_limit": 0.5, **common},
            {"name": "own", "median_ms": 0.5, "fraction_of_limit": 0.5, **common},
            {"name": "bad", "direction": "backward", "error": {"code": "x", "message": "y"}},
        ],
    }


BASELINE = {
    "rank-256": {"fwd_ms": {"triton": 0.2, "meta_cuda": 0.236, "nvidia_cutlass": 0.278}},
    "mix": {"fwd_ms": {"triton": 1.4, "meta_cuda_min_full_1": 1.0}},
}


class BenchTable(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)
        (self.folder / "results").mkdir()
        (self.folder / "baseline.json").write_text(json.dumps(BASELINE))
        self.page = self.folder / "results.md"
        self.page.write_text("before\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nafter\n")

    def add(self, name, content):
        (self.folder / "results" / name).write_text(content if isinstance(content, str) else json.dumps(content))

    def run_script(self, *arguments):
        return subprocess.run(
            [sys.executable, SCRIPT, "--page", self.page, "--results", self.folder / "results", "--baseline",
             self.folder / "baseline.json", *arguments], capture_output=True, text=True, check=False)

    def test_newest_run_by_date_not_by_name(self):
        self.add("z.json", report("2026-01-01", 0.4))
        self.add("a.json", report("2026-02-01", 0.1))
        self.assertEqual(self.run_script().returncode, 0)
        text = self.page.read_text()
        self.assertIn("| rank-256 | 184,948 | **0.100** ± 1.2 % | 0.200† | 0.236 | 0.278 | **2.00×** |"
                      " 0.088 (compute) | 88 % |", text)
        self.assertIn("driver for CUDA 12.4", text)
        self.assertIn("`bench/results/a.json`", text)
        self.assertTrue(text.startswith("before\n"))
        self.assertTrue(text.endswith("<!-- bench:end -->\nafter\n"))
        self.assertNotIn("\nold\n", text)

    def test_a_tuned_run_goes_before_a_newer_one_that_is_not(self):
        tuned = report("2026-01-01", 0.4)
        for row in tuned["results"]:
            row["tuned"] = True
        untuned = report("2026-02-01", 0.1)
        untuned["results"].append({**untuned["results"][0], "direction": "backward"})
        self.add("tuned.json", tuned)
        self.add("untuned.json", untuned)
        self.run_script()
        forward, backward = self.page.read_text().split("**Backward**, untuned (ms)")
        self.assertIn("**Forward** (ms)", forward)
        self.assertIn("| rank-256 | 184,948 | **0.400**", forward)
        self.assertIn("`bench/results/tuned.json`", forward)
        self.assertIn("`bench/results/untuned.json`", forward)
        self.assertIn("| rank-256 | 184,948 | **0.100**", backward)

    def test_other_work_is_starred_and_a_missing_peer_is_a_dash(self):
        self.add("a.json", report("2026-02-01", 0.1))
        self.run_script()
        text = self.page.read_text()
        self.assertIn("| mix | 184,948 | **0.500** ± 1.2 % | 1.400† | 1.000* | – | **2.00×** |", text)
        self.assertIn("\\* takes this mask only", text)
        self.assertIn("| own | 184,948 | **0.500** ± 1.2 % | – | – | – | – |", text)
        self.assertIn("Failed: bad backward.", text)

    def test_triton_beside_ours_in_the_same_run(self):
        timed = report("2026-02-01", 0.1)
        timed["peers"] = {"times": [{"name": "rank-256", "rows": 1, "forward": {"hstujit": 0.08, "triton": 0.12}},
                                    {"name": "mix", "rows": 1, "forward": {"hstujit": 0.5}, "ended": "crashed"}]}
        self.add("a.json", timed)
        self.run_script()
        text = self.page.read_text()
        self.assertIn("| rank-256 | 184,948 | **0.100** ± 1.2 % | 0.120 | 0.236 | 0.278 | **1.50×** |", text)
        self.assertIn("| mix | 184,948 | **0.500** ± 1.2 % | 1.400† | 1.000* | – | **2.00×** |", text)
        self.assertIn("† of `bench/baselines`", text)

    def test_check_sees_a_change_and_writes_nothing(self):
        self.add("a.json", report("2026-02-01", 0.1))
        before = self.page.read_text()
        outcome = self.run_script("--check")
        self.assertEqual(outcome.returncode, 1)
        self.assertIn("-old", outcome.stdout)
        self.assertEqual(self.page.read_text(), before)
        self.run_script()
        self.assertEqual(self.run_script("--check").returncode, 0)

    def test_without_results_the_block_is_empty(self):
        self.run_script()
        self.assertIn("<!-- bench:begin -->\n<!-- bench:end -->", self.page.read_text())

    def test_results_of_other_steps_are_passed_over(self):
        self.add("matrix.json", {"step": "matrix", "environment": {"date": "2099-01-01"}, "result": {}})
        self.run_script()
        self.assertIn("<!-- bench:begin -->\n<!-- bench:end -->", self.page.read_text())

    def test_mistakes_are_sentences(self):
        self.add("a.json", "{\n]")
        outcome = self.run_script()
        self.assertEqual(outcome.returncode, 2)
        self.assertIn("a.json:2:1: malformed JSON", outcome.stderr)
        self.add("a.json", {"environment": {}})
        self.assertIn("not a report of hstujit bench", self.run_script().stderr)
        (self.folder / "results" / "a.json").unlink()
        self.page.write_text("no markers")
        self.assertIn("lacks the lines", self.run_script().stderr)


if __name__ == "__main__":
    unittest.main()
