// Posterior lines: add points and drag them; the belief about the line is updated in closed form.

import { Axes, button, format, handle, openFigure, slider } from "./figure-drawing.js";
import { logGamma, studentQuantile } from "./figure-numbers.js";

// Normal-inverse-gamma prior: precision strength × I of intercept and slope, shape and scale of the noise.
export function learn(points, { strength = 1, shape = 3, scale = 1 } = {}) {
  let [p00, p01, p11, q0, q1, yy] = [strength, 0, strength, 0, 0, 0];
  for (const [x, y] of points) { p00 += 1; p01 += x; p11 += x * x; q0 += y; q1 += x * y; yy += y * y; }
  const determinant = p00 * p11 - p01 * p01;
  const intercept = (p11 * q0 - p01 * q1) / determinant;
  const slope = (p00 * q1 - p01 * q0) / determinant;
  const newShape = shape + points.length / 2;
  const newScale = scale + 0.5 * (yy - intercept * q0 - slope * q1);
  const logEvidence = -0.5 * points.length * Math.log(2 * Math.PI) + 0.5 * (2 * Math.log(strength) - Math.log(determinant))
    + shape * Math.log(scale) - newShape * Math.log(newScale) + logGamma(newShape) - logGamma(shape);
  return { intercept, slope, precision: [p00, p01, p11], determinant, shape: newShape, scale: newScale, logEvidence };
}

export function predict(belief, x, level = 0.9) {
  const [p00, p01, p11] = belief.precision;
  const leverage = (p11 - 2 * x * p01 + x * x * p00) / belief.determinant;
  const reach = studentQuantile(level, 2 * belief.shape) * Math.sqrt((belief.scale / belief.shape) * (1 + leverage));
  const middle = belief.intercept + belief.slope * x;
  return [middle - reach, middle + reach];
}

// Lines drawn from the belief; the same every time, so that nothing flickers while a point is dragged.
function drawLines(belief, count) {
  let seed = 7;
  const uniform = () => { seed = (seed * 16807) % 2147483647; return seed / 2147483647; };
  const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  const [p00, p01, p11] = belief.precision;
  const root = [Math.sqrt(p00), p01 / Math.sqrt(p00)];
  root.push(Math.sqrt(p11 - root[1] ** 2));
  return Array.from({ length: count }, () => {
    const freedom = Math.round(2 * belief.shape);
    const chi = Array.from({ length: freedom }, () => normal() ** 2).reduce((a, b) => a + b, 0);
    const noise = Math.sqrt((2 * belief.scale) / chi);
    const slope = (noise * normal()) / root[2];
    return [belief.intercept + (noise * normal() - root[1] * slope) / root[0], belief.slope + slope];
  });
}

export function mount(place) {
  const { controls, drawing, say } = openFigure(place, "Click to add a point, or drag the points.");
  const state = { points: [[-1.2, 0.3], [0.4, 1.3], [1.5, 1.6]], strength: 1 };
  const axes = new Axes(drawing, { x: [-3, 3], y: [-3, 4], xLabel: "x", yLabel: "y", label: "points and plausible lines", height: 340 });
  slider(controls, "strength of the prior", { min: 0.1, max: 20, step: 0.1, value: 1 }, (v) => { state.strength = v; show(); });
  button(controls, "Add a point", () => add(state.points.length % 2 ? [2, 2] : [-2, 0]));
  button(controls, "Remove the last", () => { state.points.pop(); axes.handles.lastChild?.remove(); axes.knobs.pop(); show(); });
  axes.svg.addEventListener("click", (event) => {
    if (event.target.closest(".handle")) return;
    const at = axes.locate(event);
    if (at.x > axes.x[0] && at.x < axes.x[1] && at.y > axes.y[0] && at.y < axes.y[1]) add([at.x, at.y]);
  });
  state.points.forEach((point, i) => track(point, i));
  axes.watch(show);

  function add(point) { if (state.points.length < 30) { state.points.push(point); track(point, state.points.length - 1); show(); } }
  function track(point, i) { handle(axes, { label: `point ${i + 1}`, x: point[0], y: point[1], along: "both", step: 0.1 }, (to) => { point[0] = to.x; point[1] = to.y; show(); }); }

  function show() {
    const belief = learn(state.points, { strength: state.strength });
    axes.clear();
    for (const [intercept, slope] of drawLines(belief, 25)) axes.path([[-3, intercept - 3 * slope], [3, intercept + 3 * slope]], "thin");
    const xs = Array.from({ length: 31 }, (_, i) => -3 + i / 5);
    const band = xs.map((x) => predict(belief, x));
    axes.path(xs.map((x, i) => [x, band[i][0]]), "dashed");
    axes.path(xs.map((x, i) => [x, band[i][1]]), "dashed");
    axes.curve((x) => belief.intercept + belief.slope * x, "second", 2);
    say(`${state.points.length} points: intercept ${format(belief.intercept)}, slope ${format(belief.slope)}. At x = 3, 90 % of new points lie between ${format(predict(belief, 3)[0])} and ${format(predict(belief, 3)[1])}.`);
  }
}
