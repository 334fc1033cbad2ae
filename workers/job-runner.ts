/**
 * Runs the jobs that a worker has claimed: the engine computes or a scorer scores, and the result is written with the
 * proof that this process had the claim.
 */
import type { NatsConnection } from '@nats-io/nats-core';
import { PreemptedError } from '../core/errors.ts';
import type { Store } from '../core/ports/store.ts';
import { keys } from '../core/records/keys.ts';
import { formatOfResult } from '../core/records/schema.ts';
import type { ResultRecord } from '../core/records/schema.ts';
import type { Role } from '../core/roles.ts';
import { jobInput } from '../core/wire/jobs/index.ts';
import type { Stage } from '../core/wire/jobs/index.ts';
import type { JobMessage, Timing } from '../core/wire/messages.ts';
import { identityText } from '../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../core/wire/worker-identity.ts';
import { faultPoint } from '../log/faults/index.ts';
import type { Journal } from '../infra/nats/journal/journal.ts';
import type { Claim, JobProgress } from '../infra/nats/jobs/puller.ts';
import { lineWriter } from '../infra/telemetry/run-log-lines.ts';
import { encodeRecord } from '../log/objects/records.ts';
import { proven } from '../log/objects/result-proof.ts';
import { DecodingRate } from './decoding-rate.ts';
import type { DecodedSpan } from './decoding-rate.ts';
import { InFlightJob } from './drain.ts';
import { tellOfSamples } from './ended-samples.ts';
import type { Engine, EngineAnswer, EngineJobPorts } from './engine/process/client.ts';
import { leaseOf } from './lease.ts';
import type { TrainerLease } from './lease.ts';
import type { RewardRoom } from './reward/room.ts';
import type { RewardRole, ScoringReport } from './reward/score.ts';
import type { SayOfRun } from './run-lines.ts';
import { Gate, Slots } from './slots.ts';

export interface JobRunnerPorts {
  readonly nc: NatsConnection;
  readonly identity: WorkerIdentity;
  /** The worker's name in records and logs. */
  readonly name: string;
  readonly roles: readonly Role[];
  readonly timing: Timing;
  readonly openStore: (url: string) => Promise<Store>;
  /** Undefined in a worker that only scores. */
  readonly engine: () => Engine | undefined;
  readonly journal: Journal;
  readonly lease: TrainerLease;
  readonly reward: RewardRole;
  readonly rewardRoom: RewardRoom;
  readonly say: SayOfRun;
  /** A job began or ended. */
  readonly changed: () => void;
}

export class JobRunner {
  readonly #ports: JobRunnerPorts;
  readonly #gate = new Gate();
  /** A trainer's state is one, so its jobs run one after the other. */
  readonly #trainerSlot = new Slots(1);
  readonly #jobs = new Set<string>();
  readonly #inFlight = new Set<InFlightJob>();
  /** Duration of the last job of each stage. */
  readonly #usualMs = new Map<Stage, number>();
  readonly #decoding = new DecodingRate();
  #rewardTicks = 0;
  #leavesBecause: string | undefined;

  constructor(ports: JobRunnerPorts) {
    this.#ports = ports;
  }

  /** Ids of the jobs that it works on. */
  get jobs(): ReadonlySet<string> {
    return this.#jobs;
  }

  /** The jobs that still use this process, requeued ones too. */
  get inFlight(): ReadonlySet<InFlightJob> {
    return this.#inFlight;
  }

  /** How fast its samples were decoded lately. */
  get tokensPerSecond(): number | undefined {
    return this.#decoding.tokensPerSecond;
  }

  /** Rises while it computes or scores. */
  get ticks(): number {
    return (this.#ports.engine()?.ticks ?? 0) + this.#rewardTicks;
  }

  get isLeaving(): boolean {
    return this.#leavesBecause !== undefined;
  }

  usualMs(stage: Stage): number | undefined {
    return this.#usualMs.get(stage);
  }

  /** The worker leaves: jobs that come from now on are requeued. */
  leave(because: string): void {
    this.#leavesBecause = because;
  }

  /** Ends the run's jobs of every role, and its scorers. */
  cancel(runId: string): void {
    for (const job of this.#inFlight) if (job.runId === runId) job.cancel(`${runId} has ended`);
    void this.#ports.reward.endRun(runId);
  }

  /** Another worker has the job since this machine had no connection. */
  claimLost({ runId, jobId, stage }: JobMessage): void {
    console.error(`${runId} ${stage} ${jobId}: another worker has it now`);
    for (const job of this.#inFlight)
      if (job.runId === runId && job.jobId === jobId) job.cancel('another worker has it');
  }

  /** Resolves when the job's result is written, with its bytes; undefined when another process has written it. */
  async run(role: Role, message: JobMessage, progress: JobProgress, claim: Claim): Promise<Uint8Array | undefined> {
    if (this.#leavesBecause !== undefined) throw new PreemptedError('Leaving', `requeued: ${this.#leavesBecause}`);
    const { changed, rewardRoom } = this.#ports;
    const job = new InFlightJob(role, message, progress);
    this.#jobs.add(message.jobId);
    this.#inFlight.add(job);
    changed();
    const work = this.#gate
      .run(claim.alone, () => this.#begin(job, message, claim))
      .finally(() => this.#inFlight.delete(job));
    const ended = Promise.race([work, job.requeued]);
    try {
      return await (role === 'reward' ? rewardRoom.hold(message.runId, () => ended) : ended);
    } finally {
      this.#jobs.delete(message.jobId);
      changed();
    }
  }

  /** Starts the job, unless it was requeued while it waited for a slot. */
  async #begin(job: InFlightJob, message: JobMessage, claim: Claim): Promise<Uint8Array | undefined> {
    if (job.isOver) return undefined;
    const began = performance.now();
    job.begin(began);
    const result = await this.#work(job, message, claim);
    this.#usualMs.set(message.stage, performance.now() - began);
    return result;
  }

  async #work(
    { role, progress, signal }: InFlightJob,
    message: JobMessage,
    claim: Claim,
  ): Promise<Uint8Array | undefined> {
    const store = await this.#ports.openStore(message.store);
    const key = keys.result(message.runId, message.jobId);
    const isNew = message.isNew === true && claim.first === true;
    if (!isNew && (await store.head(key)) !== undefined) return undefined;
    const { stage, jobId, runId, at } = message;
    const components = leaseOf(message).components?.join(' ') ?? 'all';
    const facts = { kind: 'result', stage, jobId, runId, iteration: at.iteration, components };
    faultPoint('job.begin', facts);
    const answer =
      role === 'reward'
        ? await this.#score(store, message, progress)
        : await this.#compute(role, message, progress, { signal, ...claim });
    const result = this.#provenResult(message, answer, claim);
    faultPoint('result.before', facts);
    const outcome = await store.create(key, result);
    // Another worker has finished the job because this process seemed dead, and this result is discarded. If the
    // existing one lacks its proof, the job comes again.
    if (outcome !== 'created')
      this.#ports.say(runId, 'warn', `${stage} ${jobId}: late result refused; another worker's result exists`);
    faultPoint('result.after', facts);
    return outcome === 'created' ? result : undefined;
  }

  #provenResult({ jobId, stage }: JobMessage, answer: EngineAnswer, { secret }: Claim): Uint8Array {
    const { name, identity } = this.#ports;
    const record: ResultRecord = {
      format: formatOfResult(stage, answer.output),
      jobId,
      stage,
      output: { ...answer.output },
      timings: { [`timing_s/${stage}`]: answer.seconds, ...answer.counts },
      writer: { process: name, at: new Date().toISOString() },
    };
    return encodeRecord(proven(record, identityText(identity), secret));
  }

  async #compute(
    role: Role,
    message: JobMessage,
    progress: JobProgress,
    claim: Claim & { readonly signal: AbortSignal },
  ): Promise<EngineAnswer> {
    jobInput(message.stage, message.input);
    const { journal, lease, roles } = this.#ports;
    const engine = this.#ports.engine();
    if (engine === undefined) throw new Error(`this worker holds ${roles.join(', ')}, not ${role}`);
    const isContinued = message.stage === 'rollout' && claim.first !== true;
    const entries = isContinued ? await journal.read(message.runId, message.jobId) : [];
    const given = { journal: entries, weights: claim.weights };
    const run = () => engine.run(message, given, this.#engineJobPorts(message, progress, claim));
    if (role === 'trainer') return lease.use(leaseOf(message), () => this.#trainerSlot.hold(run));
    const decoded = this.#decoding.begin(performance.now() / 1_000);
    try {
      const answer = await run();
      decoded(decodedBy(answer, performance.now() / 1_000));
      return answer;
    } catch (error) {
      decoded();
      await journal.settled(); // before another worker gets the job
      throw error;
    }
  }

  #engineJobPorts(
    message: JobMessage,
    progress: JobProgress,
    { signal, secret, scorer }: Claim & { readonly signal: AbortSignal },
  ): EngineJobPorts {
    const { nc, identity, journal, roles } = this.#ports;
    const say = lineWriter(nc, message.runId, identity);
    return {
      signal,
      progress: (done, total, note) => Object.assign(progress, { done, total, note }),
      say: (text) => say('info', text),
      journal: (text, tokens) => journal.publish({ ...message, secret }, text, tokens),
      ended: tellOfSamples(message, {
        scorer: roles.includes('reward') ? identityText(identity) : scorer,
        publish: (subject, text) => nc.publish(subject, text),
      }),
    };
  }

  async #score(store: Store, message: JobMessage, progress: JobProgress): Promise<EngineAnswer> {
    const { nc, identity, timing, reward } = this.#ports;
    const started = performance.now();
    const input = jobInput('reward', message.input);
    // A slow scorer does not mean a stuck process: every call has its own time limit, which this process enforces.
    const pulse = setInterval(() => (this.#rewardTicks += 1), timing.progressMs);
    const say = lineWriter(nc, message.runId, identity);
    const report: ScoringReport = {
      progress: (done, total) => void Object.assign(progress, { done, total, note: 'scoring' }),
      say: (text) => say('info', text),
    };
    const { output, ahead } = await reward.score(store, message, input, report).finally(() => clearInterval(pulse));
    const counts = { 'reward/samples_scored_ahead': ahead };
    return { output: { ...output }, seconds: (performance.now() - started) / 1000, counts };
  }
}

/** What a rollout job that has just ended has decoded, and when: after its weights were there. */
function decodedBy({ seconds, counts }: EngineAnswer, to: number): DecodedSpan {
  const from = to - seconds + (counts['timing_s/load_weights'] ?? 0);
  return { from, to, tokens: counts['rollout/decoded_tokens'] ?? 0 };
}
