// Special functions to fifteen digits, where the figures need them.

const LANCZOS = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];

export function logGamma(x) {
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
  const t = x + 6.5;
  const sum = LANCZOS.slice(1).reduce((total, c, i) => total + c / (x + i), LANCZOS[0]);
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

export const logBeta = (a, b) => logGamma(a) + logGamma(b) - logGamma(a + b);

export function logSumExp(values) {
  const top = Math.max(...values);
  return top === -Infinity ? top : top + Math.log(values.reduce((sum, v) => sum + Math.exp(v - top), 0));
}

export function normalise(logs) {
  const total = logSumExp(logs);
  return logs.map((v) => Math.exp(v - total));
}

// The regularised incomplete beta function, by Lentz's continued fraction.
export function betaShare(x, a, b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - betaShare(1 - x, b, a);
  const tiny = 1e-300;
  let c = 1;
  let d = 1 / nonzero(1 - ((a + b) * x) / (a + 1));
  let product = d;
  for (let m = 1; m < 400; m += 1) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / nonzero(1 + even * d);
    c = nonzero(1 + even / c);
    product *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / nonzero(1 + odd * d);
    c = nonzero(1 + odd / c);
    product *= d * c;
    if (Math.abs(d * c - 1) < 1e-16) break;
  }
  return (Math.exp(a * Math.log(x) + b * Math.log1p(-x) - logBeta(a, b)) * product) / a;

  function nonzero(value) { return Math.abs(value) < tiny ? tiny : value; }
}

function invert(f, share, low, high) {
  for (let i = 0; i < 200 && high - low > 1e-16 * Math.max(1, Math.abs(low)); i += 1) {
    const middle = (low + high) / 2;
    if (f(middle) < share) low = middle; else high = middle;
  }
  return (low + high) / 2;
}

export const betaQuantile = (share, a, b) => invert((x) => betaShare(x, a, b), share, 0, 1);

// The t that a Student t variable with this many degrees of freedom exceeds in absolute value with probability 1 - level.
export function studentQuantile(level, freedom) {
  const x = betaQuantile(1 - level, freedom / 2, 0.5);
  return Math.sqrt((freedom * (1 - x)) / x);
}

// P(Z > z): a series near the middle, a continued fraction in the tail.
export function normalTail(z) {
  if (z < 0) return 1 - normalTail(-z);
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);
  if (z < 2.5) {
    let term = z;
    let sum = z;
    for (let k = 1; k < 200 && term > 1e-18; k += 1) { term *= (z * z) / (2 * k + 1); sum += term; }
    return 0.5 - density * sum;
  }
  let fraction = 0;
  for (let k = 120; k > 0; k -= 1) fraction = k / (z + fraction);
  return density / (z + fraction);
}

export const logit = (p) => Math.log(p) - Math.log1p(-p);
export const sigmoid = (a) => (a >= 0 ? 1 / (1 + Math.exp(-a)) : Math.exp(a) / (1 + Math.exp(a)));
