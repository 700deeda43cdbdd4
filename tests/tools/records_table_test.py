"""tools/records_table.py: the count of shipped records, and the check that the page is in step with them. And
autotune_cache/shipped/ship_records.py, which puts records into the files that are counted."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "records_table.py"
SHIP = ROOT / "autotune_cache" / "shipped" / "ship_records.py"


class RecordsTable(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.page = self.folder / "README.md"
        self.page.write_text("before\n<!-- records:begin -->\n<!-- records:end -->\nafter\n")

    def add(self, name, op, direction, device, **environment):
        with (self.folder / f"{name}.jsonl").open("a") as file:
            file.write(json.dumps({"key": {"op": op, "direction": direction, "device": device}, "environment": environment}) + "\n")

    def run_script(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, "--records", self.folder, *arguments], capture_output=True, text=True, check=False)

    def test_records_are_counted_by_operator_direction_and_device(self):
        self.add("a", "addmm", "forward", "GPU A", date="2026-01-02")
        self.add("a", "addmm", "forward", "GPU A", date="2026-01-02")
        self.add("b", "layer_norm", "backward", "GPU B", date="2026-01-03")
        self.assertEqual(self.run_script("--check").returncode, 1)
        self.assertEqual(self.run_script().returncode, 0)
        text = self.page.read_text()
        self.assertIn("3 records, tuned on:\n\n- an GPU A: 2026-01-02\n- an GPU B: 2026-01-03\n", text)
        self.assertIn("| operator | direction | GPU A | GPU B |", text)
        self.assertIn("| `addmm` | forward | 2 | – |", text)
        self.assertIn("| `layer_norm` | backward | – | 1 |", text)
        self.assertIn("| all | | 2 | 1 |", text)
        self.assertEqual(self.run_script("--check").returncode, 0)
        self.add("b", "layer_norm", "forward", "GPU B", date="2026-01-03")
        self.assertEqual(self.run_script("--check").returncode, 1)

    def test_what_is_no_record_is_a_sentence(self):
        self.add("a", "addmm", "forward", "GPU A", date="2026-01-02")
        self.add("a", "addmm", "forward", "GPU A")
        outcome = self.run_script()
        self.assertEqual(outcome.returncode, 2)
        self.assertIn("a.jsonl:2: 'date' is missing", outcome.stderr)
        (self.folder / "a.jsonl").write_text("{")
        self.assertIn("a.jsonl:1:2: malformed JSON", self.run_script().stderr)

    def ship(self, name, device, bucket, us):
        """Ships a record of a cache directory of its own, whose second candidate is neither winner nor heuristic."""
        timed = [{"config": {"block_m": block_m}, "workload": "w", "median_us": us} for block_m in (64, 128)]
        record = {"key": {"device": device, "bucket": bucket}, "workload": "w", "winner": {"config": {"block_m": 64}},
                  "timed": timed, "rejected": [{"config": {"block_m": 32}}], "checksum": ""}
        file = self.folder / name / "v1" / "tuning" / "ab" / "ab.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(record))
        subprocess.run([sys.executable, SHIP, self.folder / name, "--records", self.folder], check=True, stdout=subprocess.DEVNULL)

    def test_a_shipped_record_takes_the_place_of_the_one_with_its_key(self):
        for name, device, bucket, us in (("1", "GPU-A 8", 2, 5), ("2", "GPU-A 8", 1, 6), ("3", "GPU B", 1, 7), ("4", "GPU-A 8", 2, 8)):
            self.ship(name, device, bucket, us)
        records = {path.name: [json.loads(line) for line in path.read_text().splitlines()] for path in self.folder.glob("*.jsonl")}
        times = {name: [(record["key"]["bucket"], [timed["median_us"] for timed in record["timed"]]) for record in of_device]
                 for name, of_device in records.items()}
        self.assertEqual(times, {"gpu_a_8.jsonl": [(1, [6]), (2, [8])], "gpu_b.jsonl": [(1, [7])]})


if __name__ == "__main__":
    unittest.main()
