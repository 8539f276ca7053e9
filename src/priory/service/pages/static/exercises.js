// Checks answers to the exercises of the course as priory.bayes.course does.

import { element } from "./figure-drawing.js";

const TOLERANCE = 0.005; // three digits are enough; whole numbers must be exact

export function readNumber(text) {
  const bare = text.replaceAll(" ", "");
  const percent = bare.endsWith("%");
  const [, top, bottom] = /^([^/]+)(?:\/([^/]+))?$/.exec(percent ? bare.slice(0, -1) : bare) ?? [];
  const digits = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  if (!top || !digits.test(top) || (bottom !== undefined && (!digits.test(bottom) || +bottom === 0))) return undefined;
  const value = bottom === undefined ? +top : +top / +bottom;
  return percent ? value / 100 : value;
}

export function readAnswer(text) {
  const numbers = text.replace(/^[()[\] ]+|[()[\] ]+$/g, "").split(",").map(readNumber);
  if (numbers.some((number) => number === undefined)) return text.toLowerCase().trim().replace(/\s+/g, " ");
  return numbers.length > 1 ? numbers : numbers[0];
}

function isClose(given, wanted) {
  return Math.abs(given - wanted) <= (Number.isInteger(wanted) ? 1e-9 : TOLERANCE * Math.abs(wanted));
}

function agrees(given, wanted) {
  if (typeof given === "string" || typeof wanted === "string") return given === wanted;
  const [first, second] = [given, wanted].map((one) => (Array.isArray(one) ? one : [one]));
  return first.length === second.length && first.every((number, i) => isClose(number, second[i]));
}

function listCommonMistakes(answer) {
  if (typeof answer !== "number" || !(answer > 0 && answer < 1)) return [];
  return [
    [100 * answer, "The digits are right: give a share from 0 to 1, or write the percent sign."],
    [1 - answer, "This is the probability of the opposite: 1 minus the answer."],
    [Math.log(answer), "This is the logarithm of the answer."],
    [answer / (1 - answer), "These are the odds: p / (1 - p) instead of p."],
  ];
}

function compareForms(given, wanted) {
  const kind = (one) => (Array.isArray(one) ? `list of ${one.length}` : typeof one);
  if (kind(given) === kind(wanted)) return "";
  if (Array.isArray(wanted)) return `The answer is ${wanted.length} numbers, separated by commas.`;
  return typeof wanted === "string" ? "The answer is a word." : "The answer is one number.";
}

export function check(exercise, text) {
  const given = readAnswer(text);
  if (agrees(given, exercise.answer)) return { isRight: true, message: "Right." };
  const known = [...exercise.mistakes, ...listCommonMistakes(exercise.answer)].find(([answer]) => agrees(given, answer));
  return { isRight: false, message: `Not yet. ${known ? known[1] : compareForms(given, exercise.answer) || exercise.hint}` };
}

export function mountExercise(place, exercise) {
  const id = `answer-${place.dataset.exercise}`;
  const words = element("output", { for: id, role: "status" });
  const box = element("input", { id, type: "text", autocomplete: "off", spellcheck: "false", "aria-label": `Answer to ${place.dataset.exercise}` });
  const form = element("form", {
    class: "exercise-form",
    submit: (event) => {
      event.preventDefault();
      if (!box.value.trim()) { words.textContent = "Type an answer first."; return; }
      const verdict = check(exercise, box.value);
      words.textContent = verdict.message;
      place.classList.toggle("is-right", verdict.isRight);
    },
  }, box, element("button", { type: "submit" }, "Check"), words);
  place.append(form);
}
