import { afterEach, expect, it } from 'vitest';
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import { keys } from '../../core/records/keys.ts';
import { logSubject } from '../../core/wire/messages.ts';
import { MemoryStore } from '../../tests/memory-store.ts';
import { LogCollector, parseLogLine } from './run-log-lines.ts';

const scorer = { instance: 'elsewhere', worker: 'scorer' };
const named = { writer: 'test', instance: 'here' };

/** A source of lines without a server. */
class Lines {
  #hear: (error: Error | null, message: Msg) => void = () => {};
  readonly nc: Pick<NatsConnection, 'subscribe'> = {
    subscribe: (_, options) => {
      this.#hear = (error, message) => void options?.callback?.(error, message);
      return { unsubscribe: () => {} } as ReturnType<NatsConnection['subscribe']>;
    },
  };

  say(runId: string, text: string, from = scorer): void {
    this.#hear(null, { subject: logSubject(runId, from), string: () => text } as Msg);
  }
}

let end = async (): Promise<void> => {};
afterEach(() => end());

it('stores the lines of a run in order, even in a slow store, and delays no other run', async () => {
  const [slow, quick] = [new MemoryStore(), new MemoryStore()];
  let [puts, release] = [0, () => {}];
  const held = new Promise<void>((resolve) => (release = resolve));
  const put = slow.put.bind(slow);
  slow.put = async (key, bytes) => {
    puts += 1;
    await held;
    await put(key, bytes);
  };
  const lines = new Lines();
  const logs = new LogCollector(lines.nc, named, (runId) => (runId === 'slow' ? slow : quick));
  end = () => logs.close();
  lines.say('slow', lineOf('one'));
  lines.say('quick', lineOf('other'));
  const first = logs.flush();
  lines.say('slow', lineOf('two'));
  const second = logs.flush();
  expect(puts).toBe(1);
  while ((await quick.list(keys.logs('quick'))).length === 0) await new Promise((resolve) => setImmediate(resolve));
  release();
  await Promise.all([first, second]);
  await logs.close();
  const chunks = await Promise.all(
    (await slow.list(keys.logs('slow'))).map(async (key) => new TextDecoder().decode(await slow.get(key))),
  );
  expect(chunks.map((chunk) => parseLogLine(chunk))).toMatchObject([
    { text: 'one', source: 'elsewhere/scorer' },
    { text: 'two', source: 'elsewhere/scorer' },
  ]);
});

/** A line that claims to come from another process. */
const lineOf = (text: string) => JSON.stringify({ v: 1, at: 'now', level: 'info', source: 'control', text });

it('cuts a long line visibly, and drops a long message that is not a line', async () => {
  const [store, lines] = [new MemoryStore(), new Lines()];
  const logs = new LogCollector(lines.nc, named, () => store);
  end = () => logs.close();
  lines.say('run', lineOf('é'.repeat(1_000_000)));
  lines.say('run', 'x'.repeat(8_000_000));
  lines.say('run', lineOf('short'));
  await logs.close();
  const stored = (await textsOf(store, 'run')).join('').trim().split('\n');
  expect(stored.map((line) => parseLogLine(line)?.text)).toEqual([`${'é'.repeat(4096)} … cut`, 'short']);
});

it('stores what became of a worker only where the control process says it', async () => {
  const [store, lines] = [new MemoryStore(), new Lines()];
  const logs = new LogCollector(lines.nc, named, () => store);
  end = () => logs.close();
  const event = { type: 'lost', instance: 'i-1', worker: 'w1', incarnation: 'a', roles: ['rollout'] };
  const text = JSON.stringify({ v: 1, at: 'now', level: 'warn', text: 'lost: worker i-1/w1', event });
  lines.say('run', text);
  lines.say('run', text, { instance: 'elsewhere', worker: 'control' });
  lines.say('run', text, { instance: 'here', worker: 'control' });
  await logs.close();
  const stored = (await textsOf(store, 'run')).join('').trim().split('\n').map(parseLogLine);
  expect(stored.map((line) => line?.text)).toEqual(Array(3).fill('lost: worker i-1/w1'));
  expect(stored.map((line) => line?.event)).toEqual([undefined, undefined, event]);
});

it('keeps a bounded number of bytes for runs whose store does not answer, with the newest lines of each', async () => {
  const [store, lines] = [new MemoryStore(), new Lines()];
  let isThere = false;
  const logs = new LogCollector(lines.nc, named, () => (isThere ? store : undefined));
  end = () => logs.close();
  for (let i = 0; i < 5_000; i++) for (const run of ['a', 'b']) lines.say(run, lineOf(`${i} ${'x'.repeat(7_000)}`));
  isThere = true;
  await logs.close();
  const texts = [await textsOf(store, 'a'), await textsOf(store, 'b')].map((chunks) => chunks.join(''));
  const bytes = texts.reduce((sum, text) => sum + text.length, 0);
  expect([bytes > 30 * 1024 * 1024, bytes < 33 * 1024 * 1024]).toEqual([true, true]);
  for (const text of texts) expect(text).toContain('"4999 x');
});

async function textsOf(store: MemoryStore, runId: string): Promise<string[]> {
  const chunks = await store.list(keys.logs(runId));
  return Promise.all(chunks.map(async (key) => new TextDecoder().decode(await store.get(key))));
}
