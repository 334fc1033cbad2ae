/**
 * What the journal of partial samples costs: tokens per second of long responses with and without it, in turns. Here
 * the decoding thread publishes; in a worker the main thread does.
 */
import { jetstreamManager } from '@nats-io/jetstream';
import { identityText } from '../../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../../core/wire/worker-identity.ts';
import { instanceName } from '../../infra/stack/identity.ts';
import { asWorker, ensureStack } from '../../infra/stack/index.ts';
import { connectNats } from '../../infra/nats/connection.ts';
import { Journal } from '../../infra/nats/journal/journal.ts';
import { purgeJournal } from '../../infra/nats/journal/journal-entries.ts';
import { timings } from '../../core/wire/messages.ts';
import { at } from '../../core/at.ts';
import { Generation } from '../../workers/engine/generation/generation.ts';
import type { GenerationSettings, Watcher } from '../../workers/engine/generation/generation.ts';
import { JournalWriter } from '../../workers/engine/rollout/journal-writer.ts';
import { generatorWith } from '../../workers/engine/engines/native/index.ts';
import { NativePolicy } from '../../workers/engine/engines/native/policy.ts';
import { NativeSampler } from '../../workers/engine/engines/native/sampler.ts';
import type { BenchSettings, Measurement, Session, Values } from '../measurement.ts';
import { openModel, randomTokens } from '../model.ts';
import { privateHome } from '../run/private-home.ts';
import { sizeOf } from '../sizes.ts';

const samples = 64;
const responseTokens = 448;
const [withIt, without] = ['journal.S.on', 'journal.S.off'] as const;

export const journalCost: Measurement = {
  name: 'journal',
  rows: [
    { name: withIt, unit: 'tokens/s' },
    { name: without, unit: 'tokens/s' },
  ],
  turns: 5,
  compare: { [withIt]: without },
  open,
};

async function open(settings: BenchSettings): Promise<Session> {
  const { home, remove } = privateHome();
  const stack = await ensureStack({ home, workers: [] });
  const identity: WorkerIdentity = { instance: instanceName(home), worker: 'bench', incarnation: 'bench' };
  const [nc, control] = await Promise.all([
    connectNats(asWorker(stack, identity.instance), identityText(identity)),
    connectNats(stack, 'bench'),
  ]);
  const size = sizeOf('S', settings.quick);
  const length = settings.quick ? 32 : responseTokens;
  const trainer = openModel(size, settings, false);
  const room = { maxSeqs: samples, maxModelLen: size.prompt + length };
  const sampler = new NativeSampler(new NativePolicy(trainer), generatorWith);
  await sampler.makeRoom(room);
  const generation = new Generation(Promise.resolve(sampler));
  const journal = new Journal(nc, identity, { lost: () => {} });
  await journal.opened();
  const jsm = await jetstreamManager(control);
  let draw = 0;
  let onFirst = false;

  /** The seconds of one job. */
  async function job(journalled: boolean): Promise<number> {
    draw += samples;
    const draws = Array.from({ length: samples }, (_, i) => draw + i);
    const ofJob = { runId: 'bench', jobId: `rollout-${draw}`, weights: 'bench', arithmetic: 'bench' };
    const publish = (text: string, tokens: number) => journal.publish({ ...ofJob, secret: '00' }, text, tokens);
    const writer = new JournalWriter(ofJob, {
      incarnation: 'bench',
      tickMs: timings.loopback.journalMs,
      now: () => performance.now(),
      publish,
    });
    const generated: GenerationSettings = {
      runId: ofJob.runId,
      sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
      maxNewTokens: length,
      stopTokens: new Int32Array(0),
      seed: [1, 2],
    };
    const watcher: Watcher = { onTokens: (count) => journalled && writer.tick(count) };
    const started = performance.now();
    const begun = draws.map((number, i) => {
      const prompt = randomTokens(size.prompt, size.shape.vocab_size, 1 + i);
      return generation.sample({ prompt, draw: number, sample: 0, turn: 0, settings: generated }, watcher);
    });
    if (journalled) writer.begin(begun.map(({ completion: run }, i) => ({ run, draw: at(draws, i), sample: 0 })));
    await Promise.all(begun.map(({ ended }) => ended));
    const seconds = (performance.now() - started) / 1000;
    await journal.settled();
    await purgeJournal(jsm, ofJob.runId, ofJob.jobId);
    return seconds;
  }

  await job(true);
  return {
    about: `${samples} samples of ${length} tokens, a tick every ${timings.loopback.journalMs} ms`,
    async turn(): Promise<Values> {
      const tokens = samples * length;
      // The two cases alternate in who goes first, so that none always has the warmer machine.
      onFirst = !onFirst;
      const first = await job(onFirst);
      const second = await job(!onFirst);
      return { [withIt]: tokens / (onFirst ? first : second), [without]: tokens / (onFirst ? second : first) };
    },
    async close() {
      await generation.close();
      trainer.close();
      await Promise.all([nc.close(), control.close()]);
      await remove();
    },
  };
}
