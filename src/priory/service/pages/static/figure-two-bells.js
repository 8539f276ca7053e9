// Two bells: drag their means, change their widths and the prior, and watch the border and the error.

import { Axes, format, handle, openFigure, slider } from "./figure-drawing.js";
import { normalTail, normalise } from "./figure-numbers.js";

const logDensity = (x, mean, sd) => -0.5 * ((x - mean) / sd) ** 2 - Math.log(sd) - 0.5 * Math.log(2 * Math.PI);

export function posterior(x, { means, sds, prior }) {
  const share = [prior, 1 - prior];
  return normalise(means.map((mean, c) => logDensity(x, mean, sds[c]) + Math.log(share[c])));
}

// Where both classes are equally probable: the roots of a quadratic.
export function borders({ means, sds, prior }) {
  const [p, q] = sds.map((s) => 1 / (s * s));
  const a = 0.5 * (q - p);
  const b = means[0] * p - means[1] * q;
  const c = 0.5 * (means[1] ** 2 * q - means[0] ** 2 * p) + Math.log(sds[1] / sds[0]) + Math.log(prior / (1 - prior));
  if (Math.abs(a) < 1e-14) return Math.abs(b) < 1e-14 ? [] : [-c / b];
  const under = b * b - 4 * a * c;
  if (under < 0) return [];
  const t = -0.5 * (b + (b >= 0 ? 1 : -1) * Math.sqrt(under));
  return (t === 0 ? [0, 0] : [t / a, c / t]).sort((one, other) => one - other);
}

// The Bayes rate: what each bell has on the wrong side of the borders.
export function errorRate(bells) {
  const cuts = [-Infinity, ...borders(bells), Infinity];
  const mass = (c, low, high) => normalTail((low - bells.means[c]) / bells.sds[c]) - normalTail((high - bells.means[c]) / bells.sds[c]);
  let error = 0;
  for (let i = 0; i + 1 < cuts.length; i += 1) {
    const [low, high] = [cuts[i], cuts[i + 1]];
    const inside = low === -Infinity ? (high === Infinity ? 0 : high - 1) : high === Infinity ? low + 1 : (low + high) / 2;
    const first = posterior(inside, bells)[0] >= 0.5;
    error += first ? (1 - bells.prior) * mass(1, low, high) : bells.prior * mass(0, low, high);
  }
  return error;
}

export function mount(place) {
  const { controls, drawing, say } = openFigure(place, "Drag the bells by their circles.");
  const bells = { means: [-1.5, 1.5], sds: [1, 1], prior: 0.5 };
  const axes = new Axes(drawing, { x: [-5, 5], y: [0, 0.45], xLabel: "x", yLabel: "p(x | c) P(c)", label: "two bells and the border between them" });
  slider(controls, "prior of the blue class", { min: 0.01, max: 0.99, step: 0.01, value: 0.5 }, (v) => { bells.prior = v; show(); });
  slider(controls, "width of the blue bell", { min: 0.3, max: 3, step: 0.1, value: 1 }, (v) => { bells.sds[0] = v; show(); });
  slider(controls, "width of the orange bell", { min: 0.3, max: 3, step: 0.1, value: 1 }, (v) => { bells.sds[1] = v; show(); });
  ["blue", "orange"].forEach((name, c) => handle(axes, { label: `mean of the ${name} bell`, x: bells.means[c], y: 0, step: 0.1, kind: c ? "second" : "first", limits: [-4, 4] }, (to) => { bells.means[c] = to.x; show(); }));
  axes.watch(show);

  function show() {
    axes.clear();
    [bells.prior, 1 - bells.prior].forEach((share, c) => axes.curve((x) => share * Math.exp(logDensity(x, bells.means[c], bells.sds[c])), c ? "second filled" : "first filled"));
    const found = borders(bells).filter((x) => x > axes.x[0] && x < axes.x[1]);
    found.forEach((x) => axes.rule(x, "dotted", format(x)));
    const where = found.length ? `Border at ${found.map((x) => format(x)).join(" and ")}` : "No border in sight";
    say(`${where}. The best possible error (the Bayes rate) is ${format(errorRate(bells), 4)}; the base rate is ${format(Math.max(bells.prior, 1 - bells.prior))}.`);
  }
}
