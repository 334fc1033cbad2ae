/**
 * The losses and estimators of the user's own that an engine's thread has open: one of each kind, for the run that it
 * trains. What fails in one pauses the run, since only a person can fix it.
 */
import { PauseError } from '../../../core/errors.ts';
import type { RunId } from '../../../core/ids.ts';
import type { Store } from '../../../core/ports/store.ts';
import { type OwnModuleKind, ownModuleKeys } from '../../../core/recipe/index.ts';
import type { OwnModuleInput } from '../../../core/records/schema.ts';
import { advantageEstimator } from '../../../core/rl/advantages/index.ts';
import type { AdvantageBatch, AdvantageConfig, Advantages } from '../../../core/rl/advantages/index.ts';
import type { OwnEstimatorNeed, OwnLossNeed } from '../../../core/rl/names.ts';
import { ownEstimatorCall } from '../../../core/rl/own/estimator.ts';
import { type OwnLossSources, ownLossCall } from '../../../core/rl/own/loss.ts';
import type { Sampling } from '../../../core/rl/own/sampler.ts';
import type { OwnSamplerInput } from '../../../core/rl/own/types.ts';
import type { PolicyLossConfig, PolicyLossResult } from '../../../core/rl/policy-loss/index.ts';
import type { AdvantageInput } from '../../../core/wire/jobs/index.ts';
import { OwnModule, OwnModuleError } from '../../../infra/own-modules/own-module.ts';
import type { OwnModuleLimits } from '../../../infra/own-modules/own-module.ts';
import { getBlob } from '../../../log/objects/blobs.ts';

/** Computes a loss of the user's own. `runId`: of the batch record that names it. */
export type OwnLoss = (
  runId: RunId,
  own: OwnModuleInput,
  input: OwnLossSources,
  config: PolicyLossConfig,
) => Promise<PolicyLossResult>;

/** A built-in estimator, or one of the user's own. */
export interface RunEstimator {
  compute(batch: AdvantageBatch, config: AdvantageConfig): Advantages | Promise<Advantages>;
}

interface Open {
  readonly digest: string;
  readonly module: Promise<OwnModule>;
}

export class OwnModules {
  readonly #limits: OwnModuleLimits | undefined;
  readonly #open: Partial<Record<OwnModuleKind, Open>> = {};

  constructor(limits?: OwnModuleLimits) {
    this.#limits = limits;
  }

  /** Each call throws PauseError `OwnModuleFailed` when the module fails. */
  lossIn(store: Store): OwnLoss {
    return async (runId, own, input, config) => {
      // As for a built-in loss: the optimiser step is skipped. The module is not to blame.
      if (!isFinite(input)) return nothing(input);
      const call = ownLossCall(own.needs as OwnLossNeed[], input, config);
      return this.#use('loss', own, store, runId, (module) => module.loss(call));
    };
  }

  /** Does what `lossIn` does, for an estimator. Throws InvalidInputError for an unknown name. */
  estimator(store: Store, runId: RunId, { inputs, algorithm }: AdvantageInput): RunEstimator {
    const own = inputs.estimator;
    return {
      compute: (batch, config) => {
        if (own === undefined) return advantageEstimator(algorithm.advEstimator).compute(batch, config);
        const call = ownEstimatorCall(own.needs as OwnEstimatorNeed[], batch, config);
        return this.#use('estimator', own, store, runId, (module) => module.advantages(call));
      },
    };
  }

  /** Does what `lossIn` does, for a sampler. */
  sampling(store: Store, runId: RunId, own: OwnModuleInput, input: OwnSamplerInput): Promise<Sampling> {
    return this.#use('sampler', own, store, runId, (module) => module.sampling(input));
  }

  /** Ends their threads. */
  async close(): Promise<void> {
    await this.#close('loss');
    await this.#close('estimator');
    await this.#close('sampler');
  }

  async #use<T>(
    kind: OwnModuleKind,
    own: OwnModuleInput,
    store: Store,
    runId: RunId,
    work: (module: OwnModule) => Promise<T>,
  ): Promise<T> {
    try {
      return await work(await this.#opened(kind, own, store, runId));
    } catch (error) {
      if (!(error instanceof OwnModuleError)) throw error;
      throw new PauseError('OwnModuleFailed', error.message, {
        ...(error.where !== undefined && { where: error.where }),
        hint: fixHint(kind, own, runId, error.hint),
        cause: error,
      });
    }
  }

  async #opened(kind: OwnModuleKind, own: OwnModuleInput, store: Store, runId: RunId): Promise<OwnModule> {
    const known = this.#open[kind];
    if (known?.digest === own.module) {
      const module = await known.module.catch(() => undefined);
      if (module?.isAlive) return module;
    }
    await this.#close(kind);
    const module = getBlob(store, runId, own.module).then((source) =>
      OwnModule.open({ kind, fileName: own.fileName, source }, this.#limits),
    );
    this.#open[kind] = { digest: own.module, module };
    return module;
  }

  async #close(kind: OwnModuleKind): Promise<void> {
    const before = this.#open[kind];
    delete this.#open[kind];
    await before?.module.then(
      (module) => module.close(),
      () => {}, // it was not opened
    );
  }
}

/** A plain resume would run the run's copy of the module again. */
function fixHint(kind: OwnModuleKind, { fileName }: OwnModuleInput, runId: RunId, hint: string | undefined): string {
  const resume = `petrel resume ${runId} ${ownModuleKeys[kind]}=./${fileName} --accept`;
  return `${hint === undefined ? '' : `${hint}; `}fix ${fileName}, then run in its folder: ${resume}`;
}

/** True when all numbers are finite, over tokens that count. */
function isFinite({ rows: { mask_T }, logProb_T, oldLogProb_T, advantages_T }: OwnLossSources): boolean {
  for (let t = 0; t < logProb_T.length; t++) {
    if (mask_T[t] === 0) continue;
    const sum = (logProb_T[t] as number) + (oldLogProb_T[t] as number) + (advantages_T[t] as number);
    if (!Number.isFinite(sum)) return false;
  }
  return true;
}

const nothing = ({ logProb_T }: OwnLossSources): PolicyLossResult => ({
  loss: NaN,
  dLogProb_T: new Float64Array(logProb_T.length),
  metrics: {},
});
