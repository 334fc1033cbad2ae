import { describe, expect, it } from 'vitest';
import type { ScorerHost } from '../../rewards/host/scorer-host.ts';
import { KeptHosts } from './kept-hosts.ts';

/** A host that notes its end. */
function hostOf(name: string, closed: string[]): ScorerHost {
  return { ready: async () => {}, score: async () => [], close: async () => void closed.push(name) };
}

const name = async (host: ScorerHost) => host;

describe('the scorers that a worker keeps', () => {
  it('are shared by the jobs of a run, and end with the run', async () => {
    const [hosts, closed] = [new KeptHosts(), [] as string[]];
    let starts = 0;
    const start = async () => hostOf(`host ${++starts}`, closed);
    await Promise.all([hosts.use('a', 'run-1', start, name), hosts.use('a', 'run-1', start, name)]);
    expect(starts).toBe(1);
    await hosts.endRun('run-1');
    expect(closed).toEqual(['host 1']);
    expect(hosts.count).toBe(0);
  });

  it('are closed when four others were used since, but not while a job uses them', async () => {
    const [hosts, closed] = [new KeptHosts(), [] as string[]];
    const use = (id: string) => hosts.use(id, id, async () => hostOf(id, closed), name);
    let end = () => {};
    const busy = hosts.use(
      'busy',
      'busy',
      async () => hostOf('busy', closed),
      () => new Promise<void>((resolve) => (end = resolve)),
    );
    for (const id of ['a', 'b', 'c', 'd', 'e']) await use(id);
    expect(closed).toEqual(['a']);
    end();
    await busy;
    expect(closed).toEqual(['a', 'busy']);
  });

  it('end with a run that ended while its first one was starting, began again, and saw the first one fail', async () => {
    const [hosts, closed] = [new KeptHosts(), [] as string[]];
    let fail = (_: Error) => {};
    const failing = hosts.use('a', 'run-1', () => new Promise((_, reject) => (fail = reject)), name);
    const refused = expect(failing).rejects.toThrow('no secret');
    const ended = hosts.endRun('run-1');
    await hosts.use('a', 'run-1', async () => hostOf('second', closed), name);
    fail(new Error('no secret'));
    await refused;
    await ended;
    await hosts.endRun('run-1');
    expect(closed).toEqual(['second']);
  });
});
