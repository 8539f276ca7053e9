// The page: a form of the columns, the answer with its ledger, and files of rows. Text is only ever set as text.
const scorer = new Scorer(document.getElementById("plan").textContent);
const sources = [];
for (const column of scorer.columns) {
  if (!sources.some((known) => known.source === column.source)) sources.push(column);
}
const byId = (id) => document.getElementById(id);
function make(tag, options = {}, ...children) {
  const { text, data, ...rest } = options, element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(rest)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
const percent = (p) => (p > 0.9995 ? "> 99.9\u00a0%" : p < 0.0005 ? "< 0.1\u00a0%" : `${(100 * p).toFixed(1)}\u00a0%`);
const short = (x) => (typeof x === "number" ? String(+x.toPrecision(6)) : String(x));
const makeCell = (x) => make("td", { text: short(x).slice(0, 80), class: Number.isNaN(+x) ? "" : "digits" });

function makeField(column, k) {
  const id = `cell${k}`, field = make("div", { class: "field" }, make("label", { for: id, text: column.source }));
  const values = column.part ? [] : scorer.listValues(column.source);
  if (column.part) field.append(make("input", { type: "text", id, class: "wide", placeholder: "2024-05-31" }));
  else if (column.kind === "text") field.append(make("textarea", { id }));
  else if (column.kind === "label" && values.length <= 100) {
    field.append(make("select", { id }, make("option", { value: "", text: "(missing)" }),
      ...values.map((value, i) => make("option", { value: String(i + 1), text: String(value) }))));
  } else if (column.kind === "number" && values.length > 1 && values.every((v) => typeof v === "number")) {
    const ends = [Math.min(...values), Math.max(...values)], pad = (ends[1] - ends[0]) / 10;
    const whole = values.every(Number.isInteger) && ends[1] - ends[0] > 4;
    const range = make("input", { type: "range", min: whole ? Math.floor(ends[0] - pad) : ends[0] - pad, max: ends[1] + pad, step: whole ? 1 : "any",
      "aria-label": `${column.source}, as a slider` });
    const input = make("input", { type: "text", id, inputmode: "decimal", placeholder: "missing" });
    const pair = make("div", { class: "pair missing" }, range, input);
    range.addEventListener("input", () => { input.value = short(+range.value); show(); });
    input.addEventListener("input", () => { if (input.value !== "" && !Number.isNaN(+input.value)) range.value = input.value; });
    field.append(pair);
  } else field.append(make("input", { type: "text", id, class: "wide", placeholder: "missing" }));
  return field;
}

function readForm() {
  return Object.fromEntries(sources.map((column, k) => {
    const input = byId(`cell${k}`);
    if (input.value === "") return [column.source, null];
    if (input.tagName === "SELECT") return [column.source, scorer.listValues(column.source)[input.value - 1]];
    if (column.kind !== "number" || column.part) return [column.source, input.value];
    const text = input.value.trim().replace(",", ".");
    input.setAttribute("aria-invalid", String(Number.isNaN(+text)));
    return [column.source, text];
  }));
}

function showAnswer(row) {
  const { label, probabilities } = scorer.predict(row), answer = byId("answer");
  const bars = Object.entries(probabilities).sort((a, b) => b[1] - a[1]).slice(0, 12).map(([name, p]) =>
    make("div", { class: "bar" }, make("span", { text: name }),
      make("meter", { min: 0, max: 1, value: p, "aria-label": `${name}: ${percent(p)}` }), make("span", { class: "number", text: percent(p) })));
  answer.replaceChildren(make("h2", { text: "Answer" }), make("p", { class: "label", text: String(label) }),
    make("div", { class: "bars" }, ...bars));
}

function showWhy(row) {
  const lines = scorer.ledger(row).filter((line) => Math.abs(line.decibans) >= 0.05).slice(0, 20);
  const body = lines.map((line) => make("tr", {}, ...(sources.length > 1 ? [make("td", { text: line.column })] : []),
    makeCell(line.value),
    make("td", { class: `number ${line.decibans > 0 ? "for" : "against"}`,
      text: `${line.decibans > 0 ? "+" : "\u2212"}${Math.abs(line.decibans).toFixed(1)}` })));
  byId("why").replaceChildren(make("h2", { text: "Why" }),
    make("p", { class: "soft", text: lines.length
      ? "Decibans of each column (of each word of a text) for the answer, against the same row without it: +10 is ten to one."
      : "Give a cell to see what it does." }),
    ...(body.length ? [make("table", {}, make("tbody", {}, ...body))] : []));
}

function showChanges(row) {
  const found = scorer.changes(row);
  const items = found.map((c) => make("tr", {}, make("td", { text: c.column }), makeCell(c.value),
    make("td", { text: `${c.label} (${percent(c.probability)})` })));
  byId("change").replaceChildren(make("h2", { text: "What would change the answer" }),
    items.length ? make("table", {}, make("thead", {}, make("tr", {}, make("th", { text: "column" }), make("th", { text: "to" }),
      make("th", { text: "answer" }))), make("tbody", {}, ...items))
      : make("p", { class: "soft", text: "No change of a single cell or word would." }));
}

let later = 0;
function show() {
  try {
    const row = readForm();
    for (const pair of document.querySelectorAll(".pair")) pair.classList.toggle("missing", pair.lastChild.value === "");
    showAnswer(row);
    clearTimeout(later);
    later = setTimeout(() => { showWhy(row); showChanges(row); }, 120);
  } catch (error) {
    byId("answer").replaceChildren(make("h2", { text: "Answer" }), make("p", { class: "error", text: error.message }));
  }
}

// Records of a CSV with quoted fields; the separator is the one that the first line has most of.
function readCsv(text) {
  const first = text.split(/\r?\n/, 1)[0], counts = [",", ";", "\t"].map((s) => [first.split(s).length, s]);
  const separator = counts.sort((a, b) => b[0] - a[0])[0][1], records = [];
  let record = [], cell = "", quoted = false;
  const end = () => { record.push(cell); cell = ""; };
  for (let i = text.charCodeAt(0) === 0xfeff ? 1 : 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') { cell += '"'; i++; } else quoted = false;
    } else if (c === '"' && cell === "") quoted = true;
    else if (c === separator) end();
    else if (c === "\n") { end(); records.push(record); record = []; } else if (c !== "\r") cell += c;
  }
  if (cell !== "" || record.length) { end(); records.push(record); }
  return records.filter((cells) => cells.length > 1 || cells[0] !== "");
}

function answerFile(name, text) {
  const [names, ...records] = readCsv(text), lacking = sources.filter((c) => !names.includes(c.source));
  if (lacking.length) throw new Error(`${name} has no column ${lacking[0].source}; it has ${names.slice(0, 8).join(", ")}`);
  const answers = records.map((cells, i) => {
    try {
      const p = scorer.probabilities(Object.fromEntries(names.map((column, k) => [column, cells[k]])));
      return { label: scorer.classes[p.indexOf(Math.max(...p))], p };
    } catch (error) { throw new Error(`row ${i + 1}: ${error.message}`); }
  });
  const classes = scorer.classes.map(String), head = ["answer", ...classes, ...names];
  const shown = answers.slice(0, 200).map((a, i) => make("tr", {}, make("td", { text: String(a.label) }),
    ...a.p.map((p) => make("td", { class: "number", text: p.toFixed(4) })),
    ...records[i].map((cell) => make("td", { text: cell.slice(0, 60) }))));
  byId("rows").replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, make("th", { text: "answer" }),
    ...classes.map((h) => make("th", { class: "number", text: h })), ...names.map((h) => make("th", { text: h })))),
    make("tbody", {}, ...shown)));
  byId("rows").hidden = false;
  const quote = (cell) => `"${/^[=+\-@\t\r]/.test(cell) && Number.isNaN(+cell) ? "'" : ""}${String(cell).replaceAll('"', '""')}"`;
  const lines = answers.map((a, i) => [quote(a.label), ...a.p, ...records[i].map(quote)].join(","));
  const save = make("button", { type: "button", text: "Save all answers as CSV" });
  save.addEventListener("click", () => {
    const link = make("a", { download: "answers.csv" });
    link.href = URL.createObjectURL(new Blob([[head.map(quote).join(","), ...lines].join("\n")], { type: "text/csv" }));
    link.click();
    URL.revokeObjectURL(link.href);
  });
  byId("filed").replaceChildren(`${name}: ${answers.length} rows, the first ${shown.length} below. `, save);
}

async function takeFile(file) {
  byId("filed").className = "";
  try { answerFile(file.name, await file.text()); } catch (error) {
    byId("filed").className = "error";
    byId("filed").textContent = error.message;
    byId("rows").hidden = true;
  }
}

const form = byId("row");
form.append(make("h2", { text: "A row" }), ...sources.map(makeField), make("button", { type: "reset", text: "Clear" }));
form.addEventListener("input", show);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(show));
byId("csv").addEventListener("change", (event) => { if (event.target.files[0]) takeFile(event.target.files[0]); });
for (const kind of ["dragover", "dragleave", "drop"]) {
  byId("drop").addEventListener(kind, (event) => {
    event.preventDefault();
    byId("drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop" && event.dataTransfer.files[0]) takeFile(event.dataTransfer.files[0]);
  });
}
show();
