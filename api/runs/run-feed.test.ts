/** The feed of a run for programs, with the local stack down: all of it comes from the package's own index. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cliHome } from '../../tests/cli.ts';
import { buildRun } from '../../tests/run-builder.ts';
import type { BuiltRun } from '../../tests/run-builder.ts';
import { feedStart, feedWhole, followFeed, openStack } from '../index.ts';
import type { FeedPlace, Run, TakenNews } from '../index.ts';

const cli = cliHome();
let built: BuiltRun;
let run: Run;
beforeAll(async () => {
  built = await buildRun(await cli.store(), {
    name: 'a',
    done: 6,
    iterations: 6,
    evaluations: [0, 3, 6],
    status: { state: 'completed' },
  });
  run = await openStack({ home: cli.home }).run('a');
});
afterAll(() => cli.remove());

/** What a reader takes until the run has ended. */
async function read(from?: FeedPlace) {
  const taken: TakenNews[] = [];
  const { signal } = new AbortController();
  const place = await run.feed({ ...(from && { from }), signal, take: (news) => taken.push(news) });
  return {
    place,
    iterations: taken.flatMap(({ iterations }) => iterations.map(({ iteration }) => iteration)),
    validations: taken.flatMap(({ validations }) => validations.map(({ iteration }) => iteration)),
    states: taken.flatMap(({ status }) => status?.state ?? []),
  };
}

describe('the feed of a run', () => {
  it('has every iteration and validation once, in order, and ends with the run', async () => {
    const { place, ...whole } = await read(feedWhole);
    expect(whole).toEqual({ iterations: [1, 2, 3, 4, 5, 6], validations: [0, 3, 6], states: ['completed'] });
    expect(place).toMatchObject({ term: 1, iteration: 6, validated: 6 });
    expect((await read()).iterations).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('goes on from a place that another process has sent', async () => {
    const sent = JSON.stringify({ status: 0, term: 1, iteration: 3, validated: 0 });
    const { iterations, validations } = await read(JSON.parse(sent) as FeedPlace);
    expect({ iterations, validations }).toEqual({ iterations: [4, 5, 6], validations: [3, 6] });
  });

  it('gives a reader that knows nothing as many of the newest iterations as it asks for', async () => {
    const newest: number[] = [];
    await followFeed(built.log, cli, {
      from: feedStart,
      most: 2,
      signal: new AbortController().signal,
      take: ({ iterations }) => newest.push(...iterations.map(({ iteration }) => iteration)),
    });
    expect(newest).toEqual([5, 6]);
  });

  it('waits after the end of a run for what its resumption brings, until the reader leaves', async () => {
    const { place } = await read(feedWhole);
    const leave = new AbortController();
    const stack: string[] = [];
    const reading = run.feed({
      from: place,
      signal: leave.signal,
      take: ({ iterations }) => expect(iterations).toEqual([]),
      stackIs: (state) => {
        stack.push(state);
        leave.abort();
      },
    });
    expect(await reading).toEqual(place);
    expect(stack).toEqual(['down']);
  });
});
