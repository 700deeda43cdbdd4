"""tools/records_table.py: the count of shipped records, and the check that the page is in step with them."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "records_table.py"


class RecordsTable(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.page = self.folder / "README.md"
        self.page.write_text("before\n<!-- records:begin -->\n<!-- records:end -->\nafter\n")

    def add(self, name, op, direction, device, **environment):
        file = self.folder / "v1" / "tuning" / name[:2] / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"key": {"op": op, "direction": direction, "device": device}, "environment": environment}))

    def run_script(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, "--records", self.folder, *arguments], capture_output=True, text=True, check=False)

    def test_records_are_counted_by_operator_direction_and_device(self):
        self.add("aa1", "addmm", "forward", "GPU A", date="2026-01-02")
        self.add("aa2", "addmm", "forward", "GPU A", date="2026-01-02")
        self.add("bb1", "layer_norm", "backward", "GPU B", date="2026-01-03")
        self.assertEqual(self.run_script("--check").returncode, 1)
        self.assertEqual(self.run_script().returncode, 0)
        text = self.page.read_text()
        self.assertIn("3 records, tuned on:\n\n- an GPU A: 2026-01-02\n- an GPU B: 2026-01-03\n", text)
        self.assertIn("| operator | direction | GPU A | GPU B |", text)
        self.assertIn("| `addmm` | forward | 2 | – |", text)
        self.assertIn("| `layer_norm` | backward | – | 1 |", text)
        self.assertIn("| all | | 2 | 1 |", text)
        self.assertEqual(self.run_script("--check").returncode, 0)
        self.add("bb2", "layer_norm", "forward", "GPU B", date="2026-01-03")
        self.assertEqual(self.run_script("--check").returncode, 1)

    def test_what_is_no_record_is_a_sentence(self):
        self.add("aa1", "addmm", "forward", "GPU A")
        outcome = self.run_script()
        self.assertEqual(outcome.returncode, 2)
        self.assertIn("aa1.json: 'date' is missing", outcome.stderr)


if __name__ == "__main__":
    unittest.main()
