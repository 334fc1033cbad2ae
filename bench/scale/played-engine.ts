/**
 * An engine that computes nothing: after a while it gives the outputs that a real run had, for any run of the same
 * recipe.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { keys } from '../../core/records/keys.ts';
import type { Digest, RunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import type { EngineFacts } from '../../core/wire/engine-facts.ts';
import type { JobMessage } from '../../core/wire/messages.ts';
import type { Engine } from '../../workers/engine/process/client.ts';
import { jobName } from './recording.ts';
import type { Recording } from './recording.ts';
import { seconds } from './settings.ts';

export interface PlayedPorts {
  readonly facts: readonly EngineFacts[];
  readonly store: Store;
  readonly recording: Recording;
  readonly random: () => number;
  readonly started: (message: JobMessage) => void;
  readonly ended: (message: JobMessage) => void;
}

const hexDigest = /^[0-9a-f]{64}$/;

export function playedEngine(ports: PlayedPorts): Engine {
  let ticks = 0;
  const pulse = setInterval(() => (ticks += 1), 100);
  pulse.unref();
  return {
    facts: ports.facts,
    serves: undefined,
    get ticks() {
      return ticks;
    },
    saveMs: 0,
    async run(message, _given, { signal }) {
      ports.started(message);
      try {
        const [least, most] = seconds[message.stage] ?? [0, 0];
        const taken = least + (most - least) * ports.random();
        await sleep(1000 * taken, undefined, { signal });
        return { output: await play(ports, message), seconds: taken, counts: {} };
      } finally {
        ports.ended(message);
      }
    },
    release() {},
    newWeights() {},
    journalLost() {},
    abandon() {},
    requeue() {},
    saveLast: async () => ({ text: 'nothing was computed' }),
    close: async () => clearInterval(pulse),
  };
}

/** The recorded output, with its blobs and manifests in the run that asks. */
export async function play(
  { store, recording }: Pick<PlayedPorts, 'store' | 'recording'>,
  message: JobMessage,
): Promise<Record<string, unknown>> {
  const output = recording.outputs[jobName(message)];
  if (output === undefined) throw new Error(`no job like ${jobName(message)} was recorded`);
  const [from, to] = [recording.runId as RunId, message.runId as RunId];
  const copy = async (key: string, own: string) => {
    const bytes = await store.get(key);
    if (bytes !== undefined) await store.put(own, bytes);
  };
  return (await mapTexts(output, async (text) => {
    if (hexDigest.test(text)) await copy(keys.blob(from, text as Digest), keys.blob(to, text as Digest));
    const own = text.replaceAll(from, to);
    if (own !== text) await copy(text, own);
    return own;
  })) as Record<string, unknown>;
}

async function mapTexts(value: unknown, map: (text: string) => Promise<string>): Promise<unknown> {
  if (typeof value === 'string') return map(value);
  if (Array.isArray(value)) return Promise.all(value.map((item) => mapTexts(item, map)));
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).map(async ([name, item]) => [name, await mapTexts(item, map)] as const);
  return Object.fromEntries(await Promise.all(entries));
}
