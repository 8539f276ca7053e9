// Typesets the formulas of a page; without script their text stays as it is.
const formulas = [...document.querySelectorAll(".formula")];
for (const formula of formulas) {
  katex.render(formula.textContent, formula, { displayMode: formula.tagName === "DIV", throwOnError: false });
}

// A formula that is wider than the page scrolls, for the keyboard too.
document.fonts.ready.then(() => {
  for (const formula of formulas) {
    if (formula.tagName === "DIV" && formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
  }
});
