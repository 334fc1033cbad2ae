/** The faults of runs on engines of others: those of their processes, and some of what is around them. */
import type { EngineChoice } from './engine-choice.ts';
import { all, decision, decoding, engine, evaluating, job, recovering, saving, stepping } from './pairs.ts';
import type { Pair } from './pairs.ts';

/** The trainer's group computes while its worker stands there. */
const computing = job('update', 'job.progress', 'update', { visits: 4 });
const sealing = engine('update', 'write.sealed');
const sampled = job('rollout', 'result.before', 'rollout');
const updated = decision('update decision', 'decide.after', 'update');

const ofTrainer: readonly Pair[] = [
  ...all('one rank', computing, engine('update', 'write.dirty'), stepping, sealing, saving('checkpoint.shard')),
  ...all('one rank', recovering('recover.loaded'), recovering('recover.replay')),
  ...all('all ranks', computing, stepping, sealing, recovering('recover.replay')),
  ...all('hung rank', computing, stepping, saving('checkpoint.shard')),
  ...all('rank without memory', computing, stepping),
  ...all('trainer', computing, stepping, sealing, saving('checkpoint.manifest.before'), recovering('recover.replay')),
];
const ofSampler: readonly Pair[] = [
  ...all('sampler', decoding, sampled),
  ...all('hung sampler', decoding),
  ...all('sampler without memory', decoding),
];
const around: readonly Pair[] = [
  ...all('rollout worker', decoding, sampled, evaluating('job.begin')),
  ...all('control', updated),
  ...all('nats', decoding, stepping),
  ...all('temporal', stepping),
  ...all('everything', computing, decoding, saving('checkpoint.manifest.before')),
];

/** Faults of a sampler's process: of one that is no process of its own there are none. */
export const enginePairs = ({ sampler }: EngineChoice): readonly Pair[] => [
  ...ofTrainer,
  ...(sampler === 'native' ? [] : ofSampler),
  ...around,
];
