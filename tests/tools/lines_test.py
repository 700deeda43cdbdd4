"""Lines of the pages for people have 120 characters at most. Tables and blocks of code are as wide as they must be."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONGEST = 120


def pages():
    folders = (folder for folder in ROOT.iterdir() if folder.is_dir() and folder.name != "build" and not folder.name.startswith("."))
    return sorted([*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))])


def long_lines(text):
    """(number, characters) of each line that is too long."""
    text = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.M | re.S)
    return [(number, len(line)) for number, line in enumerate(text.split("\n"), 1)
            if len(line) > LONGEST and not re.match(r" *\|| {4}(?! *(- |\d+\. ))", line)]


class Lines(unittest.TestCase):
    def test_no_line_is_too_long(self):
        self.assertGreater(len(pages()), 25)
        for page in pages():
            with self.subTest(page=str(page.relative_to(ROOT))):
                self.assertEqual(long_lines(page.read_text(encoding="utf-8")), [])

    def test_characters_count_and_not_bytes(self):
        wide = "×" * LONGEST
        self.assertEqual(long_lines(f"{wide}\n{wide}a\n| {wide} |\n    {wide}\n```\n{wide}b\n```\n- {wide}"), [(2, 121), (8, 122)])


if __name__ == "__main__":
    unittest.main()
