"""Gives the site the pages that lie above docs/: the README as its first page, and what docs/ links to beside it.

The first page of a folder is its README.md, so that of docs/ becomes pages.md.
"""

import pathlib
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[2]
ABOVE = {"index.md": "README.md", **{name: name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}}


def from_above(text):
    """A page from above docs/, with links as seen from docs/. Links to files that are no pages stay text."""
    text = re.sub(r"\]\(README\.md", "](index.md", text)
    text = re.sub(r"\]\(docs/(README\.md)?", lambda link: "](pages.md" if link[1] else "](", text)
    return re.sub(r"\[([^]\n]*)\]\((?:LICENSE|bench|examples|include|templates|\.ci)[^)\s]*\)", r"\1", text)


def from_docs(text):
    """A page of docs/, with links to the pages above it."""
    return text.replace("](../README.md", "](index.md").replace("](../", "](").replace("](README.md", "](pages.md")


def on_files(files, config):
    files.remove(files.get_file_from_path("README.md"))
    files.append(File.generated(config, "pages.md", content=(ROOT / "docs" / "README.md").read_text(encoding="utf-8")))
    for name, source in ABOVE.items():
        files.append(File.generated(config, name, content=from_above((ROOT / source).read_text(encoding="utf-8"))))
    return files


def on_page_markdown(markdown, page, config, files):
    return markdown if page.file.src_uri in ABOVE else from_docs(markdown)
