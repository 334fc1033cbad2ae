/**
 * The built-in scorers when each row's data source decides. Scorers that are functions share the processes of one host;
 * each scorer in Python has a host of its own, which is started when the first of its rows comes.
 */
import { at } from '../../core/at.ts';
import { isPythonScorer, scorerNameFor } from '../registry.ts';
import type { ScorerInput } from '../types.ts';
import type { ScoreOptions, ScoreOutcome, ScorerHost } from './host-types.ts';

/** The host of all functions. */
const functions = null;
type HostName = string | typeof functions;

export class RoutedHost implements ScorerHost {
  readonly #start: (name: HostName) => ScorerHost;
  readonly #hosts = new Map<HostName, ScorerHost>();

  /** `start`: a host for one scorer in Python, or for all functions. */
  constructor(start: (name: HostName) => ScorerHost) {
    this.#start = start;
  }

  ready(): Promise<void> {
    return this.#host(functions).ready();
  }

  async score(inputs: readonly ScorerInput[], options: ScoreOptions = {}): Promise<ScoreOutcome[]> {
    const outcomes = new Map<number, ScoreOutcome>();
    const scored = [...indicesByHost(inputs)].map(async ([name, indices]) => {
      const own = await this.#host(name).score(
        indices.map((index) => at(inputs, index)),
        withIndices(options, indices),
      );
      for (const [i, index] of indices.entries()) outcomes.set(index, at(own, i));
    });
    await Promise.all(scored);
    return inputs.map((_, index) => {
      const outcome = outcomes.get(index);
      if (outcome === undefined) throw new RangeError(`no outcome for input ${index}`);
      return outcome;
    });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#hosts.values()].map((host) => host.close()));
  }

  #host(name: HostName): ScorerHost {
    const host = this.#hosts.get(name) ?? this.#start(name);
    this.#hosts.set(name, host);
    return host;
  }
}

function indicesByHost(inputs: readonly ScorerInput[]): Map<HostName, number[]> {
  const byHost = new Map<HostName, number[]>();
  for (const [index, { dataSource }] of inputs.entries()) {
    const name = hostName(dataSource);
    const indices = byHost.get(name) ?? [];
    byHost.set(name, indices);
    indices.push(index);
  }
  return byHost;
}

/** A source without a scorer goes to the functions, where its samples fail with the reason. */
function hostName(dataSource: string): HostName {
  try {
    const name = scorerNameFor(dataSource);
    return isPythonScorer(name) ? name : functions;
  } catch {
    return functions;
  }
}

/** Printed lines come with the index in the whole call. */
function withIndices({ signal, onPrint }: ScoreOptions, indices: readonly number[]): ScoreOptions {
  if (onPrint === undefined) return { signal };
  return { signal, onPrint: (line, index) => onPrint(line, index === undefined ? undefined : indices[index]) };
}
