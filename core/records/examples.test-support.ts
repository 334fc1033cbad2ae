/** Parts of records for tests that need some, whatever they say. */
import type { LossSettings, NumericProfile, OptimizerSettings } from './schema.ts';

export const exampleProfile: NumericProfile = {
  id: 'p0',
  compute: 'fp32',
  deterministic: true,
  engine: 'native',
  device: 'avx2',
  build: 'test',
  maxTokensPerMicroBatch: 64,
};

export const exampleLoss: LossSettings = {
  kind: 'policy',
  lossMode: 'vanilla',
  clipRatioLow: 0.2,
  clipRatioHigh: 0.2,
  clipRatioC: 3,
  lossAggMode: 'token-mean',
  entropyCoeff: 0,
  useKlLoss: false,
  klLossCoef: 0,
  klLossType: 'k1',
  temperature: 1,
  lossScaleFactor: 1,
};

export const exampleOptimizer: OptimizerSettings = {
  beta1: 0.9,
  beta2: 0.999,
  eps: 1e-8,
  weightDecay: 0.01,
  maxGradNorm: 1,
};
