/**
 * The list of faults × stages: the fault, and the point of the code that a process has reached when it happens. A pair
 * counts only when, by the process's own log, the process reached the point while it held a job of that stage or made
 * that decision.
 */
import type { FaultFacts, FaultPoint } from '../../log/faults/index.ts';
import type { StatefulServer } from '../inject.ts';
import { engineFaults } from './engine-faults.ts';
import type { RankFault } from './engine-faults.ts';

/** `standing`: the process that reached the point. The other values are names in `stack.json`. */
export type Victim = 'standing' | 'nats' | 'temporal' | 'control' | 'supervisor' | 'everything';

export interface Fault {
  readonly kills: readonly Victim[];
  /** A server is restarted without its files, or with their state of some iterations ago. */
  readonly replaces?: { readonly server: StatefulServer; readonly by: 'nothing' | 'older copy' };
  /** Processes of an engine that the standing worker has started. */
  readonly ranks?: RankFault;
}

export const faults = {
  trainer: { kills: ['standing'] },
  'rollout worker': { kills: ['standing'] },
  'reward worker': { kills: ['standing'] },
  scorer: { kills: ['standing'] },
  control: { kills: ['standing'] },
  nats: { kills: ['nats'] },
  'nats wiped': { kills: [], replaces: { server: 'nats', by: 'nothing' } },
  'nats older copy': { kills: [], replaces: { server: 'nats', by: 'older copy' } },
  temporal: { kills: ['temporal'] },
  'temporal older database': { kills: [], replaces: { server: 'temporal', by: 'older copy' } },
  supervisor: { kills: ['supervisor'] },
  'worker + supervisor': { kills: ['standing', 'supervisor'] },
  'worker + nats': { kills: ['standing', 'nats'] },
  'worker + control': { kills: ['standing', 'control'] },
  'worker + temporal': { kills: ['standing', 'temporal'] },
  'control + temporal': { kills: ['standing', 'temporal'] },
  'control + supervisor': { kills: ['standing', 'supervisor'] },
  everything: { kills: ['everything'] },
} as const satisfies Record<string, Fault>;
export type FaultName = keyof typeof faults | keyof typeof engineFaults;
export const allFaults: Readonly<Record<FaultName, Fault>> = { ...faults, ...engineFaults };

/** The stages of an iteration, and the decisions between them. */
const stageNames = [
  'open',
  'rollout',
  'reward',
  'advantage',
  'batch decision',
  'update',
  'update decision',
  'checkpoint',
  'weights',
  'recovery',
  'evaluate',
  'end',
] as const;
export type StageName = (typeof stageNames)[number];

/** `one`: a worker with all roles. `apart`: one process per role, so that weights are transferred. */
export type Layout = 'one' | 'apart';

/**
 * The iterations in which it can happen: before the first one, any, those with a checkpoint, those that follow an
 * iteration without a checkpoint, after the last one.
 */
export type When = 'open' | 'any' | 'saved' | 'replayed' | 'evaluated' | 'end';

export interface Pair {
  readonly fault: FaultName;
  readonly stage: StageName;
  readonly point: FaultPoint;
  readonly facts: FaultFacts;
  /**
   * The value of the point's fact `iteration` for a fault in iteration k: jobs have the position before it, records are
   * named after it. `none`: the point has no such fact, so it is armed when iteration k − 1 is committed.
   */
  readonly counts: 'from position' | 'from iteration' | 'none';
  readonly when: When;
  /** The layout; absent: both. */
  readonly layout?: Layout;
  /** The fault happens at one of this many first visits. */
  readonly visits?: number;
  /** This process is killed first, so that the point is reached during the recovery. */
  readonly after?: { readonly point: FaultPoint; readonly facts: FaultFacts };
}

type Place = Omit<Pair, 'fault'>;
type Rest = Partial<Pick<Pair, 'when' | 'layout' | 'visits' | 'facts' | 'after'>>;

/** A worker or the control process at a job of a stage. */
export const job = (stage: StageName, point: FaultPoint, jobStage: string, rest: Rest = {}): Place => ({
  stage,
  point,
  counts: 'from position',
  when: 'any',
  ...rest,
  facts: { stage: jobStage, ...rest.facts },
});
/** The control process at a decision. */
export const decision = (
  stage: StageName,
  point: 'decide.before' | 'decide.after',
  kind: string,
  rest: Rest = {},
): Place => ({
  stage,
  point,
  counts: 'from iteration',
  when: 'any',
  ...rest,
  facts: { kind, ...rest.facts },
});
/** The trainer's engine thread. */
export const engine = (stage: StageName, point: FaultPoint, rest: Rest = {}): Place => ({
  stage,
  point,
  counts: 'from iteration',
  when: 'any',
  facts: {},
  ...rest,
});

const opening = (point: FaultPoint): Place => job('open', point, 'open', { when: 'open' });
const term = (point: 'decide.before' | 'decide.after'): Place => ({
  ...decision('open', point, 'term', { when: 'open' }),
  counts: 'none',
});
const rollout = (point: FaultPoint, rest: Rest = {}): Place => job('rollout', point, 'rollout', rest);
export const decoding: Place = { ...engine('rollout', 'sample.token', { visits: 12 }), counts: 'none' };
const reward = (point: FaultPoint, rest: Rest = {}): Place => job('reward', point, 'reward', rest);
const advantage = (point: FaultPoint): Place => job('advantage', point, 'advantage');
const update = (point: FaultPoint): Place => job('update', point, 'update');
export const stepping = engine('update', 'write.step', { visits: 4 });
export const saving = (point: FaultPoint): Place => engine('checkpoint', point, { when: 'saved' });
const weights = (point: FaultPoint): Place => job('weights', point, 'weights', { layout: 'apart' });
export const writingWeights = (point: FaultPoint): Place => ({
  ...engine('weights', point, { layout: 'apart' }),
  counts: 'from position',
});
export const recovering = (point: FaultPoint): Place => ({
  ...engine('recovery', point, { when: 'replayed', after: { point: 'write.step', facts: {} } }),
  counts: 'none',
});
/** Rollouts and rewards at the last position serve only its validation. */
export const evaluating = (point: FaultPoint, jobStage = 'rollout'): Place => ({
  ...job('evaluate', point, jobStage, { when: 'evaluated' }),
  counts: 'from iteration',
});
const evaluation = (point: 'decide.before' | 'decide.after'): Place =>
  decision('evaluate', point, 'eval', { when: 'evaluated' });
/** Log entries for users, which workflows write between stages. */
const status = (state: string, when: 'open' | 'end'): Place => ({
  ...decision(when, 'decide.before', 'status', { when, facts: { state } }),
  counts: 'none',
});
export const ending = (point: FaultPoint): Place => ({
  ...job('end', point, 'checkpoint', { when: 'end' }),
  counts: 'from iteration',
});

export const all = (fault: FaultName, ...places: Place[]): Pair[] => places.map((place) => ({ fault, ...place }));

export const pairs: readonly Pair[] = [
  ...all('trainer', opening('job.begin'), opening('result.before')),
  ...all('trainer', advantage('job.begin'), advantage('result.before'), advantage('result.after')),
  ...all('trainer', engine('update', 'write.dirty'), stepping, engine('update', 'write.sealed')),
  ...all(
    'trainer',
    update('claim.after'),
    update('result.before'),
    update('result.after'),
    update('ack.before'),
    update('ack.after'),
  ),
  ...all(
    'trainer',
    saving('checkpoint.shard'),
    saving('checkpoint.manifest.before'),
    saving('checkpoint.manifest.after'),
  ),
  ...all(
    'trainer',
    weights('job.begin'),
    writingWeights('weights.manifest.before'),
    writingWeights('weights.manifest.after'),
  ),
  ...all('trainer', recovering('recover.loaded'), recovering('recover.replay'), ending('job.begin')),

  ...all('rollout worker', rollout('claim.before'), rollout('claim.after'), rollout('job.begin'), decoding),
  ...all(
    'rollout worker',
    rollout('result.before'),
    rollout('result.after'),
    rollout('ack.before'),
    evaluating('job.begin'),
  ),

  ...all('reward worker', reward('claim.after'), reward('job.begin'), reward('result.before'), reward('result.after')),
  ...all('reward worker', reward('ack.before'), evaluating('job.begin', 'reward')),
  ...all('scorer', { ...engine('reward', 'score.sample', { visits: 8 }), counts: 'none' }),

  ...all('control', opening('wait.begin'), term('decide.before'), term('decide.after')),
  ...all(
    'control',
    rollout('wait.begin'),
    rollout('publish.before'),
    rollout('publish.after'),
    rollout('claim.answer'),
    rollout('wait.end'),
  ),
  ...all('control', reward('wait.begin'), reward('wait.end'), advantage('wait.end')),
  ...all(
    'control',
    decision('batch decision', 'decide.before', 'batch'),
    decision('batch decision', 'decide.after', 'batch'),
  ),
  ...all('control', update('publish.after'), update('claim.answer'), update('wait.end')),
  ...all(
    'control',
    decision('update decision', 'decide.before', 'update'),
    decision('update decision', 'decide.after', 'update'),
  ),
  ...all(
    'control',
    weights('wait.begin'),
    evaluating('wait.begin'),
    evaluation('decide.before'),
    evaluation('decide.after'),
    ending('wait.begin'),
  ),
  ...all('control', status('running', 'open'), status('completed', 'end')),

  ...all(
    'nats',
    opening('job.begin'),
    decoding,
    reward('job.begin'),
    advantage('job.begin'),
    stepping,
    saving('checkpoint.shard'),
  ),
  ...all(
    'nats',
    writingWeights('weights.manifest.before'),
    evaluating('job.begin'),
    ending('job.begin'),
    update('publish.before'),
  ),
  ...all(
    'nats wiped',
    rollout('job.begin'),
    reward('result.before'),
    advantage('publish.after'),
    stepping,
    evaluating('job.begin', 'reward'),
  ),
  ...all('nats older copy', decoding, update('ack.before'), update('publish.before')),

  ...all('temporal', opening('job.begin'), decoding, reward('job.begin'), advantage('job.begin'), stepping),
  ...all(
    'temporal',
    decision('update decision', 'decide.after', 'update'),
    saving('checkpoint.shard'),
    evaluating('job.begin'),
    ending('job.begin'),
  ),
  ...all(
    'temporal older database',
    rollout('job.begin'),
    stepping,
    decision('update decision', 'decide.after', 'update'),
  ),

  ...all('supervisor', decoding, stepping, decision('batch decision', 'decide.before', 'batch')),
  ...all('worker + supervisor', rollout('job.begin'), stepping),
  ...all('worker + nats', decoding, reward('job.begin'), stepping),
  ...all('worker + control', rollout('result.after'), stepping),
  ...all('worker + temporal', reward('result.before'), engine('update', 'write.sealed')),
  ...all('control + temporal', decision('batch decision', 'decide.after', 'batch'), update('wait.end')),
  ...all('control + supervisor', rollout('wait.begin'), decision('update decision', 'decide.before', 'update')),
  ...all(
    'everything',
    opening('job.begin'),
    decoding,
    reward('job.begin'),
    decision('batch decision', 'decide.before', 'batch'),
  ),
  ...all('everything', stepping, saving('checkpoint.manifest.before'), evaluating('job.begin')),
];

/** The pairs of runs that learn given responses: nobody samples or scores, and an update has one optimiser step. */
export const pairsWithoutSamples = pairs.filter(
  ({ fault, stage, facts, visits }) =>
    !['rollout', 'reward', 'weights'].includes(stage) &&
    !['rollout', 'reward'].includes(String(facts['stage'])) &&
    allFaults[fault].replaces?.by !== 'older copy' && // copied while a rollout is being made
    visits === undefined,
);

/** A trainer dies between two optimiser steps. */
export const betweenSteps: Pair = { fault: 'trainer', ...engine('update', 'write.step') };

/** The name of a pair in titles and reports. */
export const pairName = ({ fault, stage, point, facts }: Pair): string =>
  `${fault} at ${stage} (${[point, ...Object.values(facts)].join(' ')})`;
