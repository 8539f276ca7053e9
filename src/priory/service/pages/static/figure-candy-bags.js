// Candy bags: draw limes and cherries, move the prior, and watch posterior and vote.

import { Axes, button, element, format, handle, openFigure } from "./figure-drawing.js";
import { logSumExp, normalise } from "./figure-numbers.js";

export const SHARES = [0, 0.25, 0.5, 0.75, 1];
export const PRIOR = [0.1, 0.2, 0.4, 0.2, 0.1];

// 0 × log 0 is 0: a bag without limes is not ruled out before one is drawn.
const times = (count, log) => (count ? count * log : 0);

export function learn(weights, limes, cherries) {
  const total = weights.reduce((a, b) => a + b, 0);
  const prior = weights.map((w) => w / total);
  const joint = prior.map((p, i) => Math.log(p) + times(limes, Math.log(SHARES[i])) + times(cherries, Math.log1p(-SHARES[i])));
  const posterior = logSumExp(joint) === -Infinity ? prior.map(() => NaN) : normalise(joint);
  return { prior, posterior, evidence: Math.exp(logSumExp(joint)), next: posterior.reduce((sum, p, i) => sum + p * SHARES[i], 0) };
}

export function mount(place) {
  const { controls, drawing, say } = openFigure(place, "Draw candies, and drag the prior of each bag (the circles).");
  const state = { weights: [...PRIOR], drawn: [] };
  const axes = new Axes(drawing, { x: [0.4, 5.6], y: [0, 1], xLabel: "share of lime in the bags h1 to h5", yLabel: "probability", label: "prior and posterior of five bags", ticks: [0, 5] });
  const handles = PRIOR.map((p, i) => handle(axes, { label: `weight of the prior of bag h${i + 1}`, x: i + 1, y: p, along: "y", step: 0.01, limits: [0.001, 1] },
    (to) => { state.weights[i] = to.y; show(); }));
  const draw = (candy) => { if (state.drawn.length < 100) state.drawn.push(candy); show(); };
  button(controls, "Draw a lime", () => draw("lime"));
  button(controls, "Draw a cherry", () => draw("cherry"));
  button(controls, "Put the last back", () => { state.drawn.pop(); show(); });
  button(controls, "Start again", () => { Object.assign(state, { weights: [...PRIOR], drawn: [] }); handles.forEach((one, i) => one.set({ y: PRIOR[i] })); show(); });
  const drawn = element("p", { class: "figure-candies" });
  drawing.append(drawn);
  axes.watch(show);

  function show() {
    const limes = state.drawn.filter((candy) => candy === "lime").length;
    const { prior, posterior, next } = learn(state.weights, limes, state.drawn.length - limes);
    axes.clear();
    const best = Math.max(...posterior);
    SHARES.forEach((share, i) => {
      axes.bar(i + 1, 0.62, posterior[i], posterior[i] === best ? "second" : "first");
      axes.rule(i + 1, "faint");
      axes.text(i + 1, 0.97, format(posterior[i]));
      axes.under(i + 1, `${100 * share} %`);
    });
    drawn.replaceChildren(...state.drawn.map((candy) => element("span", { class: candy, title: candy }, candy[0])));
    const top = posterior.map((p, i) => (p === best ? `h${i + 1}` : "")).filter(Boolean).join(", ");
    say(best >= 0 ? `${limes} limes, ${state.drawn.length - limes} cherries. MAP: ${top}, with ${format(best)}. P(next is lime) = ${format(next, 4)}.` : "These candies are impossible under every bag.");
    return prior;
  }
}
