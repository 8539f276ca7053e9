// PlayTennis: choose the weather, and read the ledger of naive Bayes.

import { Axes, choice, element, format, openFigure, shape, slider, table } from "./figure-drawing.js";

export const COLUMNS = ["outlook", "temperature", "humidity", "wind"];
export const DAYS = ("sunny hot high weak no,sunny hot high strong no,overcast hot high weak yes,rain mild high weak yes," +
  "rain cool normal weak yes,rain cool normal strong no,overcast cool normal strong yes,sunny mild high weak no," +
  "sunny cool normal weak yes,rain mild normal weak yes,sunny mild normal strong yes,overcast mild high strong yes," +
  "overcast hot normal weak yes,rain mild high strong no").split(",").map((day) => day.split(" "));
const CLASSES = ["no", "yes"];

export const listValues = (k) => [...new Set(DAYS.map((day) => day[k]))].sort();

// The factors of each class, their product and the posterior; an unknown value ("") has no factor. m virtual examples with
// equal shares are added to every column.
export function judge(today, m) {
  const rows = CLASSES.map((c) => DAYS.filter((day) => day[4] === c));
  const factors = { prior: rows.map((days) => days.length / DAYS.length) };
  COLUMNS.forEach((name, k) => {
    if (today[k]) factors[`${name} = ${today[k]}`] = rows.map((days) => (days.filter((day) => day[k] === today[k]).length + m / listValues(k).length) / (days.length + m));
  });
  const product = CLASSES.map((_, c) => Object.values(factors).reduce((p, pair) => p * pair[c], 1));
  const total = product[0] + product[1];
  return { factors, product, posterior: product.map((p) => p / total) };
}

export function mount(place) {
  const { controls, drawing, say } = openFigure(place, "Choose a day, and read what each attribute adds.");
  const today = ["sunny", "cool", "high", "strong"];
  let m = 0;
  COLUMNS.forEach((name, k) => choice(controls, name, ["", ...listValues(k)], today[k], (value) => { today[k] = value; show(); }));
  slider(controls, "virtual examples, m", { min: 0, max: 20, step: 1, value: 0 }, (v) => { m = v; show(); });
  const axes = new Axes(drawing, { x: [-10, 10], y: [0, 5], xLabel: "decibans for no", label: "what each attribute adds to the odds of no against yes", height: 230, ticks: [4, 0], left: 142 });
  const board = element("div", { class: "figure-table", tabindex: "0", role: "region", "aria-label": "ledger" });
  drawing.append(board);
  axes.watch(show);

  function show() {
    const { factors, product, posterior } = judge(today, m);
    axes.clear();
    Object.entries(factors).forEach(([name, pair], i) => {
      const decibans = 10 * Math.log10(pair[0] / pair[1]);
      const end = Math.min(Math.max(decibans, -10), 10);
      const row = 4.9 - i;
      const [left, right] = [axes.across(Math.min(0, end)), axes.across(Math.max(0, end))];
      const box = axes.bar(0, 0, 0, decibans >= 0 ? "second" : "first");
      Object.entries({ x: left, width: right - left, y: axes.up(row), height: axes.up(row - 0.42) - axes.up(row) }).forEach(([key, value]) => box.setAttribute(key, value));
      axes.add(shape("text", { x: 6, y: axes.up(row - 0.42), class: "tick start" }, name));
      axes.text(9.9, row - 0.6, format(decibans), "end");
    });
    axes.rule(0, "faint");
    const rows = Object.entries(factors).map(([name, pair]) => [name, ...pair.map((p) => format(p, 4)), format(pair[0] / pair[1], 4)]);
    rows.push(["product", ...product.map((p) => format(p, 4)), format(product[0] / product[1], 4)], ["P(class | row)", ...posterior.map((p) => format(p, 4)), ""]);
    board.replaceChildren(table(["p", ...CLASSES, "odds ×"], rows, "The ledger of this day."));
    say(posterior[0] === posterior[1] ? "Both answers are equally probable." : Number.isNaN(posterior[0]) ? "Both products are 0: add virtual examples." : `Play tennis: ${posterior[0] > posterior[1] ? "no" : "yes"}, with ${format(Math.max(...posterior), 4)}.`);
  }
}
