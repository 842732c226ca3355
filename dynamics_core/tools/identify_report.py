#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the page of `dynamics identify`: identify_report.py identify.json index.html"""

import html
import json
import math
import sys

from report import INK, PAGE, axes, card, plain

MEASURED, PREDICTED, NOMINAL = INK, "#2f7de1", "#e4572e"
STYLE = PAGE[PAGE.index("<style>"):PAGE.index("</style>")] + "</style>"
LEGEND = (f'<p class="legend"><span><i style="background:currentColor"></i>measured</span>'
          f'<span><i style="background:{PREDICTED}"></i>predicted by the model written</span>'
          f'<span><i style="background:{NOMINAL}"></i>by the URDF as it was</span></p>')


def percent(x):
    return "–" if x is None else f"{100 * x:.{2 if x < 0.0995 else 1}f} %"


def plot_efforts(data, j):
    figure, ax = axes(3.9, 2.2)
    trace = data["traces"]
    ax.plot(trace["t"], trace["nominal"][j], color=NOMINAL, linewidth=1)
    ax.plot(trace["t"], trace["measured"][j], color=MEASURED, linewidth=1.6)
    ax.plot(trace["t"], trace["predicted"][j], color=PREDICTED, linewidth=1.2)
    ax.set_title(plain(data["joints"][j]["name"]))
    ax.set_xlabel("time [s]")
    ax.set_ylabel("effort [N m, N]")
    return card(figure, f"Measured and predicted effort of {data['joints'][j]['name']}")


def plot_residuals(data, j):
    figure, ax = axes(3.9, 1.8)
    trace = data["traces"]
    left = [m - p for m, p in zip(trace["measured"][j], trace["predicted"][j])]
    ax.plot(trace["t"], left, color=PREDICTED, linewidth=1)
    ax.set_title(plain(data["joints"][j]["name"]))
    ax.set_xlabel("time [s]")
    ax.set_ylabel("left over [N m, N]")
    return card(figure, f"What the model leaves of the effort of {data['joints'][j]['name']}")


def plot_parameters(data):
    """How far each base parameter went, in its own standard deviations from the URDF."""
    told = [p for p in data["base_parameters"] if p["value"] is not None]
    if not told:
        return ""
    figure, ax = axes(9.4, max(2.0, 0.16 * len(told)))
    for y, p in enumerate(reversed(told)):
        scale = max(abs(p["nominal"]), abs(p["value"]), 3 * (p["standard_deviation"] or 0.0), 1e-9)
        ax.plot([p["nominal"] / scale], [y], "|", color=NOMINAL, markersize=8)
        ax.errorbar([p["value"] / scale], [y], xerr=[(p["standard_deviation"] or 0.0) / scale],
                    fmt="o", color=PREDICTED, markersize=3, linewidth=1)
    ax.set_yticks(range(len(told)), [plain(p["name"]) for p in reversed(told)], fontsize=7)
    ax.set_xlabel("each beside the larger of its value and the URDF's; bars: standard deviation")
    ax.set_title("Base parameters")
    return card(figure, "Base parameters with their standard deviations beside the URDF's")


def table(data):
    head = "".join(f'<th scope="col">{cell}</th>' for cell in
                   ["joint", *(html.escape(c["name"]) for c in data["candidates"]),
                    "rotor<small>kg m²</small>", "viscous<small>N m s/rad</small>",
                    "Coulomb<small>N m</small>", "offset<small>N m</small>",
                    "delay<small>ms</small>", "noise<small>N m</small>"])
    rows = []
    for j, joint in enumerate(data["joints"]):
        cells = [percent(c["held_out_error_by_joint"][j]) for c in data["candidates"]]
        cells += [f"{x:.3g}" for x in
                  (joint["rotor_inertia"], joint["friction"]["viscous"],
                   joint["friction"]["coulomb"], joint["offset"], 1e3 * joint["delay"],
                   joint["noise"])]
        rows.append(f'<tr><th scope="row">{html.escape(joint["name"])}</th>' +
                    "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    cells = [percent(c["held_out_error"]) for c in data["candidates"]] + [""] * 6
    rows.append('<tr><th scope="row">all joints</th>' +
                "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return ('<div class="scroll card"><table><thead><tr>' + head + "</tr></thead><tbody>" +
            "".join(rows) + "</tbody></table></div>")


def page(data):
    robot = html.escape(data["robot"])
    joints = [j for j, joint in enumerate(data["joints"]) if joint["factor"] != 0]
    items = "".join(f"<li>{html.escape(note)}</li>" for note in data["notes"] + data["advice"])
    condition = data["condition_number"]
    known = "" if condition is None or not math.isfinite(condition) else (
        f" The condition number of the base parameters' columns is {condition:.3g}.")
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{robot} · identification</title>
{STYLE}</head><body><main>
<h1>{robot}</h1>
<p>{html.escape(data["verdict"])}</p>
<section><h2>Error on the data held out</h2>
<p>RMS of the error over RMS of the effort, both low-passed at {data["cutoff"]:.3g} Hz, while the robot
moves. The values are those of the model written.</p>{table(data)}</section>
<section><h2>Efforts</h2>{LEGEND}<div class="grid">{"".join(plot_efforts(data, j) for j in joints)}</div>
</section>
<section><h2>What is left</h2><div class="grid">{"".join(plot_residuals(data, j) for j in joints)}</div>
</section>
<section><h2>Parameters</h2><p>Red: the URDF's.{known}</p>{plot_parameters(data)}</section>
<section><h2>What was found in the log</h2><ul>{items}</ul></section>
<footer>Written by <code>dynamics identify</code>; the figures behind this page are in identify.json
beside it.</footer>
</main></body></html>
"""


def main(arguments):
    if len(arguments) != 3:
        sys.exit("usage: identify_report.py identify.json index.html")
    with open(arguments[1], encoding="utf-8") as file:
        data = json.load(file)
    text = page(data)
    with open(arguments[2], "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main(sys.argv)
