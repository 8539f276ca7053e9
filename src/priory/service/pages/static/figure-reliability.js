// Reliability under dependence: one informative column and copies of it. What naive Bayes claims, and how often it is right.

import { Axes, format, openFigure, slider } from "./figure-drawing.js";
import { logit, normalTail, sigmoid } from "./figure-numbers.js";

// P(class 1 | x) that naive Bayes gives for a column of two bells of variance 1 at 0 and gap, copied so many times.
export const claim = (x, gap, copies) => sigmoid(copies * gap * (x - gap / 2));

// How often an answer that is given with this certainty is right: the column counts once in truth.
export const truth = (certainty, copies) => sigmoid(logit(certainty) / copies);

// The mean log loss, by Simpson's rule over both bells.
export function logLoss(gap, copies, steps = 4000) {
  const [low, high] = [-9, gap + 9];
  const bell = (x, mean) => Math.exp(-0.5 * (x - mean) ** 2) / Math.sqrt(2 * Math.PI);
  const softplus = (a) => Math.max(a, 0) + Math.log1p(Math.exp(-Math.abs(a)));
  const f = (x) => { const odds = copies * gap * (x - gap / 2); return 0.5 * (bell(x, gap) * softplus(-odds) + bell(x, 0) * softplus(odds)); };
  let sum = f(low) + f(high);
  for (let i = 1; i < steps; i += 1) sum += (i % 2 ? 4 : 2) * f(low + (i / steps) * (high - low));
  return (sum * (high - low)) / (3 * steps);
}

export function mount(place) {
  const { controls, drawing, say } = openFigure(place, "Copy the column, and compare what is claimed with what is true.");
  const state = { copies: 5, gap: 1 };
  slider(controls, "equal columns", { min: 1, max: 10, step: 1, value: 5 }, (v) => { state.copies = v; show(); });
  slider(controls, "distance of the bells", { min: 0.2, max: 3, step: 0.1, value: 1 }, (v) => { state.gap = v; show(); });
  const axes = new Axes(drawing, { x: [0.5, 1], y: [0.5, 1], xLabel: "certainty that is claimed", yLabel: "share of right answers", label: "reliability of naive Bayes with copied columns" });
  axes.watch(show);

  function show() {
    axes.clear();
    axes.path([[0.5, 0.5], [1, 1]], "faint");
    axes.curve((p) => truth(Math.min(Math.max(p, 0.5), 1 - 1e-9), state.copies), "second");
    axes.rule(0.95, "dotted", "95 %");
    const accuracy = 1 - normalTail(state.gap / 2);
    say(`Accuracy ${format(accuracy)} with any number of copies. Answers given with 95 % are right in ${format(100 * truth(0.95, state.copies))} %. Log loss ${format(logLoss(state.gap, state.copies))}, with one column ${format(logLoss(state.gap, 1))}.`);
  }
}
