// Typesets the formulas of a page; without script their text stays as it is.
for (const formula of document.querySelectorAll(".formula")) {
  katex.render(formula.textContent, formula, { displayMode: formula.tagName === "DIV", throwOnError: false });
}
