// Walks a scoring plan: cells become codes, numbers and tokens, whose terms add up to the log odds of classes.
// No network, no storage, no eval; one row at a time.

const LOWEST = -1e4, MAX_COUNT = 2 ** 53, MAX_Z = 1e130, MAX_WORDS = 100;
const SPACE = 4, MARK = 5, JOINER = 6, LETTER = 7, WORD = 1, SINGLE = 2, SPACELESS = 3, MAX_WORD = 1024, MAX_CLUSTER = 32;
const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
  "November", "December"];

// Arrays are little-endian doubles or integers in base64, with their shape.
function readArray(value) {
  const text = atob(value.f8), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return { shape: value.shape, data: new Float64Array(bytes.buffer) };
}

function readPlan(value) {
  if (Array.isArray(value)) return value.map(readPlan);
  if (value === null || typeof value !== "object") return value;
  if (value.f8 !== undefined) return readArray(value);
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, readPlan(part)]));
}

// How many of increasing numbers a number reaches.
function countReached(cuts, x) {
  let low = 0, high = cuts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cuts[middle] <= x) low = middle + 1; else high = middle;
  }
  return low;
}

function softmax(logits, fallback) {
  let top = Math.max(...logits);
  if (top === -Infinity) { logits = fallback; top = Math.max(...logits); }
  const parts = logits.map((x) => Math.exp(x - top)), total = parts.reduce((a, b) => a + b, 0);
  return parts.map((x) => x / total);
}

function logGamma(z) {
  if (z > 1e17) return z * Math.log(z) - z;
  let below = 0;
  for (let i = 0; i < 8; i++) below += Math.log(z + i);
  const s = z + 8, r = 1 / (s * s);
  return (s - 0.5) * Math.log(s) - s + 0.5 * Math.log(2 * Math.PI)
    + (1 / 12 + r * (-1 / 360 + r * (1 / 1260 + r * (-1 / 1680 + r / 1188)))) / s - below;
}

// The days since 2000 and the hour of 2024-05-31, 2024-05-31 12:00, 31.5.2024 or a Date; null if it is none.
function readDate(cell) {
  if (cell instanceof Date) {
    return { day: Date.UTC(cell.getFullYear(), cell.getMonth(), cell.getDate()) / 864e5 - 10957, hour: cell.getHours() };
  }
  const text = String(cell).trim();
  let found = /^(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?:[T ]+(\d{1,2}):\d{2}.*)?$/.exec(text);
  if (!found) {
    const german = /^(\d{1,2})\.(\d{1,2})\.(\d{4})(?:[T ]+(\d{1,2}):\d{2}.*)?$/.exec(text);
    if (german) found = [text, german[3], german[2], german[1], german[4]];
  }
  if (!found) throw new Error(`${text} is not a date; write it as 2024-05-31`);
  const moment = Date.UTC(+found[1], +found[2] - 1, +found[3]);
  return { day: moment / 864e5 - 10957, hour: found[4] === undefined ? null : +found[4] };
}

function readDatePart(cell, part) {
  const { day, hour } = readDate(cell);
  if (part === "days since 2000") return day;
  if (part === "weekday") return WEEKDAYS[(((day + 5) % 7) + 7) % 7];
  if (part === "month") return MONTHS[new Date((day + 10957) * 864e5).getUTCMonth()];
  const pad = (n) => String(n).padStart(2, "0");
  return hour === null ? null : `${pad(hour)}:00 to ${pad(hour + 1)}:00`;
}

// -- texts ------------------------------------------------------------------------------------------------------------

// Tokens as the model has learned them: runs of letters of one script, and characters of scripts without spaces.
class Tokenizer {
  constructor(step) {
    this.step = step;
    this.starts = Array.from(step.kinds.map((run) => run[0]));
    this.lower = new Map(step.lowered);
    this.stops = new Set(step.stop_words);
    this.place = new Map(step.words.map((word, k) => [word, k]));
    const number = (buckets, start) => new Map(Array.from(buckets?.data ?? [], (bucket, k) => [bucket, start + k]));
    this.pairs = number(step.pairs, step.words.length);
    this.characters = number(step.characters, step.words.length + this.pairs.size);
    this.neighbours = step.neighbours ? new Tokenizer({ ...step.neighbours, words: [] }) : null;
    this.known = new Map();  // the numbers of the n-grams of characters of a word
  }

  kind(code) { return this.step.kinds[countReached(this.starts, code) - 1][1]; }

  prepare(text) {
    let composed = text.normalize("NFC");
    if (this.step.lowercase && /[\u03a3\u0130]/.test(composed)) composed = composed.toLowerCase();
    return Array.from(composed, (c) => {
      const lowered = this.lower.get(c.codePointAt(0));
      return lowered === undefined ? c : String.fromCodePoint(lowered);
    });
  }

  extend(run, kind) {
    const isWord = run === WORD || run >= LETTER;
    if (kind === MARK) return isWord || run === SPACELESS ? run : null;
    if (kind === JOINER) return isWord ? WORD : null;
    if (kind === WORD) return isWord ? run : null;
    if (kind >= LETTER) return run === WORD || run === kind ? kind : null;
    return kind === run && kind !== SINGLE ? kind : null;
  }

  words(letters) {
    const found = [], kinds = letters.map((c) => this.kind(c.codePointAt(0)));
    let run = 0, start = 0;
    const close = (end) => {
      if (run === SPACELESS) {
        const edges = [];
        let first = start - MAX_CLUSTER;
        for (let at = start; at < end; at++) {
          if (kinds[at] !== MARK || at - first >= MAX_CLUSTER) { first = at; edges.push(at); }
        }
        edges.push(end);
        for (let i = 0; i + 1 < edges.length; i++) {
          if (i) found.push(letters.slice(edges[i - 1], edges[i + 1]).join(""));
          found.push(letters.slice(edges[i], edges[i + 1]).join(""));
        }
      } else if (run === SINGLE || (run !== 0 && end - start >= this.step.min_token_length)) {
        found.push(letters.slice(start, Math.min(end, start + MAX_WORD)).join(""));
      }
    };
    for (let at = 0; at < letters.length; at++) {
      const extended = this.extend(run, kinds[at]);
      if (extended === null) {
        close(at);
        run = { [MARK]: WORD, [JOINER]: WORD, [SPACE]: 0 }[kinds[at]] ?? kinds[at];
        start = at;
      } else run = extended;
    }
    close(letters.length);
    return found;
  }

  split(letters, [low, high]) {
    const isSpace = letters.map((c) => this.kind(c.codePointAt(0)) === SPACE), found = [];
    if (this.step.analyzer === "char") {
      const joined = letters.flatMap((c, i) => {
        const long = isSpace[i] && (isSpace[i - 1] || isSpace[i + 1]);
        return long ? (isSpace[i - 1] ? [] : [" "]) : [c];
      });
      for (let n = low; n <= high; n++) {
        for (let i = 0; i + n <= joined.length; i++) found.push(joined.slice(i, i + n).join(""));
      }
      return found;
    }
    let start = 0;
    for (let at = 0; at <= letters.length; at++) {
      if (at < letters.length && !isSpace[at]) continue;
      if (at > start) {
        const word = [" ", ...letters.slice(start, at), " "];
        for (let n = low; n <= high; n++) {
          for (let i = 0; i <= Math.max(word.length - n, 0); i++) found.push(word.slice(i, i + n).join(""));
          if (n >= word.length) break;
        }
      }
      start = at + 1;
    }
    return found;
  }

  read(text, without = null) {
    const letters = this.prepare(text);
    if (this.step.analyzer !== "word") return { tokens: this.split(letters, this.step.ngram_range), words: [] };
    const words = this.words(letters).filter((word) => !this.stops.has(word) && word !== without);
    const [low, high] = this.step.ngram_range, tokens = [];
    for (let n = low; n <= high; n++) {
      for (let i = 0; i + n <= words.length; i++) tokens.push(words.slice(i, i + n).join(" "));
    }
    return { tokens, words };
  }

  // The features of the distinct tokens of a text: words, pairs of neighbours and n-grams of characters.
  features(text, seen, isFeature, without) {
    const { step } = this, [pairs, characters] = step.n_buckets, found = new Set();
    for (const token of seen) {
      const row = this.place.get(token);
      if (row !== undefined && isFeature[row]) found.add(row);
    }
    if (this.pairs.size) {
      for (const bucket of hashPairs(this.neighbours.read(text, without).words, pairs)) found.add(this.pairs.get(bucket));
    }
    if (this.characters.size) {
      for (const token of seen) {
        if (!this.known.has(token)) {
          const buckets = this.split(Array.from(token), step.lengths).map((part) => Number(hashWord(part) % BigInt(characters)));
          this.known.set(token, buckets.map((bucket) => this.characters.get(bucket)));
        }
        for (const row of this.known.get(token)) found.add(row);
      }
    }
    found.delete(undefined);
    return found;
  }
}

// The hash of neighbouring words, as the model has counted them: 128-bit products folded to 64 bits.
const MASK = (1n << 64n) - 1n;
const SEEDS = (() => {
  const seeds = [];
  let salt = 0n;
  for (let i = 0; i < 3; i++) {
    salt = (salt + 0x9e3779b97f4a7c15n) & MASK;
    let z = ((salt ^ (salt >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
    seeds.push((z ^ (z >> 31n)) | 1n);
  }
  return seeds;
})();
const fold = (a, b) => { const product = a * b; return (product & MASK) ^ (product >> 64n); };

function hashWord(word) {
  const bytes = new TextEncoder().encode(word);
  const eight = (start) => {
    let value = 0n;
    for (let i = 7; i >= 0; i--) value = (value << 8n) | BigInt(start + i < bytes.length ? bytes[start + i] : 0);
    return value;
  };
  let h = fold(eight(0) ^ SEEDS[0], eight(8) ^ SEEDS[1]);
  for (let at = 16; at < bytes.length; at += 16) h = fold(eight(at) ^ SEEDS[0] ^ h, eight(at + 8) ^ SEEDS[1]);
  return fold(h ^ BigInt(bytes.length), SEEDS[2]);
}

function hashPairs(words, buckets) {
  const hashes = words.map(hashWord), found = new Set();
  for (let i = 0; i + 1 < hashes.length; i++) {
    found.add(Number(fold(hashes[i] ^ SEEDS[1], hashes[i + 1] ^ SEEDS[2]) % BigInt(buckets)));
  }
  return found;
}

// -- the walk ---------------------------------------------------------------------------------------------------------

export class Scorer {
  constructor(json) {
    this.plan = readPlan(typeof json === "string" ? JSON.parse(json) : json);
    this.classes = this.plan.classes;
    this.columns = this.plan.columns;
    this.tokenizers = this.plan.tokens.map((step) => new Tokenizer(step));
    this.places = this.plan.codes.map((step) => (step.values ? new Map(step.values.map((v, k) => [v, k])) : null));
    this.knowsEmpty = this.columns.map((_, j) => this.plan.codes.some((step) => step.column === j && step.values?.includes("")));
  }

  // The cells of a row, an object by column, as the model reads them: null for what is missing.
  readRow(row) {
    return this.columns.map(({ name, kind, source, part }, k) => {
      let cell = Object.hasOwn(row, name) ? row[name] : Object.hasOwn(row, source) ? row[source] : null;
      if (cell === undefined || cell === null || (typeof cell === "number" && Number.isNaN(cell))) return null;
      if (cell === "" && !this.knowsEmpty[k]) return null;
      if (part && !Object.hasOwn(row, name)) return readDatePart(cell, part);
      if (kind !== "number") return typeof cell === "string" ? cell : String(cell);
      const number = typeof cell === "boolean" ? +cell : typeof cell === "number" ? cell : Number(String(cell).trim());
      if (Number.isNaN(number)) throw new Error(`column ${name} holds ${cell}; give a number`);
      return number;
    });
  }

  // The probability of each class, in the order of `classes`.
  probabilities(row) { return this.answer(this.readRow(row)); }

  // The likeliest class, and all probabilities by class.
  predict(row) {
    const found = this.probabilities(row), best = found.indexOf(Math.max(...found));
    return { label: this.classes[best], probabilities: Object.fromEntries(this.classes.map((c, k) => [c, found[k]])) };
  }

  // The distinct words of a text, as what a row may be answered without.
  listWords(cells, source) {
    const tokenizer = this.tokenizers.find(({ step }) => this.columns[step.column].source === source);
    if (tokenizer?.step.analyzer !== "word") return null;
    const { column } = tokenizer.step, words = new Set(tokenizer.read(cells[column] ?? "").words);
    return [...words].slice(0, MAX_WORDS).map((word) => ({ column, word }));
  }

  // What each column, or word of a text, adds to the log odds of the answer, against the same row without it, in decibans.
  ledger(row) {
    const cells = this.readRow(row), found = this.answer(cells), best = found.indexOf(Math.max(...found));
    const odds = (p) => 10 * Math.log10(p[best] / Math.max(1 - p[best], 1e-300));
    const weigh = (column, value, p) => ({ column, value, decibans: odds(found) - odds(p) });
    const sources = new Set(this.columns.map(({ source }) => source).filter((s) => Object.hasOwn(row, s)));
    return [...sources].flatMap((source) => {
      const words = this.listWords(cells, source);
      if (words) return words.map((without) => weigh(source, without.word, this.answer(cells, without)));
      const others = cells.map((cell, k) => (this.columns[k].source === source ? null : cell));
      return others.every((cell, k) => cell === cells[k]) ? [] : weigh(source, row[source], this.answer(others));
    }).sort((a, b) => Math.abs(b.decibans) - Math.abs(a.decibans));
  }

  // Changes of one cell, or words to leave out of a text, that change the answer, the likeliest first.
  changes(row, most = 5) {
    const cells = this.readRow(row), start = this.answer(cells), best = start.indexOf(Math.max(...start)), found = [];
    const attempt = (column, value, p) => {
      const label = p.indexOf(Math.max(...p));
      if (label !== best) found.push({ column, value, label: this.classes[label], probability: p[label] });
    };
    for (const { source, part } of this.columns) {
      if (part) continue;
      for (const without of this.listWords(cells, source) ?? []) {
        attempt(source, `without ${without.word}`, this.answer(cells, without));
      }
      for (const value of this.listValues(source)) {
        if (value !== row[source]) attempt(source, value, this.probabilities({ ...row, [source]: value }));
      }
    }
    const first = new Map();
    for (const change of found.sort((a, b) => b.probability - a.probability)) {
      if (!first.has(change.column)) first.set(change.column, change);
    }
    return [...first.values()].slice(0, most);
  }

  // Values to try in a column: the labels it knows, or numbers over its range.
  listValues(source) {
    const at = this.columns.findIndex((column) => column.source === source && !column.part);
    const steps = this.plan.codes.filter((step) => step.column === at);
    const known = steps.find((step) => step.values);
    if (known) return known.values;
    const cuts = steps.map((step) => Array.from(step.cuts.data)).sort((a, b) => b.length - a.length)[0] ?? [];
    const found = cuts.filter((_, k) => k % Math.max(1, Math.floor(cuts.length / 12)) === 0).map((x) => +x.toPrecision(4));
    const isWhole = found.at(-1) - found[0] >= 1 && found.every((x) => Math.abs(2 * x - Math.round(2 * x)) < 0.02);
    return isWhole ? [...new Set(found.map((x) => Math.ceil(x - 0.02)))] : found;
  }

  answer(cells, without) {
    const { plan } = this, terms = plan.terms.filter((term) => term.kind === "TextSum");
    const texts = terms.map((term) => this.scoreText(term, cells, without));
    let found = this.pool(cells, texts);
    const gaps = plan.gaps;
    const isMissing = gaps && gaps.columns.map((j) => cells[plan.codes[gaps.codes[j]].column] === null);
    if (gaps && gaps.only_together) isMissing.push(...gaps.texts.map((place) => cells[place] === null));
    if (gaps && (gaps.only_together ? isMissing.every(Boolean) : isMissing.some(Boolean))) found = this.complete(cells, texts);
    if (plan.limit) found = this.limit(found);
    const shifted = found.map((p, c) => Math.log(p) + plan.shift.data[c]);
    return softmax(shifted, Array.from(plan.prior.data));
  }

  // Probabilities of the terms and the base rate.
  pool(cells, texts) {
    const { plan } = this, logits = Array.from(plan.constant.data), n = logits.length;
    const codes = plan.codes.map((step, k) => this.code(k, cells[step.column]));
    const numbers = plan.numbers.map((step) => readNumber(step, cells[step.column]));
    for (const text of texts) for (let c = 0; c < n; c++) logits[c] += text.score[c] + text.features[c];
    for (const term of plan.terms) this.addTerm(term, codes, numbers, cells, logits);
    const found = softmax(logits, Array.from(plan.fallback.data));
    return plan.share === 1 ? found : found.map((p, c) => plan.share * p + (1 - plan.share) * plan.base.data[c]);
  }

  code(k, cell) {
    const step = this.plan.codes[k], place = this.places[k];
    if (place === null) return cell === null ? step.missing : countReached(step.cuts.data, cell);
    return cell === null ? place.size : place.get(cell) ?? place.size + 1;
  }

  addTerm(term, codes, numbers, cells, logits) {
    const n = logits.length;
    const add = (table, row) => { for (let c = 0; c < n; c++) logits[c] += table[row * n + c]; };
    if (term.kind === "CodeTerm") add(term.table.data, codes[term.code]);
    else if (term.kind === "PairTerm") {
      const [a, b] = term.codes.map((code, k) => term.levels[k].data[codes[code]]);
      add(term.table.data, a * term.table.shape[1] + b);
    } else if (term.kind === "Linear") {
      term.numbers.forEach((place, k) => {
        for (let c = 0; c < n; c++) logits[c] += numbers[place] * term.slopes.data[k * n + c];
      });
    } else if (term.kind === "Quadratic") {
      const d = term.numbers.length;
      for (let c = 0; c < n; c++) {
        let total = 0;
        for (let i = 0; i < d; i++) {
          let away = 0;
          for (let j = 0; j < d; j++) {
            away += term.roots.data[(c * d + i) * d + j] * (numbers[term.numbers[j]] - term.means.data[c * d + j]);
          }
          total += away * away;
        }
        logits[c] += term.constants.data[c] - 0.5 * term.factor * total;
      }
    } else if (term.kind === "Trees") {
      const [trees, depth] = term.tests.shape;
      for (let t = 0; t < trees; t++) {
        let leaf = 0;
        for (let k = 0; k < depth; k++) {
          const at = 2 * (t * depth + k), code = term.tests.data[at], value = term.tests.data[at + 1];
          leaf = 2 * leaf + (this.places[code] === null ? +(codes[code] > value) : +(codes[code] === value));
        }
        add(term.leaves.data, t * (1 << depth) + leaf);
      }
    } else if (term.kind === "Density" && cells[term.column] !== null) {
      let value = readDensity(term, cells[term.column], n);
      if (term.is_relative) {
        const top = Math.max(...value), best = Number.isFinite(top) ? top : 0;
        value = value.map((x) => term.weight * Math.max(x - best, LOWEST));
      }
      for (let c = 0; c < n; c++) logits[c] += value[c];
    }
  }

  scoreText(term, cells, without) {
    const n = this.classes.length, tokenizer = this.tokenizers[term.tokens], { column } = this.plan.tokens[term.tokens];
    const word = without?.column === column ? without.word : null;
    const text = cells[column] ?? "", { tokens } = tokenizer.read(text, word), seen = new Set(tokens);
    const score = Array(n).fill(0), features = Array(n).fill(0);
    for (const token of term.is_binary ? seen : tokens) {
      const row = tokenizer.place.get(token);
      if (row !== undefined) for (let c = 0; c < n; c++) score[c] += term.table.data[row * n + c];
    }
    for (let c = 0; c < n; c++) score[c] = text === "" && term.skips_empty ? 0 : score[c] + term.constant.data[c];
    if (term.is_relative) {
      const top = Math.max(...score), letters = Math.max(Array.from(text).length, 50) / 1000;
      for (let c = 0; c < n; c++) score[c] = term.weight * letters ** -term.exponent * Math.max(score[c] - top, LOWEST);
    }
    const rows = [...tokenizer.features(text, seen, term.feature.data, word)];
    const shrink = 1 / Math.sqrt(Math.max(rows.length, 1));
    for (const row of rows) for (let c = 0; c < n; c++) features[c] += shrink * term.feature_table.data[row * n + c];
    return { score, features };
  }

  // A row with gaps: the mean of its completions, pooled with tempered naive Bayes.
  complete(cells, texts) {
    const { plan } = this, { gaps } = plan, n = this.classes.length;
    const places = gaps.codes.map((code) => plan.codes[code].column);
    const missing = gaps.columns.filter((j) => cells[places[j]] === null), absent = new Set(missing);
    let mean = this.pool(cells, texts);
    if (gaps.weight.data.length) {
      const size = gaps.weight.data.length, ranks = places.map((place, j) => this.code(gaps.ranks[j], cells[place]));
      this.kept ??= places.map((_, j) => gaps.cells[j].map((cell) => this.code(gaps.ranks[j], cell)));
      const keys = Array.from({ length: size }, (_, k) => {
        let key = 0;
        places.forEach((_, j) => {
          if (absent.has(j)) return;
          const away = ranks[j] - this.kept[j][k];
          key += this.places[gaps.ranks[j]] === null ? away * away : away === 0 ? 0 : gaps.other_label;
        });
        return [key, k];
      }).sort((a, b) => a[0] - b[0] || a[1] - b[1]).slice(0, gaps.n_nearest);
      const total = keys.reduce((sum, [, k]) => sum + gaps.weight.data[k], 0);
      mean = Array(n).fill(0);
      for (const [, k] of keys) {
        const filled = [...cells];
        for (const j of missing) filled[places[j]] = gaps.cells[j][k];
        this.pool(filled, texts).forEach((p, c) => { mean[c] += (p * gaps.weight.data[k]) / total; });
      }
    }
    const tempered = Array.from(gaps.constant.data);
    for (const { code, table } of gaps.tables) {
      const at = this.code(code, cells[plan.codes[code].column]);
      for (let c = 0; c < n; c++) tempered[c] += table.data[at * n + c];
    }
    for (const text of texts) for (let c = 0; c < n; c++) tempered[c] += text.score[c];
    const nGaps = missing.length + gaps.texts.filter((place) => cells[place] === null).length;
    const textPlaces = plan.tokens.map((step) => step.column);
    const nPresent = [...gaps.counted.map((j) => places[j]), ...textPlaces].filter((place) => cells[place] !== null).length;
    const m = (nGaps / (nGaps + nPresent)) ** gaps.power;
    return softmax(mean.map((p, c) => (1 - m) * Math.log(p) + m * tempered[c]), Array.from(plan.fallback.data));
  }

  // No class but the likeliest falls below its share of 1 / (n + 1).
  limit(found) {
    const { n_rows: rows, base } = this.plan.limit, top = Math.max(...found), best = found.indexOf(top);
    const kept = found.map((p, c) => (p === top ? p : Math.max(p, base.data[c] / (1 - base.data[best]) / (rows + 1))));
    const total = kept.reduce((a, b) => a + b, 0);
    return kept.map((p) => p / total);
  }
}

function readNumber(step, cell) {
  if (step.knots === undefined) {
    if (cell === null) return 0;
    const away = (cell / 2 - step.centre / 2) / (step.unit / 2);
    return step.limit === null ? away : Math.max(-step.limit, Math.min(away, step.limit));
  }
  if (cell === null) return step.missing;
  const x = step.knots.data, y = step.heights.data, k = countReached(x, cell);
  if (k === 0 || k === x.length) return y[k === 0 ? 0 : x.length - 1];
  return ((y[k] - y[k - 1]) / (x[k] - x[k - 1])) * (cell - x[k - 1]) + y[k - 1];
}

// log p(x | c) of each class, by the formula of the column.
function readDensity(term, x, n) {
  const p = Object.fromEntries(Object.entries(term.parameters).map(([name, value]) => [name, value.data]));
  const isCount = x >= 0 && Math.floor(x) === x && x <= MAX_COUNT, each = Array.from({ length: n }, (_, c) => c);
  if (term.form === "student" || term.form === "normal") {
    return each.map((c) => {
      const z = Math.max(-MAX_Z, Math.min(x / term.unit - p.centre[c], MAX_Z)), square = p.precision[c] * z * z;
      return p.constant[c] - (p.power ? p.power[c] * Math.log1p(square) : square / 2);
    });
  }
  if (term.form === "gamma" && x > 0) {
    const size = p.constant.length / n, log = Math.log(x);
    return each.map((c) => {
      const nodes = Array.from({ length: size }, (_, i) => {
        const at = c * size + i;
        return p.constant[at] + (p.shape[at] - 1) * log - p.power[at] * Math.log1p(x / p.scale[at]);
      });
      const top = Math.max(...nodes);
      return top + Math.log(nodes.reduce((sum, node) => sum + Math.exp(node - top), 0));
    });
  }
  if (term.form === "amount" && x > 0) return each.map((c) => p.constant[c] + (p.shape[c] - 1) * Math.log(x) - p.rate[c] * x);
  if (term.form === "events" && isCount) return each.map((c) => logGamma(p.shape[c] + x) + p.constant[c] - p.slope[c] * x);
  if (term.form === "count" && isCount) return each.map((c) => p.constant[c] + p.slope[c] * x);
  return Array(n).fill(-Infinity);
}
