/**
 * The native engine behind the ports of core/ports/: it computes in this process, and each call is done when its
 * promise is returned.
 */
import { cacheBytes, cacheShare, modelMemory, pageBytes, pagesOfSequence } from '../../../../native/model/memory.ts';
import { InvalidInputError } from '../../../../core/errors.ts';
import type { ModelRef, PolicyOptions, SamplingEngine, TrainingEngine } from '../../../../core/ports/engines.ts';
import type { SamplerRoom } from '../../../../core/ports/sampler.ts';
import { specOf } from '../../../../native/model/plans.ts';
import {
  arithmeticOf,
  createGenerator,
  createTrainer,
  engineInfo,
  nativeFacts,
  nativeName,
} from '../../../../native/index.ts';
import type { NativeGenerator } from '../../../../native/index.ts';
import type { MemoryPlan } from '../memory-plan.ts';
import { NativePolicy } from './policy.ts';
import { NativeSampler, OwningNativeSampler } from './sampler.ts';
import type { MakeGenerator } from './sampler.ts';

/** `memory`: of all models of this process, whatever runs them. */
export function nativeEngines(memory: MemoryPlan): TrainingEngine & SamplingEngine {
  const open = async (model: ModelRef, options: PolicyOptions): Promise<NativePolicy> => {
    const spec = await specOf(model);
    const bytes = Object.values(modelMemory(spec, options)).reduce((sum, part) => sum + part, 0);
    return memory.open(
      bytes,
      async () => new NativePolicy(createTrainer(spec, options), (policy) => memory.release(policy)),
    );
  };
  const generatorOf: MakeGenerator = (policy, room) => {
    const { spec, options } = policy.trainer;
    return generatorWith(policy, room, memory.cacheOf(policy, cacheBytes(spec, options.compute, room), cacheShare));
  };
  return {
    name: nativeName,
    facts: nativeFacts,
    arithmetic: (profile) => arithmeticOf(profile, engineInfo()),
    open,
    sampler: async (model, options) =>
      new OwningNativeSampler(await open(model, { ...options, trainable: false }), generatorOf),
    async samplerOf(policy) {
      if (policy instanceof NativePolicy) return new NativeSampler(policy, generatorOf);
      throw new InvalidInputError('the native sampler reads the weights of a native model, got one of another engine');
    },
  };
}

/** Its keys and values take at most so many bytes, or one sequence. Default: as many as they can use. */
export const generatorWith = (
  { trainer }: NativePolicy,
  room: SamplerRoom,
  bytes = cacheBytes(trainer.spec, trainer.options.compute, room),
): NativeGenerator => {
  const pages = Math.floor(bytes / pageBytes(trainer.spec, trainer.options.compute));
  return createGenerator(trainer, { ...room, kvPages: Math.max(pages, pagesOfSequence(room)) });
};
