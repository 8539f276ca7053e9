"""Draw the figures of docs/hypotheses.md, with the same bytes every time."""

from pathlib import Path

import matplotlib

from priory import plots
from priory.bayes import Continuum, Hypotheses

SHARE = {"h1": 0.0, "h2": 0.25, "h3": 0.5, "h4": 0.75, "h5": 1.0}
LIMES = ["lime"] * 10
EXAMPLES = [(3, "+"), (5, "+"), (8, "-")]


def interval(a, b):
    return lambda example: float((a <= example[0] <= b) == (example[1] == "+"))


bags = Hypotheses(
    dict(zip(SHARE, [0.1, 0.2, 0.4, 0.2, 0.1], strict=True)),
    {h: {"lime": p, "cherry": 1 - p} for h, p in SHARE.items()},
)
concepts = {(a, b): interval(a, b) for a in range(10) for b in range(a, 10)}
space = Hypotheses(likelihood=concepts, outcomes=["+", "-"]).update_many(EXAMPLES)

figures = {
    "candy_bags": plots.posterior_curves(bags, LIMES),
    "next_lime": plots.next_outcome_curve(bags, LIMES, "lime"),
    "belief": plots.belief(Continuum(("cherry", "lime")).update_many(["cherry"] * 7 + ["lime"] * 3)),
    "version_space": plots.version_space(space, range(10), EXAMPLES),
}

if __name__ == "__main__":
    with matplotlib.rc_context({"svg.hashsalt": "priory"}):
        for name, figure in figures.items():
            figure.savefig(Path(__file__).parent / f"{name}.svg", metadata={"Date": None})
