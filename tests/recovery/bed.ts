/** Shared by all seeds: one stack with the injector, the recipe, and the results of the undisturbed run. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { reproducibleMetrics } from '../../core/metrics.ts';
import { mergeTrees } from '../../core/recipe/index.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { faultsVariable } from '../../infra/faults/index.ts';
import { builtFile } from '../../infra/home.ts';
import type { WorkerPool } from '../../infra/stack/index.ts';
import { Injector } from '../inject.ts';
import { LoopUnderTest, onePool } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { iterations } from './plan.ts';
import { subjects } from './subjects.ts';
import type { Subject } from './subjects.ts';

/** The values on which two equal runs must agree, per iteration. */
export type Essence = readonly unknown[];

export class Bed {
  readonly loop: LoopUnderTest;
  readonly injector: Injector;
  #pools: readonly WorkerPool[] = onePool;
  #scorer = '';
  readonly #references = new Map<Subject, Essence>();

  constructor(store?: string) {
    this.loop = new LoopUnderTest(store);
    const folder = join(this.loop.home, 'faults');
    process.env[faultsVariable] = folder; // only the stack's processes read it from now on
    this.injector = new Injector(this.loop.home, folder);
  }

  /** Brings the stack up with these workers; default: those that it had before all of it was killed. */
  async up(pools: readonly WorkerPool[] = this.#pools): Promise<void> {
    this.#pools = pools;
    await this.loop.up(pools);
    if (this.#scorer === '') this.#scorer = this.#writeScorer();
  }

  /** The undisturbed run. One run is enough, because all layouts give the same bits. */
  async reference(subject: Subject): Promise<Essence> {
    const known = this.#references.get(subject);
    if (known !== undefined) return known;
    const run = await this.loop.start(this.recipe(subject));
    await this.loop.reaches(run, 'completed');
    const reference = await this.essence(run);
    this.#references.set(subject, reference);
    return reference;
  }

  /** All stages, two epochs of two steps, checkpoints every second iteration, a validation at the end. */
  recipe(subject: Subject): Tree {
    return mergeTrees(this.#common(), subjects[subject]);
  }

  #common(): Tree {
    return {
      name: 'recovery',
      data: { val_files: this.loop.validationFile, max_response_length: 12 },
      rollout: { max_num_seqs: 8 },
      actor: {
        ppo_mini_batch_size: 2,
        ppo_epochs: 2,
        shuffle: true,
        use_kl_loss: true,
        kl_loss_coef: 0.05,
        entropy_coeff: 0.01,
      },
      reward: { custom_reward_function: { path: this.#scorer, deterministic: true }, num_workers: 1 },
      trainer: { total_training_steps: iterations, save_freq: 2 },
    };
  }

  async essence(run: StartedRun): Promise<Essence> {
    const committed = (await this.loop.iterations(run)).map(({ batch, update }) => ({
      iteration: batch.iteration,
      tensors: batch.tensors,
      draws: batch.draws,
      trained: batch.components,
      counters: update.after,
      outcome: update.outcome,
      state: update.stateDigest,
      components: update.components,
      metrics: reproducibleMetrics({ ...batch.metrics, ...update.metrics } as Record<string, number>),
    }));
    const validated = (await run.log.evaluations()).map(
      ({ iteration, accuracy, questions, failed, weightsDigest }) => ({
        iteration,
        accuracy,
        questions,
        failed,
        weightsDigest,
      }),
    );
    return [...committed, ...validated];
  }

  async remove(): Promise<void> {
    this.injector.disarmAll();
    this.injector.close();
    delete process.env[faultsVariable];
    await this.loop.remove();
  }

  /**
   * The reward is the share of sevens, and `acc` whether there is one. Its scorer process contains a fault point, too.
   */
  #writeScorer(): string {
    const path = join(this.loop.home, 'inputs', 'sevens-with-faults.mjs');
    const body = [
      // A scorer gets none of the worker's environment variables (rewards/host/environment.ts).
      `process.env.${faultsVariable} = ${JSON.stringify(process.env[faultsVariable])};`,
      `const { faultPoint } = await import(${JSON.stringify(builtFile('infra/faults/index.js'))});`,
      'export function computeScore({ solutionStr }) {',
      `  faultPoint('score.sample');`,
      `  const sevens = [...solutionStr].filter((c) => c === '7').length;`,
      '  return { score: sevens / Math.max(1, solutionStr.length), acc: sevens > 0 };',
      '}',
    ];
    writeFileSync(path, `${body.join('\n')}\n`);
    return path;
  }
}

/** Undefined when equal; otherwise a text about the first entry that differs. */
export function difference(made: Essence, expected: Essence): string | undefined {
  if (made.length !== expected.length) return `${made.length} records instead of ${expected.length}`;
  const at = made.findIndex((one, i) => !isDeepStrictEqual(one, expected[i]));
  return at < 0
    ? undefined
    : `record ${at + 1} differs from the undisturbed run's:\n${JSON.stringify(made[at])}\n${JSON.stringify(expected[at])}`;
}
