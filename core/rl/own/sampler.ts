/**
 * Calls a sampler of the user's own and checks what it returns. It runs in the module's thread, whose messages are
 * copies.
 */
import { InvalidInputError } from '../../errors.ts';
import { checkedNumbers, checkedObject, requireFinite } from './results.ts';
import type { OwnSampler, OwnSamplerInput } from './types.ts';

const mostStateBytes = 1024 * 1024;

/** How rows are drawn until the next call. */
export interface Sampling {
  /** Weight of each row. */
  readonly weights: readonly number[];
  /** State made of JSON. */
  readonly state: unknown;
}

/** @throws InvalidInputError that says what is wrong with the result; whatever the module throws. */
export function ownSampling(sampler: OwnSampler, input: OwnSamplerInput): Sampling {
  const { weights, state } = checkedObject(sampler.compute(structuredClone(input)));
  const numbers = checkedNumbers('weights', weights, input.rows);
  requireFinite('weights', numbers);
  const negative = numbers.findIndex((weight) => weight < 0);
  if (negative >= 0) throw new InvalidInputError(`weights[${negative}] is ${numbers[negative]}: expected 0 or more`);
  if (numbers.every((weight) => weight === 0))
    throw new InvalidInputError('all weights are 0, so there is no row to sample', {
      hint: 'give one row at least a weight above 0',
    });
  return { weights: [...numbers], state: jsonOf(state) };
}

/** @throws as `ownSampling` does, and InvalidInputError when a second call gives another result. */
export function checkedSampling(sampler: OwnSampler, input: OwnSamplerInput): Sampling {
  const first = ownSampling(sampler, input);
  if (JSON.stringify(ownSampling(sampler, input)) === JSON.stringify(first)) return first;
  throw new InvalidInputError('compute gives different results for equal inputs', {
    hint: 'use neither Math.random, nor the clock, nor variables that keep their value between calls; what it must remember is its state',
  });
}

function jsonOf(state: unknown): unknown {
  if (state === undefined) return null;
  let text: string | undefined;
  try {
    text = JSON.stringify(state);
  } catch (error) {
    throw new InvalidInputError(
      `state: it cannot be stored as JSON: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  if (text === undefined) throw new InvalidInputError(`state: expected what JSON can hold, got ${typeof state}`);
  if (text.length > mostStateBytes)
    throw new InvalidInputError(`state: it has ${text.length} characters as JSON; at most ${mostStateBytes} are kept`, {
      hint: 'a number for each row is enough for most samplers: weights',
    });
  return JSON.parse(text);
}
