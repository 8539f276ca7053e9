// What the figures share: elements, axes, sliders, handles that mouse, finger and keyboard move, and a line of text that is
// read aloud. Colours and sizes are in figures.css. Nothing here knows about probability.

const SVG = "http://www.w3.org/2000/svg";

export function element(name, attributes = {}, ...children) {
  return build(document.createElement(name), attributes, children);
}

export function shape(name, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, name), attributes, children);
}

function build(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(key, value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

export function format(value, digits = 3) {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "-∞" : "-";
  return Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-4) ? value.toExponential(2) : String(+value.toPrecision(digits));
}

// A frame for a figure in the place of its static picture, which stays for those without script.
export function openFigure(place, title) {
  const panel = element("section", { class: "figure", "aria-label": title, tabindex: "-1" });
  for (const picture of place.querySelectorAll("img, picture")) picture.hidden = true;
  place.classList.add("is-live");
  place.append(panel);
  const controls = element("div", { class: "figure-controls" });
  const drawing = element("div", { class: "figure-drawing" });
  const words = element("p", { class: "figure-words", role: "status", "aria-live": "polite" });
  panel.append(element("p", { class: "figure-title" }, title), controls, drawing, words);
  return { panel, controls, drawing, say: (text) => { if (words.textContent !== text) words.textContent = text; } };
}

export class Axes {
  constructor(parent, { height = 300, x, y, xLabel, yLabel, label, ticks = [5, 4], left = 54 }) {
    Object.assign(this, { parent, width: 560, height, x, y, left, right: 12, top: 12, bottom: 44, knobs: [] });
    this.svg = shape("svg", { role: "group", "aria-label": label, class: "figure-svg" });
    this.frame = shape("g", { "aria-hidden": "true" });
    this.ink = shape("g", { "aria-hidden": "true" });
    this.handles = shape("g");
    this.svg.append(this.frame, this.ink, this.handles);
    Object.assign(this, { xLabel, yLabel, tickCounts: ticks });
    parent.append(this.svg);
  }

  // Draw now, and again whenever there is more or less room: a narrow figure has fewer points, not smaller letters.
  watch(draw) {
    const fit = () => {
      const width = Math.round(Math.min(560, Math.max(280, this.parent.clientWidth || 560)));
      if (width === this.width && this.svg.hasAttribute("viewBox")) return;
      this.width = width;
      this.svg.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
      this.svg.setAttribute("width", width);
      this.drawFrame();
      draw();
      this.knobs.forEach((place) => place());
    };
    fit();
    new ResizeObserver(fit).observe(this.parent);
  }

  across(x) { return this.left + ((x - this.x[0]) / (this.x[1] - this.x[0])) * (this.width - this.left - this.right); }
  up(y) { return this.height - this.bottom - ((y - this.y[0]) / (this.y[1] - this.y[0])) * (this.height - this.top - this.bottom); }

  // The point of the data under a point of the screen.
  locate(event) {
    const box = this.svg.getBoundingClientRect();
    const px = ((event.clientX - box.left) / box.width) * this.width;
    const py = ((event.clientY - box.top) / box.height) * this.height;
    return {
      x: this.x[0] + ((px - this.left) / (this.width - this.left - this.right)) * (this.x[1] - this.x[0]),
      y: this.y[0] + ((this.height - this.bottom - py) / (this.height - this.top - this.bottom)) * (this.y[1] - this.y[0]),
    };
  }

  drawFrame() {
    const floor = this.height - this.bottom;
    this.frame.replaceChildren(
      shape("line", { x1: this.left, x2: this.width - this.right, y1: floor, y2: floor, class: "axis" }),
      shape("line", { x1: this.left, x2: this.left, y1: this.top, y2: floor, class: "axis" }),
    );
    if (this.xLabel) this.frame.append(shape("text", { x: (this.left + this.width - this.right) / 2, y: this.height - 6, class: "label middle" }, this.xLabel));
    if (this.yLabel) this.frame.append(shape("text", { x: 0, y: 0, transform: `translate(12 ${(this.top + floor) / 2}) rotate(-90)`, class: "label middle" }, this.yLabel));
    for (const tick of spread(this.x, this.tickCounts[0])) this.frame.append(shape("text", { x: this.across(tick), y: floor + 16, class: "tick middle" }, format(tick)));
    for (const tick of spread(this.y, this.tickCounts[1])) this.frame.append(shape("text", { x: this.left - 6, y: this.up(tick) + 4, class: "tick end" }, format(tick)));
  }

  clear() { this.ink.replaceChildren(); }
  rescale(y) { if (y[0] !== this.y[0] || y[1] !== this.y[1]) { this.y = y; this.drawFrame(); } }
  add(node) { this.ink.append(node); return node; }

  curve(f, kind, points = 240) {
    const xs = Array.from({ length: points + 1 }, (_, i) => this.x[0] + (i / points) * (this.x[1] - this.x[0]));
    return this.path(xs.map((x) => [x, f(x)]), kind);
  }

  path(points, kind) {
    const clamp = (y) => Math.min(Math.max(y, this.y[0] - (this.y[1] - this.y[0])), this.y[1] + (this.y[1] - this.y[0]));
    const d = points.filter(([, y]) => !Number.isNaN(y)).map(([x, y], i) => `${i ? "L" : "M"}${this.across(x).toFixed(2)} ${this.up(clamp(y)).toFixed(2)}`).join("");
    return this.add(shape("path", { d, class: `curve ${kind}` }));
  }

  rule(x, kind, text) {
    this.add(shape("line", { x1: this.across(x), x2: this.across(x), y1: this.top, y2: this.height - this.bottom, class: `rule ${kind}` }));
    if (text) this.add(shape("text", { x: this.across(x) + 4, y: this.top + 10, class: "tick" }, text));
  }

  bar(x, width, height, kind) {
    const [left, right] = [this.across(x - width / 2), this.across(x + width / 2)];
    return this.add(shape("rect", { x: left, width: right - left, y: this.up(Math.max(height, 0)), height: Math.max(this.up(0) - this.up(Math.max(height, 0)), 0), class: `figure-bar ${kind}` }));
  }

  under(x, text) { return this.add(shape("text", { x: this.across(x), y: this.height - this.bottom + 16, class: "tick middle" }, text)); }
  text(x, y, text, kind = "middle") { return this.add(shape("text", { x: this.across(x), y: this.up(y) - 5, class: `tick ${kind}` }, text)); }
}

function spread([low, high], count) {
  if (!count) return [];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((f) => f * power).find((s) => s >= rough * 0.99);
  const ticks = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + 1e-9 * step; tick += step) ticks.push(Math.abs(tick) < 1e-12 ? 0 : tick);
  return ticks;
}

let serial = 0;

export function slider(parent, label, { min, max, step, value, show = format }, react) {
  const id = `figure-input-${(serial += 1)}`;
  const shown = element("output", { for: id }, show(value));
  const input = element("input", { type: "range", id, min, max, step, value, input: () => { shown.textContent = show(+input.value); react(+input.value); } });
  parent.append(element("div", { class: "figure-slider" }, element("label", { for: id }, label), input, shown));
  return { input, set: (v) => { input.value = v; shown.textContent = show(+input.value); } };
}

export function button(parent, label, react) {
  const node = element("button", { type: "button", click: react }, label);
  parent.append(node);
  return node;
}

export function choice(parent, label, options, value, react) {
  const id = `figure-input-${(serial += 1)}`;
  const select = element("select", { id, change: () => react(select.value) }, ...options.map((one) => element("option", { value: one, selected: one === value }, one || "unknown")));
  parent.append(element("div", { class: "figure-choice" }, element("label", { for: id }, label), select));
  return select;
}

// A point that can be dragged along x, along y or both ways, also with the arrow keys (with Shift, ten steps at once).
export function handle(axes, { label, x, y, along = "x", step, kind = "", limits, describe = format }, react) {
  const state = { x, y };
  const knob = shape("circle", { r: 8, class: `handle ${kind}`, tabindex: "0", role: "slider", "aria-label": label, "aria-orientation": along === "y" ? "vertical" : "horizontal" });
  const range = limits ?? (along === "y" ? axes.y : axes.x);
  const place = () => {
    knob.setAttribute("cx", axes.across(state.x));
    knob.setAttribute("cy", axes.up(state.y));
    const value = along === "y" ? state.y : state.x;
    knob.setAttribute("aria-valuemin", range[0]);
    knob.setAttribute("aria-valuemax", range[1]);
    knob.setAttribute("aria-valuenow", +value.toPrecision(6));
    knob.setAttribute("aria-valuetext", along === "both" ? `${format(state.x)}, ${format(state.y)}` : describe(value));
  };
  const keep = (value, [low, high]) => Math.min(Math.max(value, low), high);
  const move = (to) => {
    if (along !== "y") state.x = keep(to.x, limits && along === "x" ? limits : axes.x);
    if (along !== "x") state.y = keep(to.y, limits && along === "y" ? limits : axes.y);
    react(state);
    place();
  };
  knob.addEventListener("pointerdown", (event) => { knob.setPointerCapture(event.pointerId); knob.classList.add("held"); event.preventDefault(); knob.focus(); });
  knob.addEventListener("pointermove", (event) => { if (knob.hasPointerCapture(event.pointerId)) move(axes.locate(event)); });
  knob.addEventListener("pointerup", () => knob.classList.remove("held"));
  knob.addEventListener("keydown", (event) => {
    const size = (event.shiftKey ? 10 : 1) * step;
    const shift = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!shift) return;
    event.preventDefault();
    const lone = shift[0] + shift[1];  // a handle that moves one way takes both pairs of keys
    move(along === "both" ? { x: state.x + shift[0] * size, y: state.y + shift[1] * size } : { x: state.x + lone * size, y: state.y + lone * size });
  });
  axes.handles.append(knob);
  axes.knobs.push(place);
  place();
  return { knob, place, set: (to) => { Object.assign(state, to); place(); } };
}

export function table(head, rows, caption) {
  const cells = (row, kind) => row.map((cell, i) => element(i || kind === "th" ? kind : "th", { scope: kind === "th" ? "col" : i ? undefined : "row" }, cell));
  return element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...cells(head, "th"))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells(row, "td")))));
}
