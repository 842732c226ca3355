# SPDX-License-Identifier: Apache-2.0
"""The page of `dynamics track --report`, as a file and in a real browser."""

import html.parser
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

SOURCE = os.environ.get("RD_SOURCE_DIR", os.path.join(os.path.dirname(__file__), "..", ".."))
DYNAMICS = os.environ.get("RD_DYNAMICS_EXE", os.path.join(SOURCE, "build", "dynamics"))
SCRIPT = os.path.join(SOURCE, "dynamics_core", "tools", "report.py")
PANDA = os.path.join(SOURCE, "config", "robots", "panda.urdf")
LAWS = ["pd", "pd_gravity", "feedforward", "computed_torque", "passivity"]


def has_matplotlib():
    check = [sys.executable, "-c", "import matplotlib"]
    return subprocess.run(check, stderr=subprocess.DEVNULL, check=False).returncode == 0


def find_browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


class Page(html.parser.HTMLParser):
    """Counts what is on the page, and collects everything that would be fetched."""

    VOID = {"meta", "link", "input", "br", "img", "hr"}

    def __init__(self, text):
        super().__init__()
        self.plots, self.fetched, self.ids, self.headings = [], [], set(), []
        self.rows, self.labels, self.script, self.open = [], [], "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if "id" in attributes:
            self.ids.add(attributes["id"])
        if tag == "svg" and attributes.get("class") == "plot":
            self.plots.append(attributes["aria-label"])
        if tag == "tr" and "data-law" in attributes:
            self.rows.append((attributes["data-law"], []))
        for name in ("src", "href", "xlink:href", "action", "data", "srcset"):
            value = attributes.get(name)
            if value and not value.startswith(("#", "data:")):
                self.fetched.append(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes nothing, at {self.getpos()}")

    def handle_data(self, data):
        if self.open[-1:] == ["td"]:
            self.rows[-1][1].append(data)
        if self.open[-1:] == ["h2"]:
            self.headings.append(data)
        if self.open[-1:] == ["script"]:
            self.script += data


class Picture:
    """The pixels of a PNG with eight bits a channel and no interlace, as Chromium writes it."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        place, compressed = 8, b""
        while place < len(data):
            size, kind = struct.unpack(">I4s", data[place:place + 8])
            chunk = data[place + 8:place + 8 + size]
            if kind == b"IHDR":
                self.width, self.height, depth, colour = struct.unpack(">IIBB", chunk[:10])
                assert depth == 8 and colour in (2, 6), (depth, colour)
                self.channels = 3 if colour == 2 else 4
            elif kind == b"IDAT":
                compressed += chunk
            place += 12 + size
        self.rows = self._unfilter(zlib.decompress(compressed))

    def _unfilter(self, raw):
        n, bpp, rows = self.width * self.channels, self.channels, []
        above = bytearray(n)
        for y in range(self.height):
            kind, line = raw[y * (n + 1)], bytearray(raw[y * (n + 1) + 1:(y + 1) * (n + 1)])
            for i in range(n):
                a = line[i - bpp] if i >= bpp else 0
                b = above[i]
                c = above[i - bpp] if i >= bpp else 0
                if kind == 1:
                    line[i] = (line[i] + a) & 255
                elif kind == 2:
                    line[i] = (line[i] + b) & 255
                elif kind == 3:
                    line[i] = (line[i] + (a + b) // 2) & 255
                elif kind == 4:
                    p = min(((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c)))[2]
                    line[i] = (line[i] + p) & 255
            rows.append(line)
            above = line
        return rows

    def colours(self):
        found = {}
        for line in self.rows:
            for i in range(0, len(line), 4 * self.channels):  # every fourth pixel will do
                pixel = bytes(line[i:i + 3])
                found[pixel] = found.get(pixel, 0) + 1
        return found


def make_report(directory, *arguments):
    return subprocess.run([DYNAMICS, "track", *arguments, "--report", directory],
                          capture_output=True, text=True, check=False)


@unittest.skipUnless(has_matplotlib(), "matplotlib is not installed")
class Report(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="report-")
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        result = make_report(cls.directory, PANDA)
        assert result.returncode == 0, result.stderr
        cls.said = result.stdout
        cls.complained = result.stderr
        cls.path = os.path.join(cls.directory, "index.html")
        with open(cls.path, encoding="utf-8") as file:
            cls.text = file.read()
        with open(os.path.join(cls.directory, "track.json"), encoding="utf-8") as file:
            cls.data = json.load(file)
        cls.page = Page(cls.text)

    def test_says_where_the_page_is(self):
        self.assertIn("Report: " + self.path, self.said)
        self.assertEqual(self.complained, "")

    def test_needs_nothing_from_elsewhere(self):
        self.assertEqual(self.page.fetched, [])
        self.assertNotRegex(self.text, r"@import|url\((?!#)|fetch\(|XMLHttpRequest")
        # What is left of addresses are the names of the languages of the drawing.
        names = set(re.findall(r"https?://[^\s\"')]+", self.text))
        self.assertLessEqual(names, {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"})

    def test_is_well_formed_and_made_for_phones_too(self):
        self.assertEqual(self.page.open, [])
        self.assertIn('name="viewport"', self.text)
        self.assertLess(len(self.text), 3_000_000)

    def test_has_every_plot(self):
        plots = self.page.plots
        for joint in range(1, 8):
            for what in ("Desired and actual position of joint", "Effort of joint"):
                self.assertIn(f"{what} panda_joint{joint}", plots)
        for start in ("Tracking error over time", "RMS tracking error of each joint",
                      "Histogram of the compute time", "Compute time of a cycle"):
            self.assertTrue(any(plot.startswith(start) for plot in plots), start)
        self.assertEqual(sum(plot.startswith("Mass matrix at") for plot in plots), 6)
        for name in ("robot", "matrix", "laws", "headlines"):
            self.assertIn(name, self.page.ids)

    def test_table_holds_the_figures(self):
        self.assertEqual([law for law, _ in self.page.rows], LAWS)
        for (_, cells), law in zip(self.page.rows, self.data["laws"]):
            self.assertEqual(len(cells), 11)
            self.assertAlmostEqual(float(cells[0]) / law["rms_error"], 1.0, delta=0.01)
            self.assertAlmostEqual(float(cells[2]) / law["peak_error"], 1.0, delta=0.01)
            self.assertEqual(cells[10], "0")  # allocations

    def test_histogram_counts_every_cycle(self):
        for law in self.data["laws"]:
            self.assertEqual(sum(law["histogram"]), self.data["cycles"])

    def test_figure_is_that_of_the_robot(self):
        figure = self.data["figure"]
        # d1 = 0.333 m and d3 = 0.316 m of the Panda's table, in whatever pose.
        first = figure["desired"][0]
        base, shoulder = (first[3 * i:3 * i + 3] for i in figure["edges"][0])
        self.assertAlmostEqual(shoulder[2] - base[2], 0.333, places=4)
        upper, elbow = (first[3 * i:3 * i + 3] for i in figure["edges"][2])
        self.assertAlmostEqual(sum((a - b) ** 2 for a, b in zip(upper, elbow)) ** 0.5, 0.316,
                               places=3)

    def test_strange_names_do_no_harm(self):
        name = '<img src=x onerror="alert(1)">$\\alpha$</script>'
        data = json.loads(json.dumps(self.data).replace("panda_joint7", json.dumps(name)[1:-1]))
        data["robot"] = name
        source = os.path.join(self.directory, "strange.json")
        target = os.path.join(self.directory, "strange.html")
        with open(source, "w", encoding="utf-8") as file:
            json.dump(data, file)
        subprocess.run([sys.executable, SCRIPT, source, target], check=True)
        with open(target, encoding="utf-8") as file:
            page = Page(file.read())
        self.assertEqual(page.fetched, [])
        self.assertEqual(page.open, [])

    def test_a_law_that_failed_is_left_out_of_the_plots(self):
        directory = os.path.join(self.directory, "failed")
        result = make_report(directory, PANDA, "--laws", "pd", "--p", "1e9", "--d", "0",
                             "--no-effort-limits")
        self.assertEqual(result.returncode, 1)
        with open(os.path.join(directory, "index.html"), encoding="utf-8") as file:
            self.assertIn("at t = ", file.read())

    def test_says_so_where_matplotlib_is_missing(self):
        blocker = os.path.join(self.directory, "blocked")
        os.makedirs(os.path.join(blocker, "matplotlib"))
        with open(os.path.join(blocker, "matplotlib", "__init__.py"), "w",
                  encoding="utf-8") as file:
            file.write("raise ImportError\n")
        result = subprocess.run(
            [DYNAMICS, "track", PANDA, "--laws", "pd", "--report",
             os.path.join(self.directory, "none")], capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": blocker})
        self.assertEqual(result.returncode, 1)
        self.assertIn("matplotlib is missing", result.stderr)
        self.assertIn("python3-matplotlib", result.stderr)
        self.assertIn("PD", result.stdout)  # the table was printed all the same


@unittest.skipUnless(has_matplotlib(), "matplotlib is not installed")
@unittest.skipUnless(find_browser(), "no Chromium found; the page was not looked at in a browser")
class Browser(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="report-")
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        result = make_report(cls.directory, PANDA)
        assert result.returncode == 0, result.stderr
        cls.address = "file://" + os.path.join(cls.directory, "index.html")

    def browse(self, *arguments):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            return subprocess.run(
                [find_browser(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync",
                 "--disable-dev-shm-usage", "--hide-scrollbars", "--virtual-time-budget=2000",
                 f"--user-data-dir={profile}", *arguments, self.address],
                capture_output=True, text=True, check=True, timeout=300).stdout

    def test_finds_plots_table_and_moving_figure(self):
        text = self.browse("--dump-dom")
        page = Page(text)
        self.assertEqual([law for law, _ in page.rows], LAWS)
        self.assertEqual(len(page.plots), 2 + 7 + 7 + 6 + 1 + 2)
        # What the script has added: a figure for the desired pose and for each law, its limbs
        # somewhere on the picture, and a matrix of seven by seven.
        actors = re.findall(r'data-actor="(\w+)"', text)
        self.assertEqual(actors, ["desired"] + LAWS)
        places = [float(x) for x in re.findall(r' [xy][12]="(-?[0-9.]+)"', text)]
        self.assertGreater(len(places), 4 * 8)
        matrix = text[text.index('id="matrix"'):]
        self.assertEqual(matrix[:matrix.index("</svg>")].count("<rect"), 49)
        self.assertRegex(text, r'id="clock">[0-9]+\.[0-9]{2} s<')

    def picture(self, width, height):
        path = os.path.join(self.directory, f"{width}.png")
        self.browse(f"--window-size={width},{height}", f"--screenshot={path}")
        picture = Picture(path)
        self.assertEqual((picture.width, picture.height), (width, height))
        return picture

    def check_picture(self, picture):
        colours = picture.colours()
        total = sum(colours.values())
        self.assertLess(max(colours.values()) / total, 0.95, "the page is blank")
        for law, rgb in (("pd", "e4572e"), ("feedforward", "2f7de1")):
            self.assertIn(bytes.fromhex(rgb), colours, f"nothing in the colour of {law}")

    def test_looks_right_on_a_desk(self):
        self.check_picture(self.picture(1280, 1400))

    def test_looks_right_on_a_phone(self):
        picture = self.picture(390, 2200)
        self.check_picture(picture)
        # Nothing sticks out to the right: the margin has the colour of the page from top to bottom.
        paper = bytes(picture.rows[0][:3])
        edge = 3 * picture.channels
        for line in picture.rows:
            self.assertEqual(bytes(line[-edge:-edge + 3]), paper)


if __name__ == "__main__":
    unittest.main(verbosity=2)
