// Starts the slides; motion only for those who have not asked for less.
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
Reveal.initialize({ hash: true, width: 1100, height: 720, margin: 0.04, center: false, transition: still ? "none" : "slide" });
