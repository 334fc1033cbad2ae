// @module-tag long
import { jetstreamManager } from '@nats-io/jetstream';
import { beforeAll, describe, expect, it } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import type { RolloutOutput } from '../../core/wire/jobs/index.ts';
import { journalMessage, journalStream } from '../../core/wire/journal.ts';
import type { JournalMessage } from '../../core/wire/journal.ts';
import { identityText } from '../../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../../core/wire/worker-identity.ts';
import { connectNats } from '../../infra/nats/connection.ts';
import { Journal } from '../../infra/nats/journal/journal.ts';
import { readEntries } from '../../infra/nats/journal/journal-entries.ts';
import { getBlob } from '../../log/objects/blobs.ts';
import { claimKeyOf } from '../../log/objects/claim-key.ts';
import { needRecord } from '../../log/objects/records.ts';
import { claimSecret } from '../../log/objects/result-proof.ts';
import { decodeTrajectories } from '../../models/trajectories.ts';
import { JournalWriter } from '../../workers/engine/rollout/journal-writer.ts';
import { decodeTokens } from '../../workers/engine/generation/lineage.ts';
import type { TokenRun } from '../../workers/engine/generation/lineage.ts';
import type { Standing } from '../inject.ts';
import { separatePools } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { longRecipe, makeLongModel } from '../long-model.ts';
import { kill } from '../stack-under-test.ts';
import { patienceMs } from '../patience.ts';
import { loopWithFaults } from '../loop-with-faults.ts';

/** A worker that has claimed the job and writes what is wrong. */
const forger: WorkerIdentity = { instance: 'elsewhere', worker: 'forger', incarnation: 'forger' };
/** The position in a response at which the workers are killed: far above 100 tokens, far below 512. */
const killedAt = 200;

const { loop, injector: inject } = loopWithFaults();
let model: string;
let undisturbed: Rollouts;

interface Rollouts {
  readonly trajectories: readonly string[];
  readonly states: readonly string[];
  /** Draws and lengths of the responses of each job. */
  readonly jobs: readonly { readonly draws: readonly number[]; readonly lengths: readonly number[] }[];
  readonly resumedSamples: number;
  readonly resumedTokens: number;
  readonly decodedTokens: number;
  /** Speed of the fastest job. */
  readonly tokensPerSecond: number;
}

beforeAll(async () => {
  await loop.up(separatePools);
  model = await makeLongModel(loop.home);
  const run = await loop.start(longRecipe(model));
  await loop.reaches(run, 'completed');
  undisturbed = await rolloutsOf(run);
});

async function rolloutsOf(run: StartedRun): Promise<Rollouts> {
  const [first] = await loop.iterations(run);
  const ids = (first?.batch.results ?? []).filter((id) => id.startsWith('rollout'));
  const results = await Promise.all(
    ids.map(async (id) => (await needRecord(loop.store, keys.result(run.runId, id), resultRecord)).record),
  );
  const trajectories = results.map(({ output }) => (output as unknown as RolloutOutput).trajectories);
  const decoded = await Promise.all(
    trajectories.map(async (digest) => decodeTrajectories(await getBlob(loop.store, run.runId, digest), digest)),
  );
  const figure = (name: string) => results.map(({ timings }) => Number(timings[name]));
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  return {
    trajectories,
    states: await loop.states(run),
    jobs: decoded.map(({ draw_S, responseOffsets_S1: offsets }) => ({
      draws: [...draw_S],
      lengths: [...offsets.subarray(1)].map((end, b) => end - (offsets[b] ?? 0)),
    })),
    resumedSamples: sum(figure('rollout/resumed_samples')),
    resumedTokens: sum(figure('rollout/resumed_tokens')),
    decodedTokens: sum(figure('rollout/decoded_tokens')),
    tokensPerSecond: Math.max(
      ...figure('rollout/decoded_tokens').map((tokens, i) => tokens / (figure('timing_s/rollout')[i] ?? 0)),
    ),
  };
}

function stands(id: string): Promise<Standing> {
  return inject.stands(id, AbortSignal.timeout(patienceMs));
}

/** The journal entries of this draw's job. */
async function journalOf(runId: string, draw: unknown): Promise<JournalMessage[]> {
  const { state } = await (await jetstreamManager(loop.nc)).streams.info(journalStream, {
    subjects_filter: `journal.${runId}.>`,
  });
  const { direct } = await jetstreamManager(loop.nc);
  const key = await claimKeyOf(loop.store, 'test');
  for (const jobId of new Set(Object.keys(state.subjects ?? {}).map((subject) => subject.split('.')[2] ?? ''))) {
    const secretOf = (claimant: WorkerIdentity) => claimSecret(key, runId, jobId, identityText(claimant));
    const { entries } = await readEntries(direct, { runId, jobId, secretOf }, 1);
    const messages = entries.map((text) => journalMessage.parse(JSON.parse(text)));
    if (messages[0]?.segments.some((segment) => segment.draw === draw)) return messages;
  }
  throw new Error(`nothing is written of draw ${String(draw)}`);
}

describe('with responses of 512 tokens', () => {
  it.each(['sample-1', 'sample-2'])(
    '%s is killed: other workers continue its samples, and decode at most a second of them again',
    async (victim) => {
      inject.arm({
        id: victim,
        point: 'sample.token',
        process: victim,
        facts: { position: killedAt },
        action: 'stand',
      });
      const run = await loop.start(longRecipe(model));
      const draw = (await stands(victim)).facts['draw'];
      await kill(loop.process(victim));
      await loop.reaches(run, 'completed');
      const rollouts = await rolloutsOf(run);
      const inFlight = rollouts.jobs.find((job) => job.draws.includes(Number(draw)))?.lengths ?? [];
      const decodedByTheKilled = inFlight.reduce((sum, length) => sum + Math.min(length, killedAt), 0);
      const twice = decodedByTheKilled - rollouts.resumedTokens;
      console.log(
        `resumed ${rollouts.resumedSamples} of ${inFlight.length} samples, ${rollouts.resumedTokens} tokens; decoded twice ${twice} tokens, ${(twice / rollouts.tokensPerSecond).toFixed(2)} s`,
      );
      expect(rollouts.resumedSamples).toBeGreaterThanOrEqual(0.8 * inFlight.length);
      expect(twice).toBeLessThanOrEqual(rollouts.tokensPerSecond);
      expect(rollouts.resumedTokens + rollouts.decodedTokens).toBe(
        rollouts.jobs.flatMap(({ lengths }) => lengths).reduce((sum, length) => sum + length, 0),
      );
      expect([rollouts.trajectories, rollouts.states]).toEqual([undisturbed.trajectories, undisturbed.states]);
      expect(await loop.said(run, /resumed 8 of 8 samples, \d+ tokens from the journal$/)).toHaveLength(1);
    },
  );

  it('a damaged or forked journal is rejected', async () => {
    inject.arm({
      id: 'forged',
      point: 'sample.token',
      process: 'sample-1',
      facts: { position: killedAt },
      action: 'stand',
    });
    const run = await loop.start(longRecipe(model));
    const [first] = await journalOf(run.runId, (await stands('forged')).facts['draw']);
    if (first === undefined) throw new Error('a job with no entries was found');
    const { jobId } = first;
    const forgeries = [
      forked(first),
      bitFlipped(first),
      { ...first, arithmetic: 'another' },
      { ...first, segments: first.segments.map((segment) => ({ ...segment, offset: 400 })) },
    ];
    const { runId } = run;
    const secret = claimSecret(await claimKeyOf(loop.store, 'test'), runId, jobId, identityText(forger));
    const nc = await connectNats(loop.supervisor(), identityText(forger));
    const journal = new Journal(nc, forger, { lost: () => {} });
    await journal.opened();
    for (const text of [...forgeries.map((forgery) => JSON.stringify(forgery)), 'no journal at all'])
      journal.publish({ runId, jobId, secret }, text, 1);
    await journal.settled();
    await nc.close();
    await kill(loop.process('sample-1'));
    await loop.reaches(run, 'completed');
    const rollouts = await rolloutsOf(run);
    expect([rollouts.trajectories, rollouts.states]).toEqual([undisturbed.trajectories, undisturbed.states]);
    // One sample differed from its first token on, so only this one is generated again from its start.
    expect(await loop.said(run, /resumed 7 of 8 samples/)).toHaveLength(1);
    expect(
      await loop.said(
        run,
        /journal entries rejected: (?=.*1 unreadable)(?=.*1 of other arithmetic)(?=.*1 damaged)(?=.*1 forked)(?=.*8 without what comes before)/,
      ),
    ).toHaveLength(1);
  });
});

/** Other tokens for the first sample, in a valid form. */
function forked({ runId, jobId, weights, arithmetic, segments }: JournalMessage): JournalMessage {
  const [segment] = segments;
  if (segment === undefined) throw new Error('the first message has segments');
  const run: TokenRun = decodeTokens(Buffer.from(segment.tokens, 'base64'));
  run.tokens[0] = ((run.tokens[0] ?? 0) + 7) % 2000;
  const texts: string[] = [];
  const writer = new JournalWriter(
    { runId, jobId, weights, arithmetic },
    { incarnation: 'forger', tickMs: 0, now: () => 0, publish: (text) => texts.push(text) },
  );
  writer.begin([{ run, draw: segment.draw, sample: segment.sample }]);
  writer.startOver();
  writer.flush();
  return journalMessage.parse(JSON.parse(texts[0] ?? ''));
}

/** Flips the lowest bit of a log-prob of the second sample. */
function bitFlipped(message: JournalMessage): JournalMessage {
  const [, segment] = message.segments;
  if (segment === undefined) throw new Error('the first message has segments');
  const bytes = Buffer.from(segment.tokens, 'base64');
  bytes[4] = (bytes[4] ?? 0) ^ 1;
  return { ...message, segments: [{ ...segment, tokens: bytes.toString('base64') }] };
}
