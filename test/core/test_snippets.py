# SPDX-License-Identifier: Apache-2.0
"""The C++ in the documents is text of the examples, which are compiled and run.

Before each block of C++ in README.md and docs/*.md stands where it is from:

    <!-- examples/01_inverse_dynamics.cpp [includes] [inverse dynamics] -->

A region is what stands in the file between two lines `// [name]`. Several are quoted with an empty
line between them.
"""

import os
import pathlib
import re
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(os.environ.get("RD_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
SOURCE = re.compile(r"<!-- (examples/\S+)((?: \[[^\]]+\])+) -->")


class SnippetError(Exception):
    pass


def region(text, name):
    """The lines between the two marks, as far to the left as they go."""
    parts = re.split(r"^[ \t]*// \[" + re.escape(name) + r"\][ \t]*\n", text, flags=re.MULTILINE)
    if len(parts) != 3:
        raise SnippetError(f"[{name}] is marked {len(parts) - 1} times, not twice")
    return textwrap.dedent(parts[1])


def quoted(root, source):
    match = SOURCE.fullmatch(source)
    if not match:
        raise SnippetError(f"no source stands before the block, but {source!r}")
    try:
        text = (root / match[1]).read_text(encoding="utf-8")
    except OSError as error:
        raise SnippetError(f"{match[1]} cannot be read") from error
    try:
        return "\n".join(region(text, name) for name in re.findall(r"\[([^\]]+)\]", match[2]))
    except SnippetError as error:
        raise SnippetError(f"{match[1]}: {error}") from error


def blocks(text):
    """(line, language, the line before, content) of each fenced block."""
    lines = text.splitlines(keepends=True)
    begin = None
    for i, line in enumerate(lines):
        if not line.lstrip().startswith("```"):
            continue
        if begin is None:
            begin = i
            continue
        before = next((x.strip() for x in reversed(lines[:begin]) if x.strip()), "")
        language = lines[begin].strip().strip("`").strip().lower()
        yield begin + 1, language, before, "".join(lines[begin + 1 : i])
        begin = None


def problems(root):
    found = []
    for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        for line, language, before, content in blocks(path.read_text(encoding="utf-8")):
            if language not in ("cpp", "c++", "cc", "cxx"):
                continue
            where = f"{path.relative_to(root)}:{line}"
            try:
                if content != quoted(root, before):
                    found.append(f"{where}: differs from {before}")
            except SnippetError as error:
                found.append(f"{where}: {error}")
    return found


class Snippets(unittest.TestCase):
    def test_documents_quote_the_examples(self):
        self.assertEqual(problems(ROOT), [])

    def test_there_are_some(self):
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        self.assertIn("cpp", [language for _, language, _, _ in blocks(readme)])


class Architecture(unittest.TestCase):
    def test_files_that_the_page_names_exist(self):
        page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
        short = dict(re.findall(r"`(\w+/)`\s(?:stands\s)?for\s+`([\w/]+/)`", page))
        self.assertEqual(len(short), 2)
        names = re.findall(r"`([\w/]+/(?:\w+\.\w+)?)`", page)
        self.assertGreater(len(names), 20)
        for name in names:
            for abbreviation, directory in short.items():
                if name.startswith(abbreviation):
                    name = directory + name[len(abbreviation) :]
            if name not in ("laws/", "src/"):  # these are within a room
                self.assertTrue((ROOT / name).exists(), name)


class Checker(unittest.TestCase):
    """It finds what it is here to find."""

    EXAMPLE = "int main() {\n  // [a]\n  one();\n    two();\n  // [a]\n}\n"

    def check(self, readme):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / "docs").mkdir()
            (root / "examples").mkdir()
            (root / "examples/x.cpp").write_text(self.EXAMPLE)
            (root / "README.md").write_text(readme)
            return problems(root)

    def test_a_true_quotation_passes(self):
        self.assertEqual(
            self.check("<!-- examples/x.cpp [a] -->\n```cpp\none();\n  two();\n```\n"), []
        )

    def test_what_it_finds(self):
        body = "```cpp\none();\n  two();\n```\n"
        for readme, message in (
            ("<!-- examples/x.cpp [a] -->\n```cpp\none();\n```\n", "differs"),
            ("<!-- examples/x.cpp [b] -->\n" + body, "marked 0 times"),
            ("<!-- examples/y.cpp [a] -->\n" + body, "cannot be read"),
            ("Like this:\n\n" + body, "no source"),
        ):
            with self.subTest(message):
                found = self.check(readme)
                self.assertEqual(len(found), 1, found)
                self.assertIn(message, found[0])


if __name__ == "__main__":
    unittest.main()
