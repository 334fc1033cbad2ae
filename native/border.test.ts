/**
 * The addon's own checks, below those of native/*.ts: whatever crosses its border is used safely or refused with a
 * JavaScript error that says what was expected and what came.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { native, type NativeHandle } from './binding.ts';
import { packageRoot } from './package-root.ts';
import type { GqaSpec } from './model/spec.ts';
import { decoder } from './testing/decoders.ts';

type Addon = Readonly<Record<string, (...args: readonly unknown[]) => unknown>>;
const addon = native<Addon>();
const call = (name: string, ...args: readonly unknown[]): unknown => {
  const f = addon[name];
  if (f === undefined) throw new Error(`the addon has no function ${name}`);
  return f(...args);
};

const options = { compute: 'fp32', deterministic: true, threads: 1, trainable: true };
const spec = decoder();
const trainer = () => call('trainerCreate', spec, options) as NativeHandle;
const generator = (handle: unknown) => call('generatorOpen', handle, 2, 40, 6);
const ints = (...values: number[]) => Int32Array.from(values);
const elementsOf = ({ tensors }: typeof spec) =>
  tensors.reduce((sum, { shape }) => sum + shape.reduce((size, length) => size * length, 1), 0);
const plain = Float64Array.of(1, 0, 1, 0, 1);

const folder = mkdtempSync(join(tmpdir(), 'petrel-border-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A valid forward pass of four tokens, two of them scored, with some arguments replaced. */
function forward(handle: unknown, changed: Readonly<Record<number, unknown>> = {}): unknown {
  const args = [
    handle,
    ints(1, 2, 3, 4),
    ints(0, 3, 4),
    ints(0, 2),
    ints(5, 6),
    1,
    true,
    new Float32Array(2),
    ...Array.from({ length: 7 }),
  ];
  return call('trainerForward', ...args.map((value, i) => (i in changed ? changed[i] : value)));
}

/** A valid request of one sample, with some arguments replaced. */
function submit(handle: unknown, changed: Readonly<Record<number, unknown>> = {}): unknown {
  const args = [handle, ints(1, 2), ints(1), new Uint32Array(5), ints(), ints(0, 0), plain, 4, ints()];
  return call('generatorSubmit', ...args.map((value, i) => (i in changed ? changed[i] : value)));
}

/** Replaces one value somewhere inside. */
function mutated(value: unknown, path: readonly number[], by: unknown): unknown {
  const [first, ...rest] = path;
  if (first === undefined || typeof value !== 'object' || value === null) return by;
  const names = Object.keys(value);
  const name = names[first % Math.max(1, names.length)];
  if (name === undefined) return by;
  const inner = mutated((value as Record<string, unknown>)[name], rest, by);
  return Array.isArray(value) ? value.with(Number(name), inner) : { ...value, [name]: inner };
}

it('a spec with any value replaced is refused, or gives a model that computes (property)', () => {
  const path = fc.array(fc.nat({ max: 40 }), { minLength: 1, maxLength: 6 });
  const by = fc.constantFrom<unknown>(
    undefined,
    null,
    0,
    1,
    2,
    3,
    -1,
    1.5,
    7,
    20,
    2 ** 31,
    2 ** 53,
    NaN,
    '',
    'silu',
    'geluTanh',
    'values',
    [],
    {},
    [0.5],
    [1, 2],
    true,
  );
  let models = 0;
  fc.assert(
    fc.property(path, by, (at, value) => {
      let model: unknown;
      try {
        model = call('trainerCreate', mutated(spec, at, value), options);
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
        return;
      }
      models++;
      try {
        forward(model);
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
      }
      call('trainerClose', model);
    }),
    { numRuns: 2000, seed: 11 },
  );
  expect(models).toBeGreaterThan(50);
});

describe('the addon refuses', () => {
  const refused = (title: string, work: () => unknown, message: RegExp) =>
    it(title, () => expect(work).toThrow(message));

  refused('no argument at all', () => call('trainerForward'), /^trainerForward: handle must be .*, got undefined$/);
  refused('an object as a handle', () => forward({}), /handle must be a handle of a model, got an object/);
  refused(
    'a handle of another kind',
    () => call('generatorStep', trainer()),
    /^generatorStep: handle must be a handle of a generator, got a handle$/,
  );
  refused(
    'an array of another type',
    () => forward(trainer(), { 1: Float32Array.of(1, 2, 3, 4) }),
    /^trainerForward: tokens must be an Int32Array, got a Float32Array$/,
  );
  refused(
    'a token outside the vocabulary',
    () => forward(trainer(), { 1: ints(1, 2, 37, 4) }),
    /tokens must be integers from 0 to 36, got 37 at index 2/,
  );
  refused('a target outside the vocabulary', () => forward(trainer(), { 4: ints(5, -1) }), /targets .*-1 at index 1/);
  refused(
    'sequences that do not ascend',
    () => forward(trainer(), { 2: ints(0, 3, 3, 4) }),
    /cuSeqlens must be ascending/,
  );
  refused(
    'sequences past the tokens',
    () => forward(trainer(), { 2: ints(0, 3, 5) }),
    /cuSeqlens must be a list from 0/,
  );
  refused(
    'a scored position past the tokens',
    () => forward(trainer(), { 3: ints(0, 4) }),
    /positions .*got 4 at index 1/,
  );
  refused(
    'an array for results that is too short',
    () => forward(trainer(), { 7: new Float32Array(1) }),
    /^trainerForward: logProbs must be of 2 values, got 1$/,
  );
  refused(
    'a publication in bf16 of a model that computes in fp32',
    () => call('publishedRead', trainer(), 'BF16', 0, new Uint8Array(1)),
    /^publishedRead: format must be F32 for a model that computes in fp32, got BF16$/,
  );
  refused(
    'published bytes past the end',
    () => call('publishedWrite', trainer(), 'F32', 1, new Uint8Array(4 * elementsOf(spec))),
    /^publishedWrite: firstByte must be at least \d+ bytes before the end, got 1$/,
  );
  refused(
    'digests of blocks that are not there',
    () => call('publishedDigests', trainer(), 'F32', 0, 1 << 20, new Uint8Array(64)),
    /^publishedDigests: digests must be of 32 values, got 64$/,
  );
  refused('a scale that is not finite', () => forward(trainer(), { 5: NaN }), /scale must be finite, got NaN/);
  refused(
    'gradients for a model that cannot learn',
    () => forward(call('trainerCreate', spec, { ...options, trainable: false })),
    /handle must be of a trainable model/,
  );
  refused(
    'a backward pass of nothing',
    () => call('trainerBackward', trainer(), 7, new Float32Array(2), undefined),
    /kept must be the handle of a forward pass that was kept, got 7/,
  );
  refused(
    'gradients of another length than the forward pass',
    () => {
      const handle = trainer();
      return call('trainerBackward', handle, forward(handle), new Float32Array(3), undefined);
    },
    /dLogProbs must be of 2 values, got 3/,
  );
  const changed = (change: (mixer: GqaSpec) => Partial<GqaSpec>) => ({
    ...spec,
    layers: spec.layers.map((layer) => ({ ...layer, mixer: { ...layer.mixer, ...change(layer.mixer) } })),
  });
  const create = (wrong: object) => () => call('trainerCreate', wrong, options);
  refused(
    'a spec whose products overflow',
    create(changed(() => ({ heads: 2 ** 24, kvHeads: 1, headDim: 2 ** 24 }))),
    /mixer must be with heads \* headDim up to \d+, got 281474976710656/,
  );
  refused(
    'tensors whose sizes overflow',
    create({ ...spec, tensors: [{ name: 'a', shape: [2 ** 30, 2 ** 30, 2 ** 30] }] }),
    /tensors must be of at most \d+ parameters, got more/,
  );
  refused(
    'a spec without a field',
    create({ ...spec, hidden: undefined }),
    /^trainerCreate: spec\.hidden must be a number, got undefined$/,
  );
  refused(
    'a tensor of another shape than its place needs',
    create({
      ...spec,
      tensors: spec.tensors.map((one) => (one.name === 'lm_head.weight' ? { ...one, shape: [36, 20] } : one)),
    }),
    /projection\[0\]\.weight must be a tensor of shape \[37, 20\], got lm_head\.weight of \[36, 20\]/,
  );
  refused(
    'a tensor that nothing reads',
    create({ ...spec, tensors: [...spec.tensors, { name: 'zzz', shape: [1] }] }),
    /tensors must be tensors that the layers read, got zzz/,
  );
  refused(
    'tensors in another order',
    create({ ...spec, tensors: spec.tensors.toReversed() }),
    /tensors must be in ascending order of names, got .* after/,
  );
  refused(
    'a name without a tensor',
    create({ ...spec, embedding: { table: 'nowhere', scale: 1 } }),
    /name of a tensor, got nowhere/,
  );
  refused(
    'more rope than a head has',
    create(changed(() => ({ rope: [1, 1, 1, 1] }))),
    /rope must be of 1 to headDim \/ 2 = 3 values, got 4/,
  );
  refused(
    'layers with different heads',
    create({
      ...spec,
      layers: spec.layers.map((layer, i) => ({
        ...layer,
        mixer: {
          ...layer.mixer,
          ...(i === 1 && {
            heads: 2,
            kvHeads: 2,
            qkv: layer.mixer.qkv.map((part, at) => (at === 0 ? { weight: 'other', rows: 12 } : part)),
            out: [{ weight: 'out', rows: 20 }],
          }),
        },
      })),
      tensors: [...spec.tensors, { name: 'other', shape: [12, 20] }, { name: 'out', shape: [20, 12] }],
    }),
    /the same heads, kvHeads and headDim in every layer/,
  );
  refused(
    'an output that the head does not give',
    () => {
      const values = call('trainerCreate', decoder({ head: 'values' }), options) as NativeHandle;
      return forward(values);
    },
    /logProbs must be missing for this model's head/,
  );
  refused(
    'top tokens for another number of positions',
    () => forward(trainer(), { 12: ints(1, 2, 3), 14: 2 }),
    /^trainerForward: topTokens must be of 4 values, got 3$/,
  );
  refused(
    'more top tokens than there are tokens',
    () => forward(trainer(), { 13: new Float32Array(2), 14: 2 ** 20 }),
    /^trainerForward: top must be an integer from 1 to \d+, got 1048576$/,
  );
  refused(
    'a compute type that does not exist',
    () => call('trainerCreate', spec, { ...options, compute: 'fp8' }),
    /options\.compute must be fp32 or bf16, got fp8/,
  );
  refused(
    'a prompt without tokens',
    () => submit(generator(trainer()), { 1: ints() }),
    /prompt must be one token or more/,
  );
  refused(
    'random words for fewer samples',
    () => submit(generator(trainer()), { 3: new Uint32Array(4) }),
    /random .*5/,
  );
  refused('prefixes past their array', () => submit(generator(trainer()), { 5: ints(0, 3) }), /prefixOffsets .*got 3/);
  refused(
    'sampling settings that are too few',
    () => submit(generator(trainer()), { 6: new Float64Array(4) }),
    /of 5 values/,
  );
  refused(
    'a minP that no token reaches',
    () => submit(generator(trainer()), { 6: Float64Array.of(1, 0, 1, 2, 1) }),
    /minP/,
  );
  refused(
    'KV pages beyond any memory',
    () => call('generatorOpen', trainer(), 1, 40, 2 ** 31),
    /kvPages must be .*2147483648/,
  );
  refused(
    'bytes that cannot fill the values',
    () => call('convertBf16', new Uint8Array(3), new Float32Array(2)),
    /^convertBf16: src must be of 4 values, got 3$/,
  );
  refused(
    'a part that does not exist',
    () => call('trainerRead', trainer(), 'moments', 0, new Float32Array(1)),
    /^trainerRead: part must be weights, grads, m or v, got moments$/,
  );
  refused(
    'the moments of a model without any',
    () => call('trainerZero', call('trainerCreate', spec, { ...options, trainable: false }), 'm'),
    /^trainerZero: handle must be of a trainable model/,
  );
  refused(
    'elements past the end of a part',
    () => call('trainerRead', trainer(), 'weights', 3, new Float32Array(1 << 20)),
    /^trainerRead: start must be at least 4194304 bytes before the end of the part, got 3$/,
  );
  refused(
    'a place outside of a part',
    () => call('trainerWrite', trainer(), 'm', 2 ** 40, new Uint8Array(1)),
    /^trainerWrite: start must be an integer from 0 to \d+, got 1099511627776$/,
  );
  refused(
    'digests for another number of blocks',
    () => call('trainerDigests', trainer(), 'v', 0, 64, new Uint8Array(33), 'blake3'),
    /^trainerDigests: digests must be of 32 values, got 33$/,
  );
  refused(
    'moments of another length',
    () => call('adamw', ...[4, 4, 3, 4].map((n) => new Float32Array(n)), 1e-3, 0.9, 0.9, 1e-8, 0, 1, 1, undefined),
    /^adamw: m must be of 4 values, got 3$/,
  );
  refused(
    'a seen token outside the row',
    () => call('processLogits', new Float32Array(4), plain, ints(4)),
    /seen .*got 4/,
  );
  refused('a label outside the row', () => call('logProbEntropy', new Float32Array(4), 4, 1), /label .*got 4/);
  refused('a path with a zero byte', () => call('mapFile', '/etc/hosts\0x'), /path must be a path without a zero byte/);
  refused('a folder in place of a file', () => call('mapFile', folder), /cannot map .*: it is not a regular file/);
  refused(
    'a pipe, without waiting for its writer',
    () => {
      execFileSync('mkfifo', [join(folder, 'pipe')]);
      return call('mapFile', join(folder, 'pipe'));
    },
    /it is not a regular file/,
  );
});

describe('a model that is closed', () => {
  it('refuses every later call but another close', () => {
    const handle = trainer();
    const decoding = generator(handle);
    call('trainerClose', handle);
    call('trainerClose', handle);
    expect(() => call('trainerRead', handle, 'weights', 0, new Float32Array(1))).toThrow('this model is closed');
    expect(() => forward(handle)).toThrow('trainerForward: handle: this model is closed');
    expect(() => generator(handle)).toThrow('generatorOpen: trainer: this model is closed');
    // A generator holds the weights that it reads until it is closed itself.
    expect(submit(decoding)).toBe('');
    expect(call('generatorStep', decoding)).toMatchObject({ keys: ints(1) });
    call('generatorClose', decoding);
    call('generatorClose', decoding);
    expect(() => call('generatorStep', decoding)).toThrow('generatorStep: handle: this generator is closed');
  });
});

it('every function of the addon is added with expose, which catches all exceptions', () => {
  const sources = join(packageRoot(), 'native/src');
  const texts = readdirSync(sources)
    .filter((name) => name.endsWith('.cpp'))
    .map((name) => readFileSync(join(sources, name), 'utf8'));
  expect(texts.filter((text) => /Napi::Function::New|napi_create_function/.test(text))).toEqual([]);
  const exposed = texts.flatMap((text) => [...text.matchAll(/expose<\w+>\(env, exports, "(\w+)"\)/g)]);
  expect(exposed.map(([, name]) => name).toSorted()).toEqual(Object.keys(addon).toSorted());
});

describe('any arguments at all', () => {
  const seed = Number(process.env['PETREL_FUZZ_SEED'] ?? 1);
  const runs = 4000;

  it(`end in a result or in a JavaScript error (${runs} calls, seed ${seed})`, () => {
    writeFileSync(join(folder, 'file'), 'bytes');
    const closed = trainer();
    call('trainerClose', closed);
    const open = trainer();
    const decoding = generator(open);
    const short = fc.integer({ min: -2, max: 40 });
    const value = fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom<unknown>(open, decoding, closed) },
      fc.constantFrom<unknown>(undefined, null, true, {}, [], spec, { ...spec, layers: 3 }, options, '', 'bf16', 2n),
      fc.constantFrom<unknown>(-1, 0, 1, 2, 1.5, NaN, Infinity, -Infinity, 2 ** 31, 2 ** 53, 1e300, Symbol('s')),
      fc.constantFrom<unknown>(plain, join(folder, 'file'), folder, new Int32Array(new SharedArrayBuffer(8)), () => 1),
      fc.array(short, { maxLength: 6 }).map((values) => Int32Array.from(values)),
      fc.array(short, { maxLength: 6 }).map((values) => Uint32Array.from(values)),
      fc.array(short, { maxLength: 6 }).map((values) => Float32Array.from(values)),
      fc.array(short, { maxLength: 6 }).map((values) => Float64Array.from(values)),
      fc.array(short, { maxLength: 6 }).map((values) => Uint8Array.from(values)),
    );
    const names = Object.keys(addon).filter((name) => name !== 'trainerClose' && name !== 'generatorClose');
    let refusals = 0;
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.array(value, { maxLength: 12 }), (name, args) => {
        try {
          call(name, ...args);
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
          expect((error as Error).message).not.toBe('');
          refusals += 1;
        }
      }),
      { seed, numRuns: runs },
    );
    expect(refusals).toBeGreaterThan(runs / 2);
    // What was not refused has not damaged the model: a valid pass gives finite numbers.
    const logProbs = new Float32Array(2);
    forward(open, { 7: logProbs });
    expect(logProbs.every(Number.isFinite)).toBe(true);
    call('generatorClose', decoding);
    call('trainerClose', open);
  });
});
