"""docs/tuning.md has every reason for which a template or the search rejects a candidate."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = [*ROOT.glob("templates/**/*.cpp"), ROOT / "compiler/plan/search_space.cpp"]
# `reasons.push_back({"name", "sentence"})` and `return {{"name", ...}}`.
REASON = re.compile(r"""(?:reasons\.push_back\(|return \{)\s*\{\s*"(\w+)",\s*(?:fmt::format\(|")""")
ROW = re.compile(r"^\| `(\w+)` \|", flags=re.M)


def reasons():
    return {reason for source in SOURCES for reason in REASON.findall(source.read_text(encoding="utf-8"))}


def documented():
    page = (ROOT / "docs/tuning.md").read_text(encoding="utf-8")
    table = page.split("### Why explain rejects a candidate\n", 1)[1].split("\n#", 1)[0]
    return ROW.findall(table)


class Rejections(unittest.TestCase):
    def test_the_page_has_every_reason_once(self):
        self.assertGreater(len(reasons()), 20)
        self.assertEqual(sorted(documented()), sorted(reasons()))


if __name__ == "__main__":
    unittest.main()
