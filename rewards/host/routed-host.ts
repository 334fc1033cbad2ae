/**
 * The built-in scorers when each row's data source decides. Scorers that are functions share the processes of one host;
 * each scorer in Python has a host of its own. A scorer is prepared, and such a host is started, when the first of its
 * rows comes.
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
  readonly #prepare: (name: string) => void;
  readonly #prepared = new Set<string>();
  readonly #hosts = new Map<HostName, ScorerHost>();

  /**
   * `start`: a host for one scorer in Python, or for all functions. `prepare`: throws UnfitError when a scorer cannot
   * work on this machine.
   */
  constructor(start: (name: HostName) => ScorerHost, prepare: (name: string) => void) {
    this.#start = start;
    this.#prepare = prepare;
  }

  ready(): Promise<void> {
    return this.#host(functions).ready();
  }

  async score(inputs: readonly ScorerInput[], options: ScoreOptions = {}): Promise<ScoreOutcome[]> {
    const outcomes = new Map<number, ScoreOutcome>();
    const scored = [...this.#indicesByHost(inputs)].map(async ([name, indices]) => {
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

  #indicesByHost(inputs: readonly ScorerInput[]): Map<HostName, number[]> {
    const byHost = new Map<HostName, number[]>();
    for (const [index, { dataSource }] of inputs.entries()) {
      const name = this.#hostName(dataSource);
      const indices = byHost.get(name) ?? [];
      byHost.set(name, indices);
      indices.push(index);
    }
    return byHost;
  }

  /** A source without a scorer goes to the functions, where its samples fail with the reason. */
  #hostName(dataSource: string): HostName {
    const name = scorerOrNone(dataSource);
    if (name === undefined) return functions;
    if (!this.#prepared.has(name)) this.#prepare(name);
    this.#prepared.add(name);
    return isPythonScorer(name) ? name : functions;
  }
}

function scorerOrNone(dataSource: string): string | undefined {
  try {
    return scorerNameFor(dataSource);
  } catch {
    return undefined;
  }
}

/** Printed lines come with the index in the whole call. */
function withIndices({ signal, onPrint }: ScoreOptions, indices: readonly number[]): ScoreOptions {
  if (onPrint === undefined) return { signal };
  return { signal, onPrint: (line, index) => onPrint(line, index === undefined ? undefined : indices[index]) };
}
