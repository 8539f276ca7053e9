"use strict";

// Whoever dictates, or uses keys for something else, can switch ours off; the browser remembers it.
const keys = document.querySelector("#keys");
keys.checked = localStorage.getItem("keys") !== "off";
keys.addEventListener("change", () => localStorage.setItem("keys", keys.checked ? "on" : "off"));

// Keys: an element with data-key is activated by that key, unless somebody is typing.
document.addEventListener("keydown", (event) => {
  if (!keys.checked || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select")) return;
  const key = CSS.escape(event.key.toLowerCase());
  const found = document.querySelector(`[data-key="${key}"]:not([disabled])`);
  if (found) {
    event.preventDefault();
    found.click();
  }
});

// Uploads: the file, or what is typed, is the body of the request, the other fields are its query; the answer goes
// where the form says, and a form with data-reset is empty again.
document.addEventListener("submit", (event) => {
  const form = event.target.closest("form.upload");
  if (!form) return;
  event.preventDefault();
  const typed = form.querySelector("textarea")?.value ?? "";
  const file = form.querySelector('input[type="file"]').files[0] ?? new File([typed], "typed.csv");
  const query = new URLSearchParams({ file: file.name });
  for (const field of form.querySelectorAll("input:not([type=file]), select")) query.set(field.name, field.value);
  const button = form.querySelector("button");
  const progress = form.querySelector("progress");
  const request = new XMLHttpRequest();
  request.open("POST", `${form.dataset.address}?${query}`);
  request.setRequestHeader("HX-Request", "true");
  request.upload.addEventListener("progress", (step) => {
    if (step.lengthComputable) progress.value = step.loaded / step.total;
  });
  request.addEventListener("loadend", () => {
    button.disabled = false;
    progress.hidden = true;
    const redirect = request.getResponseHeader("HX-Redirect");
    if (redirect) return window.location.assign(redirect);
    const failed = request.status < 200 || request.status >= 300;
    if (!failed && form.matches("[data-reset]")) form.reset();
    showPart(failed ? "#message" : form.dataset.target, request.responseText, failed);
  });
  button.disabled = true;
  progress.hidden = false;
  progress.value = 0;
  request.send(file);
});

// The columns of a chosen table are offered as targets, the last one first.
document.addEventListener("change", async (event) => {
  const list = document.querySelector("#known-columns");
  if (!list || event.target.id !== "file" || !event.target.files.length) return;
  const head = (await event.target.files[0].slice(0, 65536).text()).trimStart();
  const line = head.split(/\r?\n/, 1)[0];
  const names = line.startsWith("{")
    ? [...line.matchAll(/"([^"]+)"\s*:/g)].map((found) => found[1])
    : line.split(/[,;\t|]/).map((name) => name.trim().replace(/^"|"$/g, ""));
  const isTable = /\.(csv|tsv|jsonl|ndjson)$/i.test(event.target.files[0].name);
  list.replaceChildren(...(isTable ? names.reverse().map((name) => new Option(name, name)) : []));
});

function showPart(selector, html, failed) {
  if (!failed) document.querySelector("#message").replaceChildren();
  const place = document.querySelector(selector);
  if (html) htmx.swap(place, html, { swapStyle: "innerHTML" });
  else place.textContent = "The service does not answer.";
}

// A message about an earlier failure goes away with the next success.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (!event.detail.isError) document.querySelector("#message").replaceChildren();
});
document.addEventListener("htmx:sendError", () => {
  document.querySelector("#message").textContent = "The service does not answer.";
});
