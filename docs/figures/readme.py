"""Draw the picture of the README, with the same bytes every time: an answer with its evidence, and scores."""

import re
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from priory import NaiveBayes, inbox

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "quality_splits.md"
MESSAGE = {"sender": "stranger", "hour": 3, "links": 2, "text": "Your parcel is waiting, confirm the delivery fee now"}
BLUE, RED, GREY = "#2a6f97", "#c8553d", "#9aa1ac"


def draw_evidence(axes):
    """The evidence of each column of one message, in decibans, as `priory explain` prints it."""
    ledger = NaiveBayes().fit(*inbox()).explain([MESSAGE])[0]
    best, second = np.argsort(ledger.total)[:-3:-1]
    lines = sorted(ledger.lines, key=lambda line: line.log_likelihood[second] - line.log_likelihood[best])
    decibans = [
        10 / np.log(10) * (each.log_likelihood[best] - each.log_likelihood[second]) for each in (ledger.prior, *lines)
    ]
    names = ["average row", *(f"{line.name} = {MESSAGE[line.name]}" for line in lines)]
    starts = np.cumsum([0, *decibans])
    names = [name if len(name) < 30 else name[:26] + "..." for name in names]
    for place, (start, width) in enumerate(zip(starts, decibans, strict=False)):
        axes.barh(place, width, left=start, color=BLUE if width > 0 else RED, height=0.6)
        axes.text(max(start, start + width) + 0.5, place, f"{width:+.1f}", va="center", fontsize=9)
    axes.barh(len(names), starts[-1], color="#14213d", height=0.6)
    axes.text(starts[-1] + 0.5, len(names), f"{starts[-1]:+.1f} dB", va="center", fontsize=9)
    axes.set_yticks(range(len(names) + 1), [*names, f"spam, p = {ledger.probabilities()[best]:.3f}"])
    axes.invert_yaxis()
    axes.set_xlim(min(starts) - 1, max(starts) + 6)
    axes.set_title("Why: the evidence for spam, in decibans", fontsize=11, loc="left")


def draw_quality(axes):
    """The mean log loss of the models that the results name, the best on top."""
    header, _, losses = re.search(r"(\| all tables.*)\n(.*)\n(\| log loss.*)", RESULTS.read_text()).groups()
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in (header, losses)]
    found = sorted((float(loss), loss, name) for loss, name in zip(cells[1][1:], cells[0][1:], strict=True))
    names = ["naive Bayes, plain" if name == "plain" else name for _, _, name in found]
    for place, (loss, text, name) in enumerate(found):
        axes.barh(place, loss, color=BLUE if name == "NaiveBayes()" else GREY, height=0.6)
        axes.text(loss + 0.005, place, text, va="center", fontsize=9)
    axes.set_yticks(range(len(found)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, found[-1][0] * 1.2)
    axes.set_title(f"How good: mean log loss, {re.search('[0-9]+', cells[0][0])[0]} tables", fontsize=11, loc="left")


def draw():
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_evidence(left)
    draw_quality(right)
    for axes in (left, right):
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(left=False, labelsize=9)
    return figure


if __name__ == "__main__":
    with matplotlib.rc_context({"svg.hashsalt": "priory", "svg.fonttype": "path"}):
        figure = draw()
        figure.patch.set_facecolor("white")  # readable on a dark page too
        figure.savefig(Path(__file__).parent / "readme.svg", metadata={"Date": None})
