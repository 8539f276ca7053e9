/** Cells by column: numbers, labels, texts and dates (as 2024-05-31); null, "" or absent is missing. */
export type Row = Record<string, string | number | boolean | Date | null | undefined>;

export interface Answer {
  label: string | number | boolean;
  probabilities: Record<string, number>;
}

export interface LedgerLine {
  column: string;
  /** The cell, or a word of a text. */
  value: unknown;
  /** What the column, or the word, adds to the log odds of the answer, against the same row without it. */
  decibans: number;
}

export interface Change {
  column: string;
  /** The cell instead, or "without WORD". */
  value: string | number;
  label: string | number | boolean;
  probability: number;
}

/** Answers rows as the model does. */
export declare class Scorer {
  constructor(plan: string | object);
  readonly classes: (string | number | boolean)[];
  readonly columns: { name: string; kind: "number" | "label" | "text"; source: string; part: string }[];
  /** The probability of each class, in the order of `classes`. */
  probabilities(row: Row): number[];
  predict(row: Row): Answer;
  ledger(row: Row): LedgerLine[];
  /** Changes of one cell that change the answer. */
  changes(row: Row, most?: number): Change[];
}

/** The exported model. */
declare const model: Scorer;
export default model;
