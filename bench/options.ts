/** The bench's command line. */
import { parseArgs } from 'node:util';
import { InvalidInputError } from '../core/errors.ts';
import { readInstalled } from '../infra/engines/environment.ts';
import { petrelHome } from '../infra/home.ts';
import { engineInfo } from '../native/index.ts';
import { lowerBothSides } from './lowering.ts';
import { peerNames } from './measurement.ts';
import type { BenchSettings, Measurement, PeerName } from './measurement.ts';

const usage = `usage: npm run bench -- [--json] [--only a,b.*] [--peer NAME] [--precision fp32|bf16] [--threads N] [--class C]
                            [--quick] [--write FILE]
  --only    rows by name, by a pattern with *, or by the beginning of a name (train, decode.S)
  --peer    run it on the same work in turn with petrel: torch; trl for the row lesson; fsdp and vllm for the rows of
            those names. PETREL_PYTHON is its Python; absent, fsdp and vllm run in that of the installed engine
  --class   avx2, avx512 or avx512_bf16: lower both sides to this class of processor
  --quick   tiny shapes: shows that it works, measures nothing
  --write   put the table between the markers of a document, such as docs/look-up/benchmarks.md`;

export interface Peer {
  readonly name: PeerName;
  /** The peer's interpreter. */
  readonly python: string;
}

export interface BenchOptions {
  readonly json: boolean;
  readonly only: readonly string[];
  /** Absent: petrel alone. */
  readonly peer: Peer | undefined;
  readonly write: string | undefined;
  readonly settings: BenchSettings;
}

/**
 * Reads the options; `--class` sets variables in `env`, before the engine is loaded. Throws InvalidInputError for
 * invalid options.
 */
export function readOptions(words: readonly string[], env: NodeJS.ProcessEnv): BenchOptions {
  const values = parse(words);
  const peer = peerOf(values.peer, env);
  if (values.class !== undefined) lowerBothSides(values.class, env);
  const { bf16, threads } = engineInfo();
  const precision = values.precision ?? (bf16 ? 'bf16' : 'fp32');
  if (precision !== 'bf16' && precision !== 'fp32') throw bad(`--precision ${precision}: expected fp32 or bf16`);
  if (precision === 'bf16' && !bf16) throw bad('--precision bf16: this processor has no AVX512_BF16');
  const team = Number(values.threads ?? threads);
  if (!Number.isInteger(team) || team < 1) throw bad(`--threads ${values.threads}: expected a whole number from 1`);
  return {
    json: values.json,
    only: (values.only ?? []).flatMap((list) => list.split(',')).filter((name) => name !== ''),
    peer,
    write: values.write,
    settings: { precision, threads: team, quick: values.quick },
  };
}

function peerOf(wanted: string | undefined, env: NodeJS.ProcessEnv): Peer | undefined {
  if (wanted === undefined) return undefined;
  const name = peerNames.find((one) => one === wanted);
  if (name === undefined) throw bad(`--peer ${wanted}: expected ${peerNames.join(' or ')}`);
  const python = env['PETREL_PYTHON'] || pythonOfEngine(name);
  if (!python) throw bad(`--peer ${name} needs PETREL_PYTHON: a Python that has ${needsOf[name]}`);
  return { name, python };
}

const needsOf = {
  torch: 'torch and transformers',
  trl: 'torch, transformers, trl and datasets',
  vllm: 'vllm (petrel engine install vllm)',
  fsdp: 'torch and transformers (petrel engine install torch)',
} as const;

/** The Python of the engine that the peer is part of, where it is installed. */
function pythonOfEngine(name: PeerName): string | undefined {
  const engine = { torch: undefined, trl: undefined, vllm: 'vllm', fsdp: 'torch' }[name];
  return engine && readInstalled(petrelHome(), engine, 'cpu')?.python;
}

function parse(words: readonly string[]) {
  const flag = { type: 'boolean', default: false } as const;
  const text = { type: 'string' } as const;
  const options = {
    json: flag,
    quick: flag,
    only: { ...text, multiple: true },
    peer: text,
    precision: text,
    threads: text,
    class: text,
    write: text,
  } as const;
  try {
    return parseArgs({ args: [...words], options }).values;
  } catch (error) {
    throw bad((error as Error).message);
  }
}

function bad(message: string): InvalidInputError {
  return new InvalidInputError(message, { hint: usage });
}

/** The measurements, reduced to the requested rows. Throws InvalidInputError for a pattern that matches none. */
export function chooseRows(measurements: readonly Measurement[], only: readonly string[]): Measurement[] {
  if (only.length === 0) return [...measurements];
  const matches = (pattern: string, name: string) => patternOf(pattern).test(name) || name.startsWith(`${pattern}.`);
  const names = measurements.flatMap(({ rows }) => rows.map(({ name }) => name));
  const lost = only.find((pattern) => !names.some((name) => matches(pattern, name)));
  if (lost !== undefined) throw bad(`--only ${lost}: no such row; there are ${names.join(', ')}`);
  return measurements
    .map((measurement) => ({
      ...measurement,
      rows: measurement.rows.filter(({ name }) => only.some((pattern) => matches(pattern, name))),
    }))
    .filter(({ rows }) => rows.length > 0);
}

function patternOf(pattern: string): RegExp {
  return new RegExp(
    `^${pattern
      .split('*')
      .map((part) => part.replace(/[.+?^$()|[\]\\{}]/g, '\\$&'))
      .join('.*')}$`,
  );
}
