/** Publications of weights, which rollout workers outside the trainer's process read. */
import { beginsAsModel } from '../../core/division.ts';
import { queueOf } from '../../core/records/profile-ids.ts';
import { damage } from '../../core/records/damage.ts';
import { errorToJson } from '../../core/errors.ts';
import type { Digest } from '../../core/ids.ts';
import { samplerEngine } from '../../core/recipe/index.ts';
import { keys } from '../../core/records/keys.ts';
import { publicationOf, publishedAs } from '../../core/records/publications.ts';
import type { NumericProfile, UpdateRecord } from '../../core/records/schema.ts';
import type { JobRequest } from '../../core/ports/jobs.ts';
import type { Head } from '../../log/run/run-log.ts';
import type { Presence } from '../../core/wire/messages.ts';
import { stateOfPart } from './parts.ts';
import type { ActivityPorts } from '../ports/index.ts';
import type { Recompute } from './recompute.ts';
import type { RunContext } from './run-context.ts';
import { trains } from '../settings.ts';

type Ports = Pick<ActivityPorts, 'listWorkers' | 'runStateOf' | 'dispatcher' | 'say'>;

export class WeightsPublisher {
  readonly #ports: Ports;
  readonly #recompute: Recompute;
  /** The newest weights that were published for the workers of that moment, by run. */
  readonly #published = new Map<string, Digest>();

  constructor(ports: Ports, recompute: Recompute) {
    this.#ports = ports;
    this.#recompute = recompute;
  }

  /**
   * Publishes the weights before the first rollout, when there are rollout workers that do not hold them. When these
   * get them from the trainer's memory, the publication can wait; the caller must call what this resolves with once
   * they have them.
   */
  async beforeRollouts(context: RunContext, head: Head, signal: AbortSignal): Promise<() => void> {
    const { runId } = context.log;
    if (isModel(head) || this.#published.get(runId) === head.publication.digest) return () => {};
    const workers = await this.#ports.listWorkers();
    const { components } = trains(context.recipe);
    // A sampler of another engine has weights of its own, also beside the trainer.
    const isInPlace = samplerEngine(context.recipe) === head.profile.engine;
    const holds = ({ lease, trains: trained }: Presence) =>
      isInPlace && lease === runId && (trained === undefined || components?.some((name) => trained.includes(name)));
    const outside = workers.filter((worker) => worker.roles.includes('rollout') && !holds(worker));
    if (outside.length > 0 && !this.#ports.dispatcher.servesWeights(runId)) await this.publish(context, head, signal);
    this.#published.set(runId, head.publication.digest);
    return outside.length === 0 ? () => {} : () => this.#publishBeside(context, head, signal);
  }

  /** Publishes the weights for workers that come when nobody has them in memory any more. */
  #publishBeside(context: RunContext, head: Head, signal: AbortSignal): void {
    const { runId } = context.log;
    this.publish(context, head, signal).catch((error: unknown) => {
      if (this.#published.get(runId) === head.publication.digest) this.#published.delete(runId);
      if (!signal.aborted) this.#ports.say(runId, 'debug', `weights not published: ${errorToJson(error).message}`);
    });
  }

  /** An update was committed: the workers that sample may get its weights from its trainer now. */
  committed(
    { log, inputs, iterations }: RunContext,
    iteration: number,
    profile: NumericProfile,
    policy: UpdateRecord['components'][string],
  ): void {
    if (iteration >= iterations) return;
    const { runId, store } = log;
    const { model } = inputs;
    const of = { runId, store: store.url, iteration, model, profile };
    const { weightsDigest: weights } = policy;
    this.#ports.dispatcher.announceWeights({ ...of, weights, ...publishedAs(publicationOf(policy)) });
  }

  /** Publishes the weights while the run has its trainer, so that its rollouts need none. */
  async beforeTurnEnds(context: RunContext, head: Head, signal: AbortSignal): Promise<void> {
    if (isModel(head)) return;
    await this.publish(context, head, signal);
    this.#published.set(context.log.runId, head.publication.digest);
  }

  /** Any trainer of the run can publish its weights. With `again`, an existing publication is replaced. */
  async publish(context: RunContext, head: Head, signal: AbortSignal, again = false): Promise<void> {
    const request = publication(this.#ports, context, head);
    const { jobId } = await this.#recompute.run(request, { signal });
    if (!again) return;
    const { digest } = head.publication;
    const because = `weights ${digest.slice(0, 12)} are damaged`;
    if (!this.#recompute.again(request, jobId, because))
      throw damage('DamagedBlob', keys.weights(context.log.runId, digest), because);
    await this.#recompute.run(request, { signal });
  }
}

/** Are its weights the model's, which every worker has? */
const isModel = ({ position, profile }: Head): boolean => position === 0 && beginsAsModel(profile);

function publication(
  ports: Pick<ActivityPorts, 'runStateOf'>,
  { log, inputs, recipe }: RunContext,
  head: Head,
): JobRequest<'weights'> {
  const { profile } = head;
  const part = trains(recipe);
  const state = stateOfPart(ports, head, part);
  return {
    stage: 'weights',
    runId: log.runId,
    at: { term: head.term, iteration: head.position },
    store: log.store,
    profile: queueOf(profile),
    needs: recipe.fleet.needs.trainer,
    input: {
      weights: head.weightsDigest,
      ...publishedAs(head.publication),
      state,
      model: inputs.model,
      profile,
      ...part,
    },
  };
}

/**
 * Given the reason why a rollout job waits, publishes the weights when a worker lacks them. Publishes them again when a
 * worker found them damaged, or still lacks them after the publication. A worker states its reason once, so a reason
 * that was stated before the publication stands until another worker has tried the job.
 */
export function publishWhenLacking(
  publish: (again: boolean) => Promise<void>,
  onFailure: (error: unknown) => void,
): (queued: string | undefined) => void {
  let state: 'new' | 'publishing' | 'published' | 'tried' = 'new';
  return (queued) => {
    const [, lack] = /^Weights(Missing|Damaged)/.exec(queued ?? '') ?? [];
    if (state === 'published' && lack === undefined) state = 'tried';
    if (lack === undefined || state === 'publishing' || state === 'published') return;
    const again = lack === 'Damaged' || state === 'tried';
    state = 'publishing';
    publish(again).then(() => void (state = 'published'), onFailure);
  };
}
