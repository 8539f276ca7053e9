// A coin with a Beta prior: drag the mean of the prior, choose its strength, toss.

import { Axes, button, format, handle, openFigure, slider } from "./figure-drawing.js";
import { betaQuantile, logBeta } from "./figure-numbers.js";

export const logDensity = (theta, a, b) => (a - 1) * Math.log(theta) + (b - 1) * Math.log1p(-theta) - logBeta(a, b);

export function learn(a, b, heads, tails) {
  const [a1, b1] = [a + heads, b + tails];
  return {
    a: a1,
    b: b1,
    ml: heads + tails ? heads / (heads + tails) : NaN,
    map: a1 >= 1 && b1 >= 1 && a1 + b1 > 2 ? (a1 - 1) / (a1 + b1 - 2) : NaN,
    mean: a1 / (a1 + b1),
    interval: [betaQuantile(0.025, a1, b1), betaQuantile(0.975, a1, b1)],
    logEvidence: logBeta(a1, b1) - logBeta(a, b),
  };
}

export function mount(place) {
  const { controls, drawing, say } = openFigure(place, "Drag the prior (the circle), choose its strength, and toss.");
  const state = { mean: 0.5, strength: 10, heads: 7, tails: 3 };
  const axes = new Axes(drawing, { x: [0, 1], y: [0, 5], xLabel: "θ", yLabel: "density", label: "prior, likelihood and posterior of θ" });
  slider(controls, "strength of the prior, a + b", { min: 2, max: 100, step: 1, value: state.strength }, (v) => { state.strength = v; show(); });
  slider(controls, "heads", { min: 0, max: 100, step: 1, value: state.heads }, (v) => { state.heads = v; show(); });
  slider(controls, "tails", { min: 0, max: 100, step: 1, value: state.tails }, (v) => { state.tails = v; show(); });
  const knob = handle(axes, { label: "mean of the prior", x: state.mean, y: 0, along: "x", step: 0.01, limits: [0.01, 0.99] }, (to) => { state.mean = to.x; show(); });
  button(controls, "Uniform prior", () => { Object.assign(state, { mean: 0.5, strength: 2 }); knob.set({ x: 0.5 }); controls.querySelector("input").value = 2; controls.querySelector("output").textContent = "2"; show(); });
  axes.watch(show);

  function show() {
    const [a, b] = [state.mean * state.strength, (1 - state.mean) * state.strength];
    const now = learn(a, b, state.heads, state.tails);
    const inside = (x) => Math.min(Math.max(x, 1e-6), 1 - 1e-6);
    const posterior = (x) => Math.exp(logDensity(inside(x), now.a, now.b));
    const likelihood = (x) => Math.exp(logDensity(inside(x), state.heads + 1, state.tails + 1));
    const tops = Array.from({ length: 99 }, (_, i) => Math.max(posterior((i + 1) / 100), likelihood((i + 1) / 100)));
    axes.rescale([0, Math.ceil(1.1 * Math.max(...tops, 1.5))]);
    knob.place();
    axes.clear();
    axes.curve((x) => Math.exp(logDensity(inside(x), a, b)), "prior");
    if (state.heads + state.tails) axes.curve(likelihood, "likelihood");
    axes.curve(posterior, "posterior");
    if (Number.isFinite(now.ml)) axes.rule(now.ml, "dotted", "ML");
    axes.rule(now.mean, "third", "mean");
    say(`Prior Beta(${format(a)}, ${format(b)}), posterior Beta(${format(now.a)}, ${format(now.b)}). ML ${format(now.ml)}, MAP ${format(now.map)}, mean ${format(now.mean, 4)}, 95 % between ${format(now.interval[0])} and ${format(now.interval[1])}.`);
  }
}
