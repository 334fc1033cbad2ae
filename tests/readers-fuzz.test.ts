/**
 * The readers of model folders under many damaged inputs: safetensors headers and config.json. Each input is accepted
 * or refused with one of petrel's errors; a config that is accepted is one that the engine takes or refuses too. Damage
 * is made inside the JSON as well as in the bytes, so that it passes the first checks. PETREL_FUZZ_RUNS sets the number
 * of inputs of each reader (5,000), PETREL_FUZZ_SEED the seed (1); `npm run test:sanitize` runs 1,000,000.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { PetrelError } from '../core/errors.ts';
import { packageRoot } from '../infra/home.ts';
import type { DecoderSpec } from '../native/model/spec.ts';
import { readDecoderSpec } from '../native/model/config.ts';
import { decodeSafetensors, encodeSafetensors } from '../models/safetensors.ts';
import { createTrainer } from '../native/index.ts';

const runs = Number(process.env['PETREL_FUZZ_RUNS'] ?? 5000);
const seed = Number(process.env['PETREL_FUZZ_SEED'] ?? 1);
const hours = 3_600_000;

/** Mulberry32. */
function randomOf(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

type Random = () => number;
const below = (random: Random, n: number) => Math.floor(random() * n);
const pick = <T>(random: Random, values: readonly T[]): T => values[below(random, values.length)] as T;

/** Values that break a reader which forgets a check. */
const hostile: readonly unknown[] = [
  ...[0, -0, -1, 1.5, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 53, 1e308, '4', '', null, true, [], {}, [[]], '__proto__'],
  ...['F32', 'BF16', 'I64', 'F8_E4M3', 'llama', 'LlamaForCausalLM', 'yarn', 'silu', { type: 'linear', factor: -2 }],
  ...[[0, 8], [8, 0], [0, 2 ** 53], ['a'], Number.MIN_VALUE, '\ud800', 'x'.repeat(300)],
];

/** The JSON value with one member, at any depth, replaced, removed, added or moved. */
function damaged(value: unknown, random: Random): unknown {
  if (typeof value !== 'object' || value === null || random() < 0.1) return pick(random, hostile);
  const copy: unknown[] | Record<string, unknown> = Array.isArray(value) ? [...value] : { ...value };
  const record = copy as Record<string, unknown>;
  const keys = Object.keys(record);
  const key = keys.length === 0 ? 'more' : pick(random, keys);
  const what = below(random, 6);
  if (what === 0) delete record[key];
  else if (what === 1)
    record[pick(random, ['more', '__proto__x', 'layer_types', 'rope_scaling'])] = pick(random, hostile);
  else if (what === 2) record[key] = record[pick(random, keys.length === 0 ? ['more'] : keys)];
  else record[key] = damaged(record[key], random);
  return copy;
}

function flipped(bytes: Uint8Array, random: Random): Uint8Array {
  const out = bytes.slice(0, random() < 0.2 ? below(random, bytes.length + 1) : bytes.length);
  for (let i = below(random, 4); i > 0 && out.length > 0; i--) out[below(random, out.length)] = below(random, 256);
  return out;
}

/**
 * Runs a reader on `runs` inputs; returns how many it accepted. Anything but petrel's errors ends it with the input.
 */
async function accepted(input: (random: Random) => Uint8Array, read: (bytes: Uint8Array) => void): Promise<number> {
  const random = randomOf(seed);
  let count = 0;
  for (let i = 0; i < runs; i++) {
    const bytes = input(random);
    if (i % 1000 === 999) await setImmediate(); // what was collected is freed from the event loop
    try {
      read(bytes);
      count += 1;
    } catch (error) {
      if (error instanceof PetrelError && error.message !== '') continue;
      throw new Error(`input ${i}: ${Buffer.from(bytes).toString('base64')}`, { cause: error });
    }
  }
  return count;
}

describe(`readers of models under ${runs} damaged inputs (seed ${seed})`, () => {
  it('the safetensors reader accepts or refuses', { timeout: hours }, async () => {
    const whole = encodeSafetensors(
      {
        a: { dtype: 'F32', shape: [2, 3], data: new Float32Array(6) },
        b: { dtype: 'BF16', shape: [4], data: new Uint16Array(4) },
        c: { dtype: 'BOOL', shape: [3], data: new Uint8Array(3) },
        d: { dtype: 'I64', shape: [0, 5], data: new BigInt64Array(0) },
      },
      { format: 'pt' },
    );
    const length = Number(new DataView(whole.buffer).getBigUint64(0, true));
    const header: unknown = JSON.parse(new TextDecoder().decode(whole.subarray(8, 8 + length)));
    const withHeader = (json: unknown) => {
      const text = new TextEncoder().encode(JSON.stringify(json) ?? '');
      const bytes = new Uint8Array(8 + text.length + whole.length - 8 - length);
      new DataView(bytes.buffer).setBigUint64(0, BigInt(text.length), true);
      bytes.set(text, 8);
      bytes.set(whole.subarray(8 + length), 8 + text.length);
      return bytes;
    };
    const count = await accepted(
      (random) => (random() < 0.3 ? flipped(whole, random) : withHeader(damaged(header, random))),
      (bytes) => {
        for (const { shape, data } of decodeSafetensors(bytes).tensors.values())
          expect(data.length).toBe(shape.reduce((product, n) => product * n, 1));
      },
    );
    expect(count).toBeGreaterThan(runs / 1000);
    expect(count).toBeLessThan(runs);
  });

  it('the config reader accepts or refuses, and so does the engine after it', { timeout: hours }, async () => {
    const text = readFileSync(join(packageRoot(), 'examples/01-arithmetic-grpo/base/config.json'));
    const config: unknown = JSON.parse(text.toString());
    let readable = 0;
    const count = await accepted(
      (random) => (random() < 0.2 ? flipped(text, random) : Buffer.from(JSON.stringify(damaged(config, random)) ?? '')),
      (bytes) => {
        const parsed = jsonOf(bytes);
        if (parsed === unreadable) return;
        const found = readDecoderSpec(parsed);
        const parameters = found.layers.length > 100 ? Infinity : sizeOf(found);
        // Making an engine takes longer than reading a hundred configs.
        if (parameters > 1e6 || readable++ % 10 !== 0) return;
        const trainer = createTrainer(found, { compute: 'fp32', deterministic: true, threads: 1, trainable: false });
        expect(trainer.elements).toBe(parameters);
        trainer.close();
      },
    );
    expect(count).toBeGreaterThan(runs / 1000);
    expect(count).toBeLessThan(runs);
  });
});

const sizeOf = ({ tensors }: DecoderSpec) =>
  tensors.reduce((sum, { shape }) => sum + shape.reduce((product, n) => product * n, 1), 0);

const unreadable = Symbol('unreadable');
function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return unreadable;
  }
}
