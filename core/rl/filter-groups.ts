/**
 * Selects the prompt groups for training.
 *
 * - A group needs two valid samples; failed ones (the scorer threw or timed out) are removed first.
 * - DAPO's dynamic sampling (Yu et al. 2025, arXiv 2503.14476; verl: `algorithm.filter_groups`): a group whose samples
 * all have the same value of the metric gives no learning signal. The spread is numpy's population std, to its last
 * bit, because the reference compares it with exactly 0: three times 0.1 has a std of 1.4e-17 and stays.
 */
import { at } from '../at.ts';
import { rowsByGroup } from './advantages/groups.ts';
import type { Numbers } from './ragged.ts';

export interface ValidGroups {
  /** Selected samples, ascending. */
  readonly kept: readonly number[];
  /** Groups left out, in order of first appearance. */
  readonly filtered: readonly unknown[];
}

/** Keeps the valid samples of groups with at least `smallest` of them. */
export function validGroups(valid_S: ArrayLike<boolean>, groups_S: ArrayLike<unknown>, smallest = 2): ValidGroups {
  const kept: number[] = [];
  const filtered: unknown[] = [];
  for (const [group, members] of rowsByGroup(groups_S)) {
    const valid = members.filter((s) => valid_S[s] === true);
    if (valid.length >= smallest) kept.push(...valid);
    else filtered.push(group);
  }
  return { kept: kept.sort((a, b) => a - b), filtered };
}

export interface InformativeGroups {
  /** Rows of the kept groups, ascending. */
  readonly keptRows: readonly number[];
  readonly keptGroups: readonly unknown[];
  /** Groups without spread, and their common value. */
  readonly dropped: ReadonlyMap<unknown, number>;
}

/** Keeps groups with spread in the metric, and groups of one. */
export function informativeGroups(metric_S: Numbers, groups_S: ArrayLike<unknown>): InformativeGroups {
  const keptRows: number[] = [];
  const keptGroups: unknown[] = [];
  const dropped = new Map<unknown, number>();
  for (const [group, members] of rowsByGroup(groups_S)) {
    const values = members.map((s) => at(metric_S, s));
    if (values.length > 1 && populationStd(values) === 0) dropped.set(group, at(values, 0));
    else {
      keptRows.push(...members);
      keptGroups.push(group);
    }
  }
  return { keptRows: keptRows.sort((a, b) => a - b), keptGroups, dropped };
}

function populationStd(values: readonly number[]): number {
  const mean = pairwiseSum(values) / values.length;
  return Math.sqrt(pairwiseSum(values.map((value) => (value - mean) ** 2)) / values.length);
}

/** numpy's order of summation: plain below 8, eight running sums up to 128, halves beyond. */
function pairwiseSum(values: readonly number[]): number {
  const n = values.length;
  if (n < 8) return values.reduce((sum, value) => sum + value, 0);
  if (n > 128) {
    const half = (n >> 1) - ((n >> 1) % 8);
    return pairwiseSum(values.slice(0, half)) + pairwiseSum(values.slice(half));
  }
  const r = values.slice(0, 8);
  const whole = n - (n % 8);
  for (let i = 8; i < whole; i++) r[i % 8] = at(r, i % 8) + at(values, i);
  const sum = at(r, 0) + at(r, 1) + (at(r, 2) + at(r, 3)) + (at(r, 4) + at(r, 5) + (at(r, 6) + at(r, 7)));
  return values.slice(whole).reduce((total, value) => total + value, sum);
}
