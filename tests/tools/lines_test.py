"""Lines of the pages for people have 120 characters at most, but for tables that a program writes. And no tracked file
holds both sides of a merge."""
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONGEST = 120
WRITTEN_BY = {"docs/parameters.md": "docs/render.cpp", "docs/compatibility.md": "tests/compatibility/run.py"}  # tables of these pages are as wide as they come


def pages():
    folders = (folder for folder in ROOT.iterdir() if folder.is_dir() and folder.name != "build" and not folder.name.startswith("."))
    return sorted([*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))])


def long_lines(text, is_written=False):
    """(number, characters) of each line that is too long."""
    return [(number, len(line)) for number, line in enumerate(text.split("\n"), 1)
            if len(line) > LONGEST and not (is_written and line.startswith("|"))]


def merge_marks(text):
    """Numbers of the lines with which git begins and ends what it could not merge."""
    return [number for number, line in enumerate(text.split("\n"), 1) if re.match(r"(<{7}|>{7}) ", line)]


class Lines(unittest.TestCase):
    def test_no_line_is_too_long(self):
        self.assertGreater(len(pages()), 25)
        for page in pages():
            name = str(page.relative_to(ROOT))
            with self.subTest(page=name):
                self.assertEqual(long_lines(page.read_text(encoding="utf-8"), name in WRITTEN_BY), [])

    def test_the_readme_is_short(self):
        self.assertLess((ROOT / "README.md").stat().st_size, 6 * 1024)

    def test_pages_with_long_tables_are_still_written(self):
        for page, program in WRITTEN_BY.items():
            self.assertTrue((ROOT / program).is_file(), program)
            self.assertNotEqual(long_lines((ROOT / page).read_text(encoding="utf-8")), [], page)

    def test_characters_count_and_not_bytes(self):
        wide = "×" * LONGEST
        text = f"{wide}\n{wide}a\n| {wide} |\n    {wide}"
        self.assertEqual(long_lines(text), [(2, 121), (3, 124), (4, 124)])
        self.assertEqual(long_lines(text, is_written=True), [(2, 121), (4, 124)])

    def test_nothing_is_left_of_a_merge(self):
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True)
        if listed.returncode != 0:
            self.skipTest("no checkout of git")
        files = [ROOT / name for name in listed.stdout.split("\0") if name]
        self.assertGreater(len(files), 500)
        for file in filter(pathlib.Path.is_file, files):
            with self.subTest(file=str(file.relative_to(ROOT))):
                self.assertEqual(merge_marks(file.read_bytes().decode("utf-8", "replace")), [])
        self.assertEqual(merge_marks("a\n" + "<" * 7 + " HEAD\nb\n" + "=" * 7 + "\nc\n" + ">" * 7 + " x"), [2, 6])


if __name__ == "__main__":
    unittest.main()
