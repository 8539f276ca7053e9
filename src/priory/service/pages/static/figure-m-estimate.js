// The m-estimate on the table of outlooks of the library: change counts and m, and compare frequency and estimate.

import { Axes, element, format, openFigure, slider, table } from "./figure-drawing.js";

export const COUNTS = { Overcast: [2, 0], Rain: [3, 1], Sunny: [0, 3] };
export const CLASSES = ["No", "Yes"];

// (n_c + m p) / (n + m) of every value and class, with equal shares p.
export function estimate(counts, m) {
  const values = Object.keys(counts);
  const totals = CLASSES.map((_, c) => values.reduce((sum, value) => sum + counts[value][c], 0));
  return Object.fromEntries(values.map((value) => [value, totals.map((n, c) => (n + m === 0 ? NaN : (counts[value][c] + m / values.length) / (n + m)))]));
}

export function mount(place) {
  const { controls, drawing, say } = openFigure(place, "Change the counts and the number of virtual examples.");
  const state = { counts: structuredClone(COUNTS), m: 3 };
  slider(controls, "virtual examples, m", { min: 0, max: 30, step: 1, value: state.m }, (v) => { state.m = v; show(); });
  const boxes = element("div", { class: "figure-counts" });
  for (const [value, row] of Object.entries(state.counts)) {
    row.forEach((n, c) => {
      const box = element("input", { type: "number", min: 0, max: 999, value: n, "aria-label": `days with ${value} and ${CLASSES[c]}`, input: () => { row[c] = Math.min(Math.max(Math.round(+box.value) || 0, 0), 999); show(); } });
      boxes.append(element("label", {}, `${value}, ${CLASSES[c]} `, box));
    });
  }
  controls.append(boxes);
  const axes = new Axes(drawing, { x: [0.4, 6.6], y: [0, 1], xLabel: "No (blue), Yes (orange)", yLabel: "P(outlook | class)", label: "frequency and m-estimate of each outlook", ticks: [0, 4], height: 240 });
  const board = element("div", { class: "figure-table", tabindex: "0", role: "region", "aria-label": "table of estimates" });
  drawing.append(board);
  axes.watch(show);

  function show() {
    const [plain, smooth] = [estimate(state.counts, 0), estimate(state.counts, state.m)];
    const totals = CLASSES.map((_, c) => Object.values(state.counts).reduce((sum, row) => sum + row[c], 0));
    axes.clear();
    const rows = [];
    Object.keys(state.counts).forEach((value, v) => {
      CLASSES.forEach((_, c) => {
        const at = 1 + c * 3 + v;
        axes.bar(at - 0.2, 0.36, plain[value][c] || 0, "faint");
        axes.bar(at + 0.2, 0.36, smooth[value][c] || 0, c ? "second" : "first");
        axes.under(at, value.slice(0, axes.width < 450 ? 4 : 8));
      });
      rows.push([value, ...CLASSES.map((_, c) => `(${state.counts[value][c]} + ${format(state.m / 3)}) / (${totals[c]} + ${state.m}) = ${format(smooth[value][c], 4)}`)]);
    });
    board.replaceChildren(table(["outlook", ...CLASSES], rows, "Grey: the frequency. Coloured: the m-estimate."));
    say(`P(Sunny | No) is ${format(plain.Sunny[0], 4)} as a frequency and ${format(smooth.Sunny[0], 4)} with ${state.m} virtual examples.`);
  }
}
