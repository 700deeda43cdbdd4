"""tools/results_index.py: a line for each file, in words that it knows, and the check that the list is in step."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "results_index.py"
ENVIRONMENT = {"date": "2026-01-02", "commit": "abc1234"}


class ResultsIndex(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def add(self, name, **content):
        (self.folder / name).write_text(json.dumps({"environment": ENVIRONMENT, **content}))

    def run_script(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, "--results", self.folder, *arguments], capture_output=True, text=True,
                              check=False)

    def test_each_file_has_its_outcome(self):
        self.add("matrix_2026-01-02.json", result={"instances": 9, "agree": 8, "worst_share_of_bound": {"bf16": 0.5, "fp16": 1.25}})
        self.add("sanitizer_2026-01-02.json", result={"memcheck": {"summary": "0 errors", "instances": 3}})
        self.add("tune_backward_x_2026-01-02.json", result={"slowest_key_s": 3.21, "keys": [1, 2]})
        self.add("deterministic_bench_2026-01-02.json", results=[{"median_ms": 1}, {"error": {}}])
        self.add("emitted_2026-01-02.json", result={"ms": {"kernel": 0.5}, "failed": ["other_main.cu failed"]})
        self.add("faults_2026-01-02.json", result={"passed": ["One", "Two"]})
        self.add("startup_2026-01-02.json", result={"cold": {"first_call_ms": 812.3}, "warm": {"first_call_ms": 1.84}})
        self.assertEqual(self.run_script().returncode, 0)
        text = (self.folder / "README.md").read_text()
        self.assertIn("| 8 of 9 agree, the worst at 1.25 of its bound | 2026-01-02 | abc1234 |", text)
        self.assertIn("| memcheck: 0 errors, 3 instances |", text)
        self.assertIn("| 2 keys, 3.2 s at most |", text)
        self.assertIn("| 1 ran, 1 failed |", text)
        self.assertIn("| 2 passed |", text)
        self.assertIn("| 812 ms cold, 1.8 ms warm |", text)
        self.assertIn("| the benchmark with deterministic kernels, the cost model's choice | 2 cells, 1 failed |", text)
        self.assertEqual(self.run_script("--check").returncode, 0)

    def test_a_file_that_is_not_listed_is_shown(self):
        self.assertEqual(self.run_script().returncode, 0)
        self.add("bench_2026-01-02.json", results=[])
        check = self.run_script("--check")
        self.assertEqual(check.returncode, 1)
        self.assertIn("+| [bench_2026-01-02.json]", check.stdout)
        self.assertIn("run `make bench-table`", check.stderr)

    def test_what_it_does_not_know_is_a_mistake(self):
        self.add("guess_2026-01-02.json", result={})
        run = self.run_script()
        self.assertEqual(run.returncode, 2)
        self.assertIn("KINDS of tools/results_index.py does not say what guess is", run.stderr)
        (self.folder / "guess_2026-01-02.json").unlink()
        (self.folder / "bench_2026-01-02.json").write_text("{}")
        self.assertIn("environment.date or environment.commit is missing", self.run_script().stderr)


if __name__ == "__main__":
    unittest.main()
