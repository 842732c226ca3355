#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures this library beside others and shows the result.

    run.py BUILD [ROBOT ...]         times: a table, BUILD/bench.json and BUILD/bench_*.png
    run.py BUILD --instructions [ROBOT ...]   instructions a call of every method, by callgrind
    run.py BUILD --check             compares instruction counts with instructions.json (2 %)
    run.py BUILD --write             writes instructions.json

Without robots: those in config/robots that every library can treat, chains and trees.
"""

import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
ROBOTS = [str(SOURCE / "config/robots" / name) for name in ("ur5e.urdf", "panda.urdf")]
SIZES = (6, 12, 24, 48, 96, 192, 256)
GROWTH = [f"{kind}:{n}" for kind in ("chain", "tree") for n in SIZES]
SLACK = 0.02
COUNTED = {"here": ("inverse dynamics", "bias", "gravity", "mass matrix", "forward dynamics",
                    "inverse mass matrix", "jacobian", "inverse dynamics derivatives",
                    "forward dynamics derivatives")}
TABLE = HERE / "instructions.json"


def short(robot):
    return pathlib.Path(robot).stem


# --- Times ---------------------------------------------------------------------------------------


def measure(program, robots, rounds):
    runs = []
    for robot in robots:
        print(f"measuring {short(robot)}", file=sys.stderr)
        output = subprocess.run([program, "time", robot, str(rounds)], check=True,
                                capture_output=True, text=True).stdout
        runs.append(json.loads(output))
    return runs


def times(result, contestant, which=0):
    """Minimum (0) or median (1) of the throughput; of Pinocchio the faster of its two ways."""
    names = [n for n in result if n.split(",")[0] == contestant]
    return min((result[n]["throughput_ns"][which] for n in names), default=None)


def peers(result):
    known = ("generated", "batch", "pinocchio", "kdl")
    return [name for name in known if times(result, name) is not None]


def print_table(runs):
    for run in runs:
        print(f"\n{short(run['robot'])}, {run['n']} joints, {run['instruction_set']}")
        print(f"  {'ns a call: minimum (median)':<32}{'here':>18}{'A/A':>7}{'latency':>9}  others, and here / other")
        for quantity, result in run["results"].items():
            here = result["here"]["throughput_ns"]
            control = times(result, "control") / here[0]
            line = f"  {quantity:<32}{here[0]:>9.0f} ({here[1]:.0f})".ljust(52)
            line += f"{control:>7.2f}{result['latency_ns']['here'][0]:>9.0f}  "
            line += ", ".join(f"{name} {times(result, name):.0f} = {here[0] / times(result, name):.3f}"
                              for name in peers(result))
            print(line)


def spread(runs):
    """How far two copies of this library are from each other: nine of ten ratios are within it."""
    ratios = sorted(abs(times(r, "control") / times(r, "here") - 1)
                    for run in runs for r in run["results"].values())
    return ratios[int(0.9 * (len(ratios) - 1))]


# --- Plots ---------------------------------------------------------------------------------------

COLOURS = {"here": "#0b6e4f", "generated": "#74c69d", "batch": "#1b4965", "pinocchio": "#c1121f",
           "kdl": "#7d8597"}


def plot_robots(runs, directory):
    import matplotlib.pyplot as plt

    columns = min(2, len(runs))
    rows = -(-len(runs) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(6 * columns, 4.2 * rows), squeeze=False)
    for axis in axes.flat[len(runs):]:
        axis.set_visible(False)
    for axis, run in zip(axes.flat, runs):
        quantities = list(run["results"])
        axis.set_title(f"{short(run['robot'])}, {run['n']} joints")
        names = ["here"] + peers({k: v for r in run["results"].values() for k, v in r.items()})
        height = 0.8 / len(names)
        for k, name in enumerate(names):
            places, values = [], []
            for i, quantity in enumerate(quantities):
                value = times(run["results"][quantity], name)
                if value is not None:
                    places.append(i + (k - len(names) / 2 + 0.5) * height)
                    values.append(value)
            axis.barh(places, values, height, color=COLOURS[name], label=name)
        axis.set_yticks(range(len(quantities)), quantities)
        axis.invert_yaxis()
        axis.set_xscale("log")
        axis.set_xlabel("ns a call (minimum)")
        axis.grid(axis="x", alpha=0.3)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(directory / "bench_robots.png", dpi=110)


def plot_growth(runs, directory):
    import matplotlib.pyplot as plt

    quantities = list(runs[0]["results"])
    columns = 3
    rows = -(-len(quantities) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.4 * columns, 3.3 * rows), squeeze=False)
    for axis in axes.flat[len(quantities):]:
        axis.set_visible(False)
    for axis, quantity in zip(axes.flat, quantities):
        for kind, style in (("chain", "-"), ("tree", "--")):
            some = [run for run in runs if run["robot"].startswith(kind)]
            for name in ("here", "pinocchio"):
                points = [(run["n"], times(run["results"][quantity], name)) for run in some]
                points = [(n, t / n) for n, t in points if t is not None]
                if points:
                    axis.plot(*zip(*points), style, marker="o", markersize=3, color=COLOURS[name],
                              label=f"{name}, {kind}")
        axis.set_title(quantity, fontsize=10)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.grid(alpha=0.3)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    for axis in axes[-1]:
        axis.set_xlabel("joints")
    for row in axes:
        row[0].set_ylabel("ns a joint")
    axes[0][0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(directory / "bench_growth.png", dpi=90)


# --- Instructions --------------------------------------------------------------------------------


def instructions(program, robot, contestant, quantity):
    """A call's: the difference between two runs of different length."""
    def run(calls):
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program,
                   "count", robot, contestant, quantity, str(calls)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stderr
        return int(text.split("Collected : ")[1].split()[0])

    few, many = 32, 288
    return round((run(many) - run(few)) / (many - few))


def counts(program, robots):
    return {short(robot): {quantity: instructions(program, robot, "here", quantity)
                           for quantity in COUNTED["here"]} for robot in robots}


def print_instructions(program, robots):
    for robot in robots:
        print(f"\n{short(robot)}: instructions a call")
        pairs = subprocess.run([program, "list", robot], check=True, capture_output=True,
                               text=True).stdout.split("\n")
        for contestant, quantity in (pair.split(";") for pair in pairs if pair):
            print(f"  {quantity:<32}{contestant:<20}"
                  f"{instructions(program, robot, contestant, quantity):>9}")


def compiler(build):
    path = next(line.split("=", 1)[1] for line in (build / "CMakeCache.txt").read_text().split("\n")
                if line.startswith("CMAKE_CXX_COMPILER:"))
    return subprocess.run([path, "--version"], check=True, capture_output=True,
                          text=True).stdout.split("\n")[0]


def check(program, build):
    """True unless a count has grown by more than the slack."""
    table = json.loads(TABLE.read_text())
    if table["compiler"] != compiler(build):
        print(f"The table is for {table['compiler']}, this is {compiler(build)}: not compared.")
        return True
    good = True
    for robot, now in counts(program, ROBOTS).items():
        for quantity, number in now.items():
            before = table["instructions"][robot][quantity]
            grown = number > (1 + SLACK) * before
            shrunk = number < (1 - SLACK) * before
            good = good and not grown
            note = "MORE than" if grown else "fewer than" if shrunk else "as"
            print(f"{robot:<8}{quantity:<24}{number:>8}  {note} the table's {before}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("robots", nargs="*")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_intermixed_args()
    program = str(options.build / "test/bench/bench")

    if options.check:
        return 0 if check(program, options.build) else 1
    if options.write:
        TABLE.write_text(json.dumps({"compiler": compiler(options.build),
                                     "instructions": counts(program, ROBOTS)}, indent=2) + "\n")
        return 0
    if options.instructions:
        print_instructions(program, options.robots or ROBOTS)
        return 0

    runs = measure(program, options.robots or ROBOTS, options.rounds)
    growth = [] if options.robots else measure(program, GROWTH, max(3, options.rounds // 5))
    (options.build / "bench.json").write_text(json.dumps({"robots": runs, "growth": growth}))
    print_table(runs + growth)
    print(f"\nTwo copies of this library differ by up to {100 * spread(runs):.1f} % on these robots.")
    plot_robots(runs, options.build)
    if growth:
        plot_growth(growth, options.build)
    return 0


if __name__ == "__main__":
    sys.exit(main())
