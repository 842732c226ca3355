#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the page of `dynamics track --report`: report.py track.json index.html

The page holds everything it needs: plots as SVG, a moving figure in a few lines of script. It
follows the reader's choice of light or dark, and the width of the screen.
"""

import html
import io
import json
import math
import os
import re
import sys

try:
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import SymLogNorm
except ImportError:
    sys.exit("report.py: matplotlib is missing; on Debian and Ubuntu: "
             "sudo apt-get install python3-matplotlib")

COLOURS = {
    "pd": "#e4572e",
    "pd_gravity": "#e8a317",
    "feedforward": "#2f7de1",
    "computed_torque": "#1f9d6b",
    "passivity": "#9a5fd6",
}
# Stand-ins in the plots for what the page's style decides.
INK, GRID = "#010203", "#040506"
THEME = {INK: "currentColor", GRID: "var(--line)"}

plt.rcParams.update({
    "svg.fonttype": "none", "font.size": 9, "axes.titlesize": 10, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False,
    "axes.edgecolor": GRID, "axes.labelcolor": INK, "axes.titlecolor": INK, "text.color": INK,
    "xtick.color": GRID, "ytick.color": GRID, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": GRID, "grid.linewidth": 0.6, "lines.linewidth": 1.5,
    "legend.frameon": False, "figure.facecolor": "none", "axes.facecolor": "none",
    "savefig.facecolor": "none",
})


def plain(text):
    """A dollar sign is one, not the start of a formula."""
    return str(text).replace("$", r"\$")


def svg(figure, label):
    """The figure as a piece of HTML."""
    plt.rcParams["svg.hashsalt"] = label  # names inside differ between the figures of a page
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    text = out.getvalue()
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'<g id="[a-z]*\.?[a-z]*_[0-9]+">', "<g>", text)  # the same in every figure
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    for colour, themed in THEME.items():
        text = text.replace(colour, themed)
    name = html.escape(label, quote=True)
    return text.replace("<svg", f'<svg class="plot" role="img" aria-label="{name}"', 1)


def card(figure, label, css="card"):
    return f'<figure class="{css}">{svg(figure, label)}</figure>'


def axes(width, height):
    return plt.subplots(figsize=(width, height), layout="constrained")


def below(ax):
    """The legend under the plot."""
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.2), ncol=3, fontsize=8,
              handlelength=1.2, columnspacing=1.2)


def traced(data):
    """The laws that ran to the end."""
    return [law for law in data["laws"] if "q" in law]


# --- the plots -----------------------------------------------------------------------------------

def plot_errors(data):
    figure, ax = axes(4.6, 3.0)
    for law in traced(data):
        # Where there is no error at all there is nothing to draw on this scale.
        error = [x if x > 1e-12 else math.nan for x in law["error"]]
        ax.semilogy(data["t"], error, color=COLOURS[law["law"]], label=law["title"])
    ax.set_title("Error over time")
    ax.set_xlabel("time [s]")
    ax.set_ylabel(f"|e| [{data['position_unit']}]")
    if traced(data):
        below(ax)
    return card(figure, "Tracking error over time, by law, on a logarithmic scale")


def plot_error_by_joint(data):
    figure, ax = axes(4.6, 3.0)
    laws = traced(data)
    width = 0.8 / max(len(laws), 1)
    for i, law in enumerate(laws):
        places = [j + (i - 0.5 * (len(laws) - 1)) * width for j in range(len(data["joints"]))]
        rms = [max(x, 1e-12) for x in law["rms_error_by_joint"]]
        ax.bar(places, rms, width, color=COLOURS[law["law"]], label=law["title"], log=True)
    ax.set_title("RMS error by joint")
    ax.set_xlabel("joint")
    ax.set_ylabel(f"[{data['position_unit']}]")
    ax.set_xticks(range(len(data["joints"])), [str(j + 1) for j in range(len(data["joints"]))])
    ax.grid(False, axis="x")
    if laws:
        below(ax)
    return card(figure, "RMS tracking error of each joint, by law, on a logarithmic scale")


def plot_positions(data, j):
    figure, ax = axes(3.9, 2.2)
    for law in traced(data):
        ax.plot(data["t"], law["q"][j], color=COLOURS[law["law"]])
    ax.plot(data["t"], data["q_d"][j], color=INK, linestyle=(0, (4, 3)), linewidth=1.1)
    ax.set_title(f"{j + 1}  {plain(data['joints'][j])}")
    ax.set_xlabel("time [s]")
    ax.set_ylabel(f"[{data['position_unit']}]")
    return card(figure, f"Desired and actual position of joint {data['joints'][j]}")


def plot_efforts(data, j):
    figure, ax = axes(3.9, 2.2)
    for law in traced(data):
        ax.plot(data["t"], law["tau"][j], color=COLOURS[law["law"]], linewidth=1.2)
    limit = data["effort_limits"][j]
    low, high = ax.get_ylim()
    for bound in (limit, -limit) if limit else ():
        if low - 0.3 * (high - low) < bound < high + 0.3 * (high - low):
            ax.axhline(bound, color=INK, linestyle=":", linewidth=1)
    ax.set_title(f"{j + 1}  {plain(data['joints'][j])}")
    ax.set_xlabel("time [s]")
    ax.set_ylabel(f"[{data['effort_unit']}]")
    return card(figure, f"Effort of joint {data['joints'][j]}")


def plot_mass_matrices(data, count=6):
    """Snapshots with one scale of colours, linear near zero and logarithmic above."""
    n, frames = len(data["joints"]), data["mass_matrix"]["M"]
    if not frames:
        return ""
    largest = max(abs(x) for M in frames for x in M) or 1.0
    norm = SymLogNorm(linthresh=largest / 300, vmin=-largest, vmax=largest, base=10)
    # There and back is the same: the way there shows it all.
    last = max(range(len(frames)), key=lambda k: sum(
        (a - b) ** 2 for a, b in zip(frames[k], frames[0])))
    picked = sorted({round(i * last / (count - 1)) for i in range(count)})
    pieces = []
    ticks = list(range(n)) if n <= 10 else list(range(0, n, 5))
    for k in picked:
        figure, ax = axes(2.6, 2.55)
        ax.grid(False)
        M = [frames[k][i * n:(i + 1) * n] for i in range(n)]  # symmetric: rows or columns
        ax.pcolormesh(M, cmap="RdBu_r", norm=norm, edgecolors="face", linewidth=0.3)
        ax.set_aspect("equal")
        ax.invert_yaxis()
        ax.set_xticks([i + 0.5 for i in ticks], [str(i + 1) for i in ticks])
        ax.set_yticks([i + 0.5 for i in ticks], [str(i + 1) for i in ticks])
        ax.set_title(f"t = {data['mass_matrix']['t'][k]:.2f} s")
        pieces.append(card(figure, f"Mass matrix at {data['mass_matrix']['t'][k]:.2f} s"))
    figure, ax = axes(5.2, 0.75)
    ax.grid(False)
    bar = figure.colorbar(matplotlib.cm.ScalarMappable(norm, "RdBu_r"), cax=ax,
                          orientation="horizontal")
    bar.outline.set_visible(False)
    bar.ax.minorticks_off()
    tens = [10.0 ** k for k in range(math.ceil(math.log10(largest / 100)),
                                     math.floor(math.log10(largest)) + 1)]
    bar.set_ticks([-x for x in reversed(tens)] + [0.0] + tens)
    bar.ax.set_xticklabels([f"{x:g}" for x in bar.get_ticks()])
    bar.set_label("elements of M [kg m²]" if data["position_unit"] == "rad" else "elements of M")
    return ('<div class="grid snapshots">' + "".join(pieces) + "</div>" +
            card(figure, "Scale of colours of the mass matrix", "card scale"))


def plot_compute_time(data):
    figure, ax = axes(4.6, 3.0)
    edges = data["histogram_edges"]
    used = [i for law in data["laws"] for i, count in enumerate(law["histogram"]) if count]
    for law in data["laws"]:
        ax.stairs(law["histogram"], edges, color=COLOURS[law["law"]], label=law["title"],
                  linewidth=1.5)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(bottom=0.7)
    if used:
        ax.set_xlim(edges[max(min(used) - 2, 0)], edges[min(max(used) + 3, len(edges) - 1)])
    ax.set_title("Compute time of a cycle")
    ax.set_xlabel("time in the controller's update [µs]")
    ax.set_ylabel("cycles")
    below(ax)
    return card(figure, "Histogram of the compute time of a cycle, by law")


def plot_percentiles(data):
    figure, ax = axes(4.6, 3.0)
    laws = list(reversed(data["laws"]))
    for i, law in enumerate(laws):
        time, colour = law["compute_us"], COLOURS[law["law"]]
        ax.plot([time["p50"], time["max"]], [i, i], color=colour, linewidth=2, alpha=0.45)
        ax.plot([time["p50"], time["p99"]], [i, i], color=colour, linewidth=9,
                solid_capstyle="butt")
        ax.plot([time["p99.9"], time["max"]], [i, i], color=colour, linestyle="", marker="|",
                markersize=11, markeredgewidth=2)
    ax.axvline(data["budget_us"], color=INK, linestyle=":", linewidth=1.2)
    ax.annotate("budget", (data["budget_us"], len(laws) - 0.45), ha="right", va="center",
                xytext=(-4, 0), textcoords="offset points")
    ax.set_xscale("log")
    ax.set_yticks(range(len(laws)), [law["title"] for law in laws])
    ax.set_ylim(-0.6, len(laws) - 0.2)
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.set_title("Bars: p50 to p99; ticks: p99.9, max")
    ax.set_xlabel("time in the controller's update [µs]")
    return card(figure, "Compute time of a cycle, by law: p50 to p99, p99.9 and the longest")


# --- the page ------------------------------------------------------------------------------------

def with_prefix(x, unit):
    """1.2e-4 rad reads better as 0.12 mrad."""
    if x is None or not math.isfinite(x):
        return "–"
    if unit not in ("rad", "m"):
        return f"{x:.3g} {unit}"
    for scale, prefix in ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")):
        if x >= 0.1 * scale:
            return f"{x / scale:.3g} {prefix}{unit}"
    return f"{x:.1e} {unit}"


def factor(x):
    """With three digits."""
    return "–" if x is None else f"{x:.{2 if x < 10 else 1 if x < 100 else 0}f}"


def headlines(data):
    laws = {law["law"]: law for law in data["laws"] if law["failure"] is None}
    unit = data["position_unit"]
    cards = []
    best = laws.get("feedforward")
    if best and "pd" in laws:
        cards.append((f"{factor(best['pd_over_law'])}×",
                      "smaller RMS tracking error with feed-forward than with the same PD gains "
                      "alone"))
    if best:
        text = "RMS tracking error with feed-forward"
        if "pd" in laws:
            text += f"; PD alone: {with_prefix(laws['pd']['rms_error'], unit)}"
        cards.append((with_prefix(best["rms_error"], unit), text))
    if data["laws"]:
        slowest = max(law["compute_us"]["p99"] for law in data["laws"])
        cards.append((f"{slowest:.3g} µs", "to compute a cycle of the slowest law, in 99 of 100 "
                      f"cycles; {data['budget_us']:.4g} µs are allowed"))
        cards.append((str(sum(law["allocations"] for law in data["laws"])),
                      f"memory allocations in {sum(law['cycles'] for law in data['laws']):,} cycles"
                      .replace(",", " ")))
    return "".join(f'<div class="headline"><b>{html.escape(a)}</b><span>{html.escape(b)}</span>'
                   "</div>" for a, b in cards)


def table(data):
    unit = html.escape(data["position_unit"])
    head = ("law", f"RMS error<small>{unit}</small>", "PD / law<small>RMS</small>",
            f"peak error<small>{unit}</small>",
            f"peak effort<small>{html.escape(data['effort_unit'])}</small>",
            "of limit<small>%</small>", "p50<small>µs</small>", "p99<small>µs</small>",
            "p99.9<small>µs</small>", "max<small>µs</small>", "over budget<small>cycles</small>",
            "allocations<small>in the loop</small>")
    rows = []
    for law in data["laws"]:
        time = law["compute_us"]
        share = law["share_of_effort_limit"]
        cells = [f"{law['rms_error']:.2e}",
                 factor(law["pd_over_law"]),
                 f"{law['peak_error']:.2e}", f"{law['peak_effort']:.3g}",
                 "–" if share is None else f"{100 * share:.0f}",
                 *(f"{time[p]:.1f}" for p in ("p50", "p99", "p99.9", "max")),
                 str(law["over_budget"]), str(law["allocations"])]
        note = (f'<small class="bad">{html.escape(law["failure"])}</small>'
                if law["failure"] else "")
        rows.append(f'<tr data-law="{law["law"]}"><th scope="row"><i style="background:'
                    f'{COLOURS[law["law"]]}"></i>{html.escape(law["title"])}{note}</th>' +
                    "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return ('<div class="scroll card"><table id="laws"><thead><tr>' +
            "".join(f'<th scope="col">{cell}</th>' for cell in head) + "</tr></thead><tbody>" +
            "".join(rows) + "</tbody></table></div>")


def legend(data, desired=True):
    items = [('<i class="dash"></i>', "desired")] if desired else []
    items += [(f'<i style="background:{COLOURS[law["law"]]}"></i>', law["title"])
              for law in traced(data)]
    return ('<p class="legend">' +
            "".join(f"<span>{mark}{html.escape(name)}</span>" for mark, name in items) + "</p>")


def scene(data):
    """What the script needs to move the figure and the matrix."""
    laws = [{"name": law["law"], "title": law["title"], "colour": COLOURS[law["law"]],
             "frames": law["figure"], "on": law["law"] in ("pd", "feedforward")}
            for law in traced(data)]
    if not any(law["on"] for law in laws):
        for law in laws:
            law["on"] = True
    figure = data["figure"]
    return json.dumps({"edges": figure["edges"], "t": figure["t"], "desired": figure["desired"],
                       "laws": laws, "n": len(data["joints"]), "joints": data["joints"],
                       "M": data["mass_matrix"]["M"]}, separators=(",", ":")).replace("<", "\\u003c")


def page(data):
    robot = html.escape(data["robot"])
    joints = range(len(data["joints"]))
    parts = {
        "TITLE": f"{robot} · tracking",
        "ROBOT": robot,
        "SUMMARY": html.escape(f"{len(data['joints'])} joints, {data['differences']}. "
                               f"{data['trajectory'][:1].upper()}{data['trajectory'][1:]}, "
                               f"{data['duration']:.2f} s at {data['rate']:.6g} Hz."),
        "HEADLINES": headlines(data),
        "TABLE": table(data),
        "ERRORS": plot_errors(data) + plot_error_by_joint(data),
        "LEGEND": legend(data),
        "EFFORT_LEGEND": legend(data, desired=False),
        "POSITIONS": "".join(plot_positions(data, j) for j in joints) if traced(data) else "",
        "EFFORTS": "".join(plot_efforts(data, j) for j in joints) if traced(data) else "",
        "MASS": plot_mass_matrices(data),
        "COMPUTE": plot_compute_time(data) + plot_percentiles(data),
        "SCENE": scene(data),
    }
    return re.sub(r"@([A-Z_]+)@", lambda m: parts[m.group(1)], PAGE)


PAGE = r"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>@TITLE@</title>
<style>
:root { --paper: #f5f6f8; --card: #fff; --ink: #1c2430; --soft: #5c6675; --line: #d9dee6;
  --accent: #2f7de1; --ghost: #b9c2cf; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #12161c; --card: #1b2129; --ink: #e8ecf2; --soft: #9aa5b4; --line: #333c48;
    --accent: #6aa8f7; --ghost: #4a5563; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: clamp(1.7rem, 4vw, 2.5rem); line-height: 1.15; margin: 0 0 6px;
  letter-spacing: -.02em; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 44px 0 4px; letter-spacing: -.01em; }
p { margin: 0 0 14px; color: var(--soft); max-width: 75ch; }
.card, .headline { background: var(--card); border: 1px solid var(--line); border-radius: 12px; }
.card { margin: 0; padding: 12px; min-width: 0; }
.headlines { display: grid; gap: 12px; grid-template-columns: repeat(auto-fit, minmax(220px, 1fr));
  margin: 22px 0 0; }
.headline { padding: 16px 18px; }
.headline b { display: block; font-size: 1.9rem; line-height: 1.2; letter-spacing: -.02em; }
.headline:first-child b { color: var(--accent); }
.headline span { color: var(--soft); font-size: .9rem; line-height: 1.35; display: block; }
.grid { display: grid; gap: 12px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 330px), 1fr)); }
.grid.wide { grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); }
.grid.snapshots { grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); }
.scale { margin-top: 12px; padding: 6px 12px; } .scale .plot { max-width: 560px; margin: 0 auto; }
.plot { display: block; width: 100%; height: auto; }
.plot text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif !important; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: .9rem; margin-bottom: 10px; }
.legend i, #laws th i { display: inline-block; width: 12px; height: 12px; border-radius: 3px;
  margin-right: 7px; vertical-align: -1px; }
.legend i.dash { height: 0; width: 18px; border-radius: 0; border-top: 2px dashed var(--ink);
  vertical-align: 4px; }
.scroll { overflow-x: auto; padding: 0; }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-variant-numeric: tabular-nums;
  font-size: .92rem; white-space: nowrap; }
th, td { padding: 10px 12px; text-align: right; border-bottom: 1px solid var(--line); }
thead th { font-weight: 600; vertical-align: bottom; }
th small { display: block; font-weight: 400; color: var(--soft); }
th:first-child { text-align: left; position: sticky; left: 0; background: var(--card);
  font-weight: 600; }
tbody tr:last-child th, tbody tr:last-child td { border-bottom: 0; }
tr[data-law="feedforward"] td { font-weight: 600; }
.bad { color: #d33; white-space: normal; }
.stage { display: grid; gap: 12px; align-items: start; grid-template-columns: minmax(0, 1.6fr) minmax(0, 1fr); }
.stage figure { display: flex; flex-direction: column; }
.stage svg { width: 100%; flex: 1; min-height: 0; display: block; }
#robot { aspect-ratio: 1.35; touch-action: pan-y; cursor: grab; }
#robot:active { cursor: grabbing; }
#matrix { aspect-ratio: 1; max-height: 430px; }
.stage figcaption { color: var(--soft); font-size: .9rem; padding-top: 8px; }
.controls + .controls { margin-top: 10px; }
.controls { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; }
button { font: inherit; font-size: .88rem; color: var(--ink); background: none; cursor: pointer;
  border: 1px solid var(--line); border-radius: 99px; padding: 4px 12px; }
button i { display: inline-block; width: 10px; height: 10px; border-radius: 99px; margin-right: 6px; }
button[aria-pressed="false"] { opacity: .45; }
input[type=range] { flex: 1 1 120px; accent-color: var(--accent); min-width: 0; }
output { color: var(--soft); font-variant-numeric: tabular-nums; font-size: .9rem; min-width: 4.5em;
  text-align: right; }
footer { margin-top: 44px; color: var(--soft); font-size: .85rem; }
@media (max-width: 760px) { main { padding: 20px 14px 40px; } .stage { grid-template-columns: 1fr; }
  .headlines { grid-template-columns: 1fr 1fr; } .headline { padding: 12px 14px; }
  .headline b { font-size: 1.5rem; } .headline span { font-size: .82rem; }
  th, td { padding: 8px 10px; } }
@media print { .controls { display: none; } .card { break-inside: avoid; } }
</style>
</head>
<body>
<main>
<header>
<h1>@ROBOT@ on its way</h1>
<p>@SUMMARY@</p>
</header>
<section class="headlines" id="headlines">@HEADLINES@</section>

<section>
<h2>The motion</h2>
<p>Where the robot should be, and where each law takes it. Drag to look from elsewhere.</p>
<div class="stage">
<figure class="card"><svg id="robot" viewBox="0 0 540 400" role="img"
  aria-label="Moving figure of the robot"></svg>
<figcaption><div class="controls" id="who"></div>
<div class="controls"><button id="play" type="button">Pause</button>
<input id="time" type="range" min="0" max="1" step="0.001" value="0" aria-label="Time">
<output id="clock">0.00 s</output></div></figcaption></figure>
<figure class="card"><svg id="matrix" role="img" aria-label="Mass matrix at this moment"></svg>
<figcaption>The mass matrix at this moment: red is positive, blue negative, the joints in
order.</figcaption></figure>
</div>
</section>

<section>
<h2>The laws compared</h2>
<p>All have the same stiffness and damping. Errors are those of the true position; the compute time
is that of the controller's update alone.</p>
@TABLE@
</section>

<section>
<h2>Tracking error</h2>
<p>Each line across is ten times the one below.</p>
<div class="grid wide" id="errors">@ERRORS@</div>
</section>

<section>
<h2>Positions</h2>
@LEGEND@
<div class="grid" id="positions">@POSITIONS@</div>
</section>

<section>
<h2>Efforts</h2>
@EFFORT_LEGEND@
<div class="grid" id="efforts">@EFFORTS@</div>
</section>

<section id="mass">
<h2>Mass matrix along the path</h2>
<p>From one end of the path to where it differs most: what a joint has to move depends on where the
others are.</p>
@MASS@
</section>

<section>
<h2>Compute time</h2>
<div class="grid wide" id="compute">@COMPUTE@</div>
</section>

<footer>Written by <code>dynamics track --report</code>; the figures behind this page are in
track.json beside it.</footer>
</main>
<script>
"use strict";
const scene = @SCENE@;
const svgns = "http://www.w3.org/2000/svg";
const robot = document.getElementById("robot"), matrix = document.getElementById("matrix");
const make = (parent, name, attributes) => {
  const element = document.createElementNS(svgns, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  return parent.appendChild(element);
};

// --- what there is to see: the desired pose as a ghost, each law as a line ---
const all = [{title: "desired", colour: "var(--ghost)", frames: scene.desired, on: true, ghost: true},
             ...scene.laws];
const range = [0, 1, 2].map(axis => {
  let low = axis === 2 ? 0 : Infinity, high = -Infinity;
  for (const actor of all) for (const frame of actor.frames)
    for (let i = axis; i < frame.length; i += 3) {
      low = Math.min(low, frame[i]); high = Math.max(high, frame[i]);
    }
  return [low, high];
});
const centre = range.map(([low, high]) => (low + high) / 2);
const size = Math.hypot(...range.map(([low, high]) => high - low)) || 1;
let yaw = -0.9, pitch = 0.32;
const project = (x, y, z) => {
  const [a, b, c] = [x - centre[0], y - centre[1], z - centre[2]];
  const right = Math.cos(yaw) * a + Math.sin(yaw) * b, deep = -Math.sin(yaw) * a + Math.cos(yaw) * b;
  const up = Math.cos(pitch) * c + Math.sin(pitch) * deep, k = 470 / size;
  return [270 + k * right, 215 - k * up];
};
const text = p => p[0].toFixed(1) + "," + p[1].toFixed(1);

const floor = make(robot, "g", {stroke: "var(--line)", "stroke-width": 1});
const lines = [];
for (let i = 0; i <= 8; ++i) for (const across of [false, true])
  lines.push({i, across, element: make(floor, "line", {})});
for (const actor of all) {
  actor.group = make(robot, "g", {stroke: actor.colour, fill: "none", "stroke-linecap": "round",
    "stroke-linejoin": "round", "data-actor": actor.name || "desired"});
  actor.trail = make(actor.group, "polyline", {"stroke-width": actor.ghost ? 5 : 1.6,
    "stroke-opacity": actor.ghost ? 0.45 : 0.8});
  actor.limbs = scene.edges.map(() => make(actor.group, "line", {"stroke-width": actor.ghost ? 13 : 4.5}));
  actor.dots = actor.ghost ? [] : scene.edges.map(() => make(actor.group, "circle",
    {r: 4, fill: "var(--card)", "stroke-width": 2.5}));
}
// The point that travels farthest leaves a trail.
const points = scene.desired[0].length / 3;
let tip = 0, farthest = -1;
for (let i = 0; i < points; ++i) {
  let way = 0;
  for (let k = 1; k < scene.desired.length; ++k)
    way += Math.hypot(...[0, 1, 2].map(a => scene.desired[k][3 * i + a] - scene.desired[k - 1][3 * i + a]));
  if (way >= farthest) { farthest = way; tip = i; }
}

const between = (frames, at) => {
  const k = Math.min(Math.floor(at), frames.length - 1), next = Math.min(k + 1, frames.length - 1);
  return frames[k].map((x, i) => x + (at - k) * (frames[next][i] - x));
};
const set = (element, p, q) => {
  element.setAttribute("x1", p[0].toFixed(1)); element.setAttribute("y1", p[1].toFixed(1));
  element.setAttribute("x2", q[0].toFixed(1)); element.setAttribute("y2", q[1].toFixed(1));
};
function drawRobot(share) {
  const reach = size * 0.45, z = range[2][0];
  for (const line of lines) {
    const u = -reach + 2 * reach * line.i / 8, [x, y] = [centre[0], centre[1]];
    set(line.element, line.across ? project(x - reach, y + u, z) : project(x + u, y - reach, z),
        line.across ? project(x + reach, y + u, z) : project(x + u, y + reach, z));
  }
  for (const actor of all) {
    actor.group.style.display = actor.on ? "" : "none";
    if (!actor.on) continue;
    const frame = between(actor.frames, share * (actor.frames.length - 1));
    const point = i => project(frame[3 * i], frame[3 * i + 1], frame[3 * i + 2]);
    scene.edges.forEach(([a, b], i) => {
      set(actor.limbs[i], point(a), point(b));
      if (actor.ghost) return;
      const p = point(b);
      actor.dots[i].setAttribute("cx", p[0].toFixed(1)); actor.dots[i].setAttribute("cy", p[1].toFixed(1));
    });
    actor.trail.setAttribute("points", actor.frames.map(f =>
      text(project(f[3 * tip], f[3 * tip + 1], f[3 * tip + 2]))).join(" "));
  }
}

// --- the mass matrix ---
const n = scene.n, cells = [];
matrix.setAttribute("viewBox", `-0.6 -0.6 ${n + 0.7} ${n + 0.7}`);
for (let i = 0; i < n; ++i) {
  if (n <= 16 || i % 5 === 0) for (const [x, y] of [[i + 0.5, -0.2], [-0.3, i + 0.62]])
    make(matrix, "text", {x, y, "font-size": 0.3 * Math.max(1, n / 16), "text-anchor": "middle",
      fill: "var(--soft)"}).textContent = i + 1;
  for (let j = 0; j < n; ++j)
    cells.push(make(matrix, "rect", {x: j + 0.03, y: i + 0.03, width: 0.94, height: 0.94, rx: 0.1}));
}
let largest = 0;
for (const M of scene.M) for (const x of M) largest = Math.max(largest, Math.abs(x));
function drawMatrix(share) {
  if (!scene.M.length) return;
  const M = between(scene.M, share * (scene.M.length - 1));
  M.forEach((x, i) => {
    const strength = Math.min(1, Math.pow(Math.abs(x) / largest, 0.4));
    cells[i].setAttribute("fill", x >= 0 ? "#d6453d" : "#3b7dd8");
    cells[i].setAttribute("fill-opacity", (0.04 + 0.96 * strength).toFixed(3));
  });
}

// --- time ---
const play = document.getElementById("play"), slider = document.getElementById("time");
const clock = document.getElementById("clock"), duration = scene.t[scene.t.length - 1] || 1;
let share = 0, running = !matchMedia("(prefers-reduced-motion: reduce)").matches, last = null;
function draw() {
  drawRobot(share);
  drawMatrix(share);
  slider.value = share;
  clock.textContent = (share * duration).toFixed(2) + " s";
}
function step(now) {
  if (running && last !== null) { share = (share + (now - last) / 1000 / duration) % 1; draw(); }
  last = now;
  requestAnimationFrame(step);
}
const show = () => { play.textContent = running ? "Pause" : "Play"; };
play.onclick = () => { running = !running; show(); };
slider.oninput = () => { running = false; share = Number(slider.value); show(); draw(); };
for (const actor of all) {
  const button = document.createElement("button"), mark = document.createElement("i");
  mark.style.background = actor.colour;
  button.append(mark, actor.title);
  button.type = "button";
  button.setAttribute("aria-pressed", actor.on);
  button.onclick = () => { actor.on = !actor.on; button.setAttribute("aria-pressed", actor.on); draw(); };
  document.getElementById("who").append(button);
}
robot.onpointermove = event => {
  if (!event.buttons) return;
  yaw -= event.movementX * 0.01;
  pitch = Math.max(-0.2, Math.min(1.5, pitch + event.movementY * 0.01));
  draw();
};
show();
draw();
requestAnimationFrame(step);
</script>
</body>
</html>
"""


def main(arguments):
    if len(arguments) != 3:
        sys.exit("usage: report.py track.json index.html")
    with open(arguments[1], encoding="utf-8") as file:
        data = json.load(file)
    text = page(data)
    try:
        with open(arguments[2], "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        if os.path.isfile(arguments[2]):
            os.remove(arguments[2])  # half a page
        sys.exit(f"{arguments[2]}: cannot be written: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv)
