/** The model of the folder that was asked for last: cases of one folder come one after the other. */
import type { ModelRef, TrainingEngine } from '../../../core/ports/engines.ts';
import type { EngineOptions, PolicyEngine } from '../../../core/ports/policy.ts';

export class KeptModel {
  readonly #engines: TrainingEngine;
  readonly #options: EngineOptions;
  #kept: { readonly folder: string; readonly model: PolicyEngine } | undefined;

  constructor(engines: TrainingEngine, options: EngineOptions) {
    this.#engines = engines;
    this.#options = options;
  }

  /** It learns, and has the weights of its folder. */
  async of(ref: ModelRef): Promise<PolicyEngine> {
    const { folder } = ref;
    if (this.#kept?.folder !== folder) {
      await this.close();
      this.#kept = { folder, model: await this.#engines.open(ref, { ...this.#options, trainable: true }) };
    }
    await this.#kept.model.load({ type: 'folder', folder });
    return this.#kept.model;
  }

  async close(): Promise<void> {
    await this.#kept?.model.close();
    this.#kept = undefined;
  }
}
