# SPDX-License-Identifier: Apache-2.0
"""No program or library of the build tree looks for libraries in the current directory."""

import os
import re
import subprocess
import unittest
from pathlib import Path

build = Path(os.environ["RD_DYNAMICS_EXE"]).parent


def is_program(file):
    if not file.is_file():
        return False
    with file.open("rb") as contents:
        return contents.read(4) == b"\x7fELF"


class RunPath(unittest.TestCase):
    def test_has_no_empty_entry(self):
        files = [build / "dynamics", *build.glob("*.so"), *build.glob("test/test_*")]
        files = [f for f in files if is_program(f)]
        self.assertIn(build / "dynamics", files)
        for file in files:
            text = subprocess.run(
                ["readelf", "-d", file], capture_output=True, text=True, check=True
            ).stdout
            for path in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text):
                self.assertNotIn("", path.split(":"), f"{file}: {path}")


if __name__ == "__main__":
    unittest.main()
