/**
 * The records of a run, as zod schemas and types, one file per record. FORMAT.md in this folder describes them. They
 * are written in `format: 3`, those that name a batch in shards in `format: 4`; those of formats 1 and 2 are read as
 * format 3 (format1.ts, format2.ts), and readers refuse newer formats. Unknown fields are dropped by `strip`.
 */
export { recordFormat, shardedFormat, digest, metricValues, counters } from './schemas/fields.ts';
export type { Writer, Counters } from './schemas/fields.ts';
export { runRecord, runInputs, modulesOf, revisionRecord } from './schemas/run.ts';
export type { RunRecord, OwnModuleInput, OwnSamplerModule, RunInputs, RevisionRecord } from './schemas/run.ts';
export { blockHash, numericProfile } from './schemas/profile.ts';
export type { NumericProfile, ComponentState } from './schemas/profile.ts';
export { termRecord } from './schemas/term.ts';
export type { TermRecord } from './schemas/term.ts';
export {
  rolloutCorrectionSettings,
  lossSettings,
  optimizerSettings,
  batchLayout,
  batchRecord,
  batchSeal,
  batchDecision,
  formatOfBatch,
} from './schemas/batch.ts';
export type {
  DrawRecord,
  RolloutCorrectionSettings,
  LossSettings,
  OptimizerSettings,
  BatchLayout,
  BatchRecord,
  BatchSeal,
} from './schemas/batch.ts';
export { updateRecord, updateSeal, updateDecision } from './schemas/update.ts';
export type { OptimizerStep, UpdateRecord, UpdateSeal } from './schemas/update.ts';
export { evalRecord } from './schemas/evaluation.ts';
export type { EvalRecord } from './schemas/evaluation.ts';
export { componentCheckpoint, checkpointManifest, publication, weightsManifest } from './schemas/checkpoint.ts';
export type { ShardInfo, ComponentCheckpoint, CheckpointManifest, WeightsManifest } from './schemas/checkpoint.ts';
export { statusEntry } from './schemas/status.ts';
export type { StatusEntry } from './schemas/status.ts';
export { pin, tombstone, retentionEntry, toStoredRetention, inputsEntry } from './schemas/retention.ts';
export type { Pin, Tombstone, TimedPin, RetentionEntry, InputsEntry } from './schemas/retention.ts';
export { claimKey, stackClaim, drivenNote } from './schemas/stack.ts';
export type { ClaimKey, StackClaim, DrivenNote } from './schemas/stack.ts';
export { resultRecord, formatOfResult } from './schemas/result.ts';
export type { ResultRecord } from './schemas/result.ts';
export { scheduleRecord, firingRecord } from './schemas/schedule.ts';
export type { ScheduleDefinition, ScheduleRecord, FiringRecord } from './schemas/schedule.ts';
