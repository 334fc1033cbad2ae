/**
 * A policy loss, an advantage estimator or a sampler of the user's own, in a thread of its own: docs/decisions/0013. An
 * endless loop, an exit or too much memory in it ends the thread and not the process.
 */
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { InvalidInputError, RetryableError } from '../../core/errors.ts';
import { AskedThread } from '../asked-thread.ts';
import type { AnswerLimit, ThreadEnd } from '../asked-thread.ts';
import type { Advantages } from '../../core/rl/advantages/types.ts';
import type { GradientReport, TrialSettings } from '../../core/rl/own/check.ts';
import type { OwnEstimatorCall } from '../../core/rl/own/estimator.ts';
import type { OwnLossCall } from '../../core/rl/own/loss.ts';
import type { Sampling } from '../../core/rl/own/sampler.ts';
import type { OwnSamplerInput } from '../../core/rl/own/types.ts';
import type { PolicyLossResult } from '../../core/rl/policy-loss/types.ts';
import type {
  FromOwnModule,
  OwnModuleCalls,
  OwnModuleFacts,
  OwnModuleFailure,
  OwnModuleThreadData,
  ToOwnModule,
} from './protocol.ts';

export interface OwnModuleLimits {
  /** Time limit of starting its thread and loading it. */
  readonly loadMs: number;
  /**
   * Time limit of each call. Both together: less than the time after which a worker without progress is replaced
   * (`stallMs`).
   */
  readonly callMs: number;
  /** Memory of its objects; arrays of numbers are not counted. */
  readonly heapMb: number;
}

/**
 * Memory of a thread's newest objects. When the heap is full, Node gives the thread 16 MiB more so that it can be
 * ended; if the newest objects (48 MiB, as Node chooses) do not fit in there, V8 aborts the process. Node 22 on a busy
 * machine did so for every second loss that filled its memory.
 */
const youngMb = 8;

const usualLimits: OwnModuleLimits = { loadMs: 30_000, callMs: 60_000, heapMb: 2048 };

/** The module cannot be loaded, threw, or returned something wrong. `where`: its file and line. */
export class OwnModuleError extends InvalidInputError {}

/** Threads run built code, also for callers that run from source. */
const program = import.meta.url.endsWith('.ts')
  ? '../../dist/infra/own-modules/own-module-thread.js'
  : './own-module-thread.js';

export class OwnModule {
  readonly #data: OwnModuleThreadData;
  readonly #limits: OwnModuleLimits;
  readonly #thread: AskedThread<FromOwnModule>;
  #facts: OwnModuleFacts | undefined;

  private constructor(data: OwnModuleThreadData, limits: OwnModuleLimits) {
    this.#data = data;
    this.#limits = limits;
    const thread = new Worker(fileURLToPath(new URL(program, import.meta.url)), {
      workerData: data,
      execArgv: [], // the options of the caller's own `node` are not for this program
      env: {}, // a worker's variables have the keys of the store
      resourceLimits: { maxOldGenerationSizeMb: limits.heapMb, maxYoungGenerationSizeMb: youngMb },
      stdout: true,
      stderr: true,
    });
    // What it prints must not come between the lines of a command's --json.
    for (const output of [thread.stdout, thread.stderr])
      output.on('data', (text: Uint8Array) => process.stderr.write(text));
    this.#thread = new AskedThread(thread, (end) => this.#error({ reason: reasonOf(end, limits) }));
  }

  /** @throws OwnModuleError when it cannot be loaded. The caller closes it. */
  static async open(data: OwnModuleThreadData, limits = usualLimits): Promise<OwnModule> {
    const module = new OwnModule(data, limits);
    try {
      const message = await module.#thread.answer(() => {}, module.#within(limits.loadMs, 'it was not loaded'));
      if (message.type === 'failed') throw module.#error(message.failure);
      if (message.type === 'ready') module.#facts = message.facts;
      return module;
    } catch (error) {
      await module.close();
      throw error;
    }
  }

  get facts(): OwnModuleFacts {
    if (this.#facts === undefined) throw new Error('an opened module has told its facts');
    return this.#facts;
  }

  /** False once its thread has ended: the next call needs another one. */
  get isAlive(): boolean {
    return this.#thread.isAlive;
  }

  /** @throws OwnModuleError when the module throws or returns something wrong. */
  loss(call: OwnLossCall): Promise<PolicyLossResult> {
    return this.#call('loss', call);
  }

  /** @throws as `loss` does */
  advantages(call: OwnEstimatorCall): Promise<Advantages> {
    return this.#call('advantages', call);
  }

  /** @throws as `loss` does */
  sampling(input: OwnSamplerInput): Promise<Sampling> {
    return this.#call('sampling', input);
  }

  /** The first answer of a sampler. @throws as `loss` does, and when a second call gives another answer. */
  checkSampler(input: OwnSamplerInput): Promise<Sampling> {
    return this.#call('checkSampler', input);
  }

  /** @throws as `loss` does; it judges no difference. */
  checkLoss(settings: TrialSettings): Promise<GradientReport> {
    return this.#call('checkLoss', settings);
  }

  /** @throws as `loss` does */
  async checkEstimator(config: OwnEstimatorCall['config']): Promise<void> {
    await this.#call('checkEstimator', config);
  }

  async close(): Promise<void> {
    await this.#thread.close(new RetryableError('Closed', `${this.#shown} is closed`));
  }

  #call<Name extends keyof OwnModuleCalls>(
    name: Name,
    argument: OwnModuleCalls[Name]['argument'],
  ): Promise<OwnModuleCalls[Name]['answer']> {
    return this.#thread.allOf(async () => {
      const request: ToOwnModule<Name> = { call: name, argument };
      const limit = this.#within(this.#limits.callMs, 'compute did not return');
      const message = await this.#thread.answer((thread) => thread.postMessage(request), limit);
      if (message.type === 'failed') throw this.#error(message.failure);
      if (message.type !== 'answer') throw this.#error({ reason: 'it sent a message of its own' });
      return message.answer as OwnModuleCalls[Name]['answer'];
    });
  }

  #within(timeoutMs: number, what: string): AnswerLimit {
    const reason = `${what} within ${timeoutMs / 1000} s`;
    return { timeoutMs, tooLate: () => this.#error({ reason, hint: 'look for a loop that does not end' }) };
  }

  get #shown(): string {
    return `./${this.#data.fileName}`;
  }

  #error({ reason, hint, place }: OwnModuleFailure): OwnModuleError {
    return new OwnModuleError(`${this.#shown}: ${reason}`, {
      where: place === undefined ? this.#shown : `./${place}`,
      ...(hint !== undefined && { hint }),
    });
  }
}

function reasonOf(end: ThreadEnd, { heapMb }: OwnModuleLimits): string {
  if ('code' in end) return 'it ended its thread';
  const { code, message }: Error & { readonly code?: string } = end.error;
  return code === 'ERR_WORKER_OUT_OF_MEMORY'
    ? `it used more than ${heapMb} MiB of memory`
    : `it ended its thread: ${message}`;
}
