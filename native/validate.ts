import { check } from '../core/ports/check-batch.ts';
import { modelLimits } from '../core/model-limits.ts';
import type { DecoderSpec, GqaSpec, NormSpec } from './model/spec.ts';
import type { EngineOptions } from '../core/ports/policy.ts';

/** Throws InvalidInputError for a spec that this engine cannot run. The addon checks every tensor besides. */
export function checkSpec(spec: DecoderSpec): void {
  checkSize('layers', spec.layers.length, modelLimits.layers);
  checkSize('hidden', spec.hidden, modelLimits.hidden);
  checkSize('vocab', spec.vocab, modelLimits.vocab);
  checkSize('maxPositions', spec.maxPositions, modelLimits.positions);
  const norms = spec.layers.flatMap(({ norms }) => Object.values(norms) as NormSpec[]);
  for (const norm of [...norms, spec.finalNorm]) checkNorm(norm);
  spec.layers.forEach(({ mixer, ffn }) => {
    checkMixer(mixer);
    checkSize('ffn.width', ffn.width, modelLimits.ffn);
  });
}

function checkMixer(mixer: GqaSpec): void {
  const { heads, kvHeads, headDim, rope, window, scale, softcap } = mixer;
  checkSize('heads', heads, modelLimits.heads);
  checkSize('kvHeads', kvHeads, modelLimits.kvHeads);
  checkSize('headDim', headDim, modelLimits.headDim);
  checkSize('heads * headDim', heads * headDim, modelLimits.queryWidth);
  check(heads % kvHeads === 0, `decoder: ${heads} heads cannot share ${kvHeads} key heads evenly`);
  check(headDim % 2 === 0, `decoder: headDim must be even for rope, it is ${headDim}`);
  check(
    rope.length >= 1 && rope.length <= headDim / 2 && rope.every(Number.isFinite),
    `decoder: rope must hold 1 to headDim / 2 = ${headDim / 2} numbers, it holds ${rope.length}`,
  );
  check(Number.isInteger(window) && window >= 0, `decoder: window must be a non-negative integer, it is ${window}`);
  check(Number.isFinite(scale) && scale > 0, `decoder: the scale of scores must be above 0, it is ${scale}`);
  check(Number.isFinite(softcap) && softcap >= 0, `decoder: softcap must be ≥ 0, it is ${softcap}`);
}

function checkNorm({ weight, eps, offset }: NormSpec): void {
  check(Number.isFinite(eps) && eps >= 0, `decoder: eps of ${weight} must be ≥ 0, it is ${eps}`);
  check(Number.isFinite(offset), `decoder: offset of ${weight} must be a number, it is ${offset}`);
}

function checkSize(name: string, value: number, max: number): void {
  check(
    Number.isInteger(value) && value > 0 && value <= max,
    `decoder: ${name} must be an integer from 1 to ${max}, it is ${value}`,
  );
}

/** Throws InvalidInputError for options that no engine supports, or that this processor does not support. */
export function checkOptions(options: EngineOptions, bf16: boolean): void {
  const { compute, threads } = options;
  check(compute === 'fp32' || compute === 'bf16', `compute must be fp32 or bf16, it is ${String(compute)}`);
  check(compute === 'fp32' || bf16, 'compute bf16 needs a processor with AVX512_BF16; use fp32 on this one');
  check(Number.isInteger(threads) && threads >= 1 && threads <= 1024, `threads must be 1 … 1024, it is ${threads}`);
}
