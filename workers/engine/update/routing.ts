/** Mixtures of experts in an optimiser step: their auxiliary loss, and how evenly the experts got its tokens. */
import { at } from '../../../core/at.ts';
import { PauseError } from '../../../core/errors.ts';
import type { OutputArrays, OutputGradients, OutputName, PolicyEngine } from '../../../core/ports/policy.ts';

type Routed = Pick<OutputArrays, 'expertTokens' | 'routerLoss'>;

/**
 * The step's auxiliary loss is the mean of its micro-batches' losses, weighted by their samples, times a coefficient.
 * Formula of a micro-batch: engines/torch/petrel_torch/routing.py.
 */
export class StepRouting {
  /** What a forward pass must give for it. Empty for a model without experts. */
  readonly wants: readonly OutputName[];
  readonly #coefficient: number;
  readonly #experts: number;
  /** [layers][experts]: tokens of all passes so far. */
  #tokens: Float64Array | undefined;
  #loss = 0;

  /** Throws PauseError `NoAuxiliaryLoss` where a coefficient is set and the model has no such loss. */
  constructor({ outputs, experts = 0 }: Pick<PolicyEngine, 'outputs' | 'experts'>, coefficient: number) {
    if (coefficient > 0 && !outputs.includes('routerLoss'))
      throw new PauseError('NoAuxiliaryLoss', 'this model has no auxiliary loss of its routers', {
        hint: 'petrel resume <run> actor.router_aux_loss_coef=0',
      });
    this.#coefficient = coefficient;
    this.#experts = experts;
    this.wants = (['expertTokens', 'routerLoss'] as const).filter((name) => outputs.includes(name));
  }

  /** Adds a micro-batch with this share of the step's samples. Gives its part of the loss, and the gradient of it. */
  add(outputs: Partial<Routed>, share: number): { readonly loss: number; readonly gradients: OutputGradients } {
    const { expertTokens, routerLoss } = outputs;
    if (expertTokens !== undefined) {
      const tokens = (this.#tokens ??= new Float64Array(expertTokens.length));
      for (const [i, count] of expertTokens.entries()) tokens[i] = at(tokens, i) + count;
    }
    if (routerLoss === undefined) return { loss: 0, gradients: {} };
    const part = share * at(routerLoss, 0);
    this.#loss += part;
    if (this.#coefficient === 0) return { loss: 0, gradients: {} };
    const gradient = Float32Array.of(this.#coefficient * share);
    return { loss: this.#coefficient * part, gradients: { routerLoss: gradient } };
  }

  /** Metrics of the step, without the name of its component. An expert's load is 1 when those of its layer are even. */
  metrics(): Record<string, number> {
    if (this.#tokens === undefined) return {};
    const loads = loadsOf(this.#tokens, this.#experts);
    return {
      expert_load_max: loads.reduce((most, load) => Math.max(most, load)),
      expert_load_min: loads.reduce((least, load) => Math.min(least, load)),
      idle_experts: loads.filter((load) => load === 0).length / loads.length,
      ...(this.wants.includes('routerLoss') && { router_aux_loss: this.#loss }),
    };
  }
}

/** tokens [layers][experts] → an expert's tokens as a multiple of the mean of its layer. */
function loadsOf(tokens: Float64Array, experts: number): Float64Array {
  const loads = new Float64Array(tokens.length);
  for (let start = 0; start < tokens.length; start += experts) {
    const layer = tokens.subarray(start, start + experts);
    const all = layer.reduce((sum, count) => sum + count, 0);
    for (const [e, count] of layer.entries()) loads[start + e] = (count * experts) / all;
  }
  return loads;
}
