import { afterEach, expect, it } from 'vitest';
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import { keys } from '../../core/records/keys.ts';
import { logSubject } from '../../core/wire/messages.ts';
import { MemoryStore } from '../../tests/memory-store.ts';
import { LogCollector } from './run-log-lines.ts';

/** Lines as they come in, without a server. */
class Lines {
  #hear: (error: Error | null, message: Msg) => void = () => {};
  readonly nc: Pick<NatsConnection, 'subscribe'> = {
    subscribe: (_, options) => {
      this.#hear = (error, message) => void options?.callback?.(error, message);
      return { unsubscribe: () => {} } as ReturnType<NatsConnection['subscribe']>;
    },
  };

  say(runId: string, text: string): void {
    this.#hear(null, { subject: logSubject(runId), string: () => text } as Msg);
  }
}

let end = async (): Promise<void> => {};
afterEach(() => end());

it('stores the lines of a run in their order, however slow its store is, and keeps up no other run', async () => {
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
  const logs = new LogCollector(lines.nc, 'test', (runId) => (runId === 'slow' ? slow : quick));
  end = () => logs.close();
  lines.say('slow', 'one');
  lines.say('quick', 'other');
  const first = logs.flush();
  lines.say('slow', 'two');
  const second = logs.flush();
  expect(puts).toBe(1);
  while ((await quick.list(keys.logs('quick'))).length === 0) await new Promise((resolve) => setImmediate(resolve));
  release();
  await Promise.all([first, second]);
  await logs.close();
  const chunks = await Promise.all(
    (await slow.list(keys.logs('slow'))).map(async (key) => new TextDecoder().decode(await slow.get(key))),
  );
  expect(chunks).toEqual(['one\n', 'two\n']);
});
