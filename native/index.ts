export { arithmeticOf, arithmeticVersions } from './arithmetic.ts';
export { adamw, clipGradients, convertBf16, convertFp16, mapFile, roundBf16, roundFp16 } from './arrays.ts';
export { blockDigests } from './block-digests.ts';
export { engineInfo, type EngineInfo } from './engine-info.ts';
export { createGenerator, type GeneratorOptions, type NativeGenerator } from './generate.ts';
export {
  instructionClasses,
  peakClass,
  peakProductSeconds,
  readSeconds,
  type InstructionClass,
  type PeakProduct,
} from './peak.ts';
export { nativeFacts, nativeName } from './facts.ts';
export { engineProofs } from './proof/index.ts';
export { engineTicks } from './ticks.ts';
export { createTrainer, NativeTrainer, type NativeStatePart } from './trainer.ts';
