"""Every command of hstujit that the pages show exists, with the options that they give it."""
import functools
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(page for page in ROOT.glob("docs/*.md") if page.name != "journal.md")]
TOOL = sys.argv.pop()
GROUPS = {"cache"}  # whose next word is a command, too


def shown_commands(text):
    """Words of each command in code, from `hstujit` on: until a comment, a pipe or the end."""
    codes = re.findall(r"^    (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), flags=re.M)
    codes += re.findall(r"`([^`\n]+)`", text)
    calls = (re.search(r"(?:^|\s)hstujit +([a-z][^#|;>]*)", code) for code in codes)
    return [call[1].split() for call in calls if call and not re.search("import |pip ", call.string)]


@functools.cache
def options_of(command):
    """Options that `--help` lists, or None where there is no such command."""
    done = subprocess.run([TOOL, *command, "--help"], capture_output=True, text=True, check=False)
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", done.stdout)) if done.returncode == 0 else None


def mistakes(words):
    command = tuple(words[: 2 if words[0] in GROUPS and len(words) > 1 else 1])
    options = options_of(command)
    if options is None:
        return [f"hstujit {' '.join(command)}: no such command"]
    given = (word.partition("=")[0] for word in words[len(command) :] if re.match(r"--?[a-z]", word))
    return [f"hstujit {' '.join(command)} {option}: no such option" for option in given if option not in options]


class Commands(unittest.TestCase):
    def test_every_command_and_option_is_there(self):
        count = 0
        for page in PAGES:
            commands = shown_commands(page.read_text(encoding="utf-8"))
            count += len(commands)
            with self.subTest(page=page.name):
                self.assertEqual([mistake for words in commands for mistake in mistakes(words)], [])
        self.assertGreater(count, 100)

    def test_what_is_not_there_is_named(self):
        text = "`hstujit tune --confg a`\n\n    HSTUJIT_LOG=all hstujit chek --config b   # --not\n    import hstujit\n"
        found = [mistake for words in shown_commands(text) for mistake in mistakes(words)]
        self.assertEqual(sorted(found), ["hstujit chek: no such command", "hstujit tune --confg: no such option"])


if __name__ == "__main__":
    unittest.main()
