/** Shared by all seeds: one stack with the injector, the recipe, and the results of the undisturbed run. */
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { mergeTrees } from '../../core/recipe/index.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { patienceVariable } from '../../infra/engines/patience.ts';
import { faultsVariable } from '../../log/faults/index.ts';
import { builtFile, petrelHome } from '../../infra/home.ts';
import type { WorkerPool } from '../../infra/stack/index.ts';
import { essencesOf } from '../essences.ts';
import { InProcessLoop } from '../in-process-loop.ts';
import type { RunInProcess, ScoreFunction } from '../in-process-loop.ts';
import { Injector } from '../inject.ts';
import { tinySizes } from '../loop-inputs.ts';
import { LoopUnderTest, onePool } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { engineRecipe } from './engine-choice.ts';
import type { EngineChoice, Variant } from './engine-choice.ts';
import { iterations } from './plan.ts';
import { additionsOf, kindOf, samples } from './subjects.ts';
import type { Subject } from './subjects.ts';

/** vLLM's attention on a processor knows no head of fewer than 32 values. */
const sizesForEveryEngine = { ...tinySizes, hidden_size: 64, num_attention_heads: 2, num_key_value_heads: 2 };
/** After so many seconds a rank of these small models is hung, on a busy machine, too. */
const enginePatienceS = 20;

/** The values on which two equal runs must agree, per iteration. */
export type Essence = readonly unknown[];

export class Bed {
  readonly loop: LoopUnderTest;
  readonly injector: Injector;
  readonly engine: EngineChoice | undefined;
  #pools: readonly WorkerPool[] = onePool;
  #scorer = '';
  readonly #undisturbed = new InProcessLoop();
  readonly #references = new Map<Subject, Essence>();

  /** `store`: default: a folder. `engine`: which must be installed; default: the native one. */
  constructor(store?: string, engine?: EngineChoice) {
    this.engine = engine;
    this.loop = new LoopUnderTest(store, engine === undefined ? tinySizes : sizesForEveryEngine);
    if (engine !== undefined) {
      symlinkSync(join(petrelHome(), 'engines'), join(this.loop.home, 'engines'));
      process.env[patienceVariable] = String(enginePatienceS);
    }
    const folder = join(this.loop.home, 'faults');
    process.env[faultsVariable] = folder; // only the stack's processes read it from now on
    this.injector = new Injector(this.loop.home, folder);
  }

  /** Brings the stack up with these workers; default: those that it had before all of it was killed. */
  async up(pools: readonly WorkerPool[] = this.#pools): Promise<void> {
    this.#pools = pools;
    await this.loop.up(pools);
    if (this.#scorer !== '') return;
    this.#scorer = this.#writeScorer();
    await this.loop.inputs.writeTeacher();
    await this.#undisturbed.up();
  }

  /** The run without faults, in this process: whatever a stack's processes are, they must give the same bits. */
  reference(subject: Subject): Promise<Essence> {
    return this.#reference(subject, async () => {
      const data = { train_files: this.loop.inputs.rows(kindOf(subject)) };
      return essence(await this.#undisturbed.completed(mergeTrees(this.#common(subject), { data }), { score }));
    });
  }

  /** The same of another engine, on the stack itself: its bits are those of a worker. `complete`: makes that run. */
  referenceOnStack(subject: Subject, complete: () => Promise<StartedRun>): Promise<Essence> {
    return this.#reference(subject, async () => this.essence(await complete()));
  }

  async #reference(subject: Subject, make: () => Promise<Essence>): Promise<Essence> {
    const reference = this.#references.get(subject) ?? (await make());
    this.#references.set(subject, reference);
    return reference;
  }

  /** All stages, two epochs of two steps, checkpoints every second iteration, a validation at the end. */
  recipe(subject: Subject, variant?: Variant): Tree {
    const recipe = this.#whole(subject);
    return this.engine && variant ? mergeTrees(recipe, engineRecipe(this.engine, variant)) : recipe;
  }

  #whole(subject: Subject): Tree {
    const reward = { custom_reward_function: { path: this.#scorer, deterministic: true }, num_workers: 1 };
    return samples(subject) ? mergeTrees(this.#common(subject), { reward }) : this.#common(subject);
  }

  #common(subject: Subject): Tree {
    const { inputs } = this.loop;
    const sampling: Tree = {
      data: { val_files: inputs.validation, max_response_length: 12 },
      rollout: { max_num_seqs: 8 },
      actor: { ppo_epochs: 2, use_kl_loss: true, kl_loss_coef: 0.05, entropy_coeff: 0.01 },
    };
    const every: Tree = {
      name: 'recovery',
      actor: { ppo_mini_batch_size: 2, shuffle: true },
      trainer: { total_training_steps: iterations, save_freq: 2 },
    };
    return mergeTrees(samples(subject) ? mergeTrees(every, sampling) : every, additionsOf(subject, inputs));
  }

  /** The values of a run of the stack that must agree with the reference. */
  async essence(run: StartedRun): Promise<Essence> {
    return essence({ log: run.log, iterations: await this.loop.iterations(run) });
  }

  async remove(): Promise<void> {
    this.injector.disarmAll();
    this.injector.close();
    delete process.env[faultsVariable];
    delete process.env[patienceVariable];
    await this.#undisturbed.remove();
    await this.loop.remove();
  }

  /** Writes the same as a scorer whose process contains a fault point. */
  #writeScorer(): string {
    const path = join(this.loop.inputs.folder, 'sevens-with-faults.mjs');
    const body = [
      // A scorer gets none of the worker's environment variables (rewards/environment.ts).
      `process.env.${faultsVariable} = ${JSON.stringify(process.env[faultsVariable])};`,
      `const { faultPoint } = await import(${JSON.stringify(builtFile('log/faults/index.js'))});`,
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

async function essence({ log, iterations: made }: Pick<RunInProcess, 'log' | 'iterations'>): Promise<Essence> {
  const validated = (await log.evaluations.all()).map(({ iteration, accuracy, questions, failed, weightsDigest }) => ({
    iteration,
    accuracy,
    questions,
    failed,
    weightsDigest,
  }));
  return [...essencesOf(made), ...validated];
}

/** The reward is the share of sevens, and `acc` whether there is one. */
const score: ScoreFunction = ({ solutionStr }) => {
  const count = [...solutionStr].filter((c) => c === '7').length;
  return { score: count / Math.max(1, solutionStr.length), acc: count > 0 };
};

/** Undefined when equal; otherwise a text about the first entry that differs. */
export function difference(made: Essence, expected: Essence): string | undefined {
  if (made.length !== expected.length) return `${made.length} records instead of ${expected.length}`;
  const at = made.findIndex((one, i) => !isDeepStrictEqual(one, expected[i]));
  return at < 0
    ? undefined
    : `record ${at + 1} differs from the undisturbed run's:\n${JSON.stringify(made[at])}\n${JSON.stringify(expected[at])}`;
}
