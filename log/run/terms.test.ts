/** Terms in a folder store: every reader on logs of several terms, and random interleavings of all writers. */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { makeRunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { exampleLoss, exampleOptimizer, exampleProfile } from '../../core/records/examples.test-support.ts';
import { actorOf } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import {
  batchDecision,
  batchRecord,
  recordFormat,
  termRecord,
  updateDecision,
  updateRecord,
} from '../../core/records/schema.ts';
import type { BatchRecord, Counters, UpdateRecord } from '../../core/records/schema.ts';
import { cursorAfter, drawsPast } from '../../core/rl/draws.ts';
import { digestOf } from '../objects/digest.ts';
import { openFolderStore } from '../../infra/store/folder.ts';
import { decide, readRecord } from '../objects/records.ts';
import { RunLog } from './run-log.ts';
import type { Head } from './run-log.ts';
import { skipPendingBatch } from './skip.ts';
import { openNextTerm } from './terms.ts';
import type { WantedTerm } from './terms.ts';
import { quickFolder } from '../../tests/quick-folder.ts';

const folder = mkdtempSync(join(quickFolder(), 'petrel-terms-'));
afterAll(() => rmSync(folder, { recursive: true }));
let runs = 0;

const batchSize = 2;
const stream = { rows: 5, seed: 1, shuffle: true };
const writer = { process: 'test', at: '2026-01-02T03:04:05.000Z' };
const zero: Counters = { cursor: 0, optimizerSteps: {}, badSteps: 0, controllers: { klCoef: 0 } };
async function freshStore(): Promise<Store> {
  return openFolderStore(join(folder, String(runs++)));
}

/** A log with its first term, owned by `a`. */
async function freshLog(store?: Store): Promise<RunLog> {
  const runId = makeRunId('toy', new Date(writer.at), '0001');
  const log = new RunLog(store ?? (await freshStore()), runId);
  const state = digestOf('base');
  await decide(
    log.store,
    keys.term(runId, 1),
    termRecord,
    {
      format: recordFormat,
      runId,
      term: 1,
      startState: state,
      components: { actor: { stateDigest: state, weightsDigest: state, profile: exampleProfile } },
      revision: 1,
      owner: 'a',
      reason: 'start',
      skippedDraws: [],
      writer,
    },
    () => true,
  );
  return log;
}

async function headOf(log: RunLog): Promise<Head> {
  const head = await log.head();
  if (head === undefined) throw new Error('it has a term');
  return head;
}

/** The next commit of a control process after this head; `mark` makes its batch differ from all others. */
async function commitBatch(log: RunLog, head: Head, mark: string): Promise<void> {
  const { runId } = log;
  const draws = drawsPast(stream, head.counters.cursor, batchSize, head.termRecord.skippedDraws);
  const record: BatchRecord = {
    format: recordFormat,
    runId,
    term: head.term,
    iteration: head.position + 1,
    parent: head.parent,
    parentState: head.stateDigest,
    revision: head.termRecord.revision,
    tensors: digestOf(mark),
    oldLogProbs: 'on-policy',
    components: {
      actor: {
        profile: exampleProfile.id,
        learningRates: [1],
        loss: exampleLoss,
        optimizer: exampleOptimizer,
      },
    },
    results: [],
    draws: draws.map(({ draw, row }) => ({ draw, row, fate: 'trained', samples: [] })),
    before: head.counters,
    after: {
      ...head.counters,
      cursor: cursorAfter(head.counters.cursor, draws),
      optimizerSteps: { actor: (head.counters.optimizerSteps['actor'] ?? 0) + 1 },
    },
    metrics: {},
    timings: {},
    decision: 'train',
    writer,
  };
  const decided = await decide(
    log.store,
    keys.batch(runId, head.term, record.iteration),
    batchRecord,
    record,
    (other) => other.parent === record.parent,
  );
  log.appended(decided.adopted ? undefined : decided);
}

const roundedOf = (state: string) => digestOf(['rounded', state]);

async function commitUpdate(log: RunLog, head: Head): Promise<void> {
  const pending = head.pending;
  if (pending === undefined) throw new Error('no batch waits');
  const state = digestOf([head.stateDigest, pending.record.tensors]);
  const record: UpdateRecord = {
    format: recordFormat,
    runId: log.runId,
    term: head.term,
    iteration: head.position + 1,
    batch: pending.digest,
    parentState: head.stateDigest,
    outcome: 'applied',
    stateDigest: state,
    components: {
      actor: { stateDigest: state, weightsDigest: state, steps: [], publications: { BF16: roundedOf(state) } },
    },
    after: pending.record.after,
    metrics: {},
    timings: {},
    writer,
  };
  const decided = await decide(
    log.store,
    keys.update(log.runId, head.term, record.iteration),
    updateRecord,
    record,
    (other) => other.batch === record.batch,
  );
  log.appended(decided.adopted ? undefined : decided);
}

const append = (log: RunLog, head: Head, mark: string) =>
  head.pending === undefined ? commitBatch(log, head, mark) : commitUpdate(log, head);

/** Commits whole iterations. */
async function iterate(log: RunLog, count: number, mark = 'a'): Promise<void> {
  for (let i = 0; i < 2 * count; i++) await append(log, await headOf(log), mark);
}

function wanted(after: number, more: Partial<WantedTerm> = {}): WantedTerm {
  return { after, skipDraws: false, owner: 'a', reason: 'redo', writer, ...more };
}

/** Walks the log from its first term to its end; fails when a record's parent is not the record before it. */
async function expectOneChain(log: RunLog): Promise<void> {
  const chain = await log.chain();
  expect(chain[0]?.record.lineage ?? []).toEqual(
    chain.slice(1).map(({ record }) => [record.term, record.parent?.position ?? 0, record.revision]),
  );
  const terms = chain.reverse();
  const head = await headOf(log);
  let before = { digest: terms[0]!.digest, state: terms[0]!.record.startState, counters: zero, position: 0 };
  for (const [i, term] of terms.entries()) {
    if (i > 0) {
      expect(term.record.parent).toEqual({
        term: term.record.parent!.term,
        position: before.position,
        record: before.digest,
      });
      expect(term.record.startState).toBe(before.state);
      before = { ...before, digest: term.digest };
    }
    const until = terms[i + 1]?.record.parent?.position ?? head.position;
    for (let k = before.position + 1; k <= until; k++) {
      const { batch, update } = await log.iteration(k);
      expect([batch.record.term, batch.record.parent, batch.record.parentState, batch.record.before]).toEqual([
        term.record.term,
        before.digest,
        before.state,
        before.counters,
      ]);
      expect([update.record.batch, update.record.parentState]).toEqual([batch.digest, before.state]);
      expect((await log.at(k - 1)).parent).toBe(batch.record.parent);
      before = { digest: update.digest, state: update.record.stateDigest, counters: update.record.after, position: k };
    }
    // The parent of a later term is the record that made the state, not an abandoned term that started there.
    if (terms[i + 1] !== undefined && until === 0) before = { ...before, digest: terms[0]!.digest };
  }
  expect(await log.at(head.position)).toMatchObject({
    position: head.position,
    stateDigest: before.state,
    counters: before.counters,
  });
}

/** Every draw below the cursor is in exactly one reachable batch, or skipped by a reachable term. */
async function expectOneOutcomeEach(log: RunLog): Promise<void> {
  const outcomes = new Map<number, number>();
  const count = (draw: number) => outcomes.set(draw, (outcomes.get(draw) ?? 0) + 1);
  for await (const { batch } of log.iterations()) batch.record.draws.forEach(({ draw }) => count(draw));
  const { cursor } = (await headOf(log)).counters;
  const skipped = (await log.chain()).flatMap(({ record }) => record.skippedDraws);
  for (let draw = 0; draw < cursor; draw++) {
    const isSkipped = skipped.some(([start, end]) => start <= draw && draw < end);
    expect([draw, (outcomes.get(draw) ?? 0) + (isSkipped ? 1 : 0)]).toEqual([draw, 1]);
  }
}

describe('a term after the first', () => {
  it('continues from an earlier position and abandons the later ones', async () => {
    const log = await freshLog();
    await iterate(log, 4);
    const abandoned = (await log.iteration(3)).update.digest;
    const term = await openNextTerm(log, wanted(1, { position: 2 }));
    expect(term.record).toMatchObject({ term: 2, parent: { term: 1, position: 2 }, skippedDraws: [], owner: 'a' });
    expect(await log.head()).toMatchObject({
      term: 2,
      position: 2,
      pending: undefined,
      seal: undefined,
      counters: { cursor: 4 },
    });
    expect((await log.iteration(2)).update.record.term).toBe(1);
    await iterate(log, 2);
    expect((await log.iteration(3)).update.digest).not.toBe(abandoned);
    expect((await log.iteration(3)).update.record.stateDigest).toBe(
      (await readRecord(log.store, keys.update(log.runId, 1, 3), updateRecord))?.record.stateDigest,
    );
    await expectOneChain(log);
    await expectOneOutcomeEach(log);
  });

  it('can start at position 0, and at the position where another term starts', async () => {
    const log = await freshLog();
    await openNextTerm(log, wanted(1));
    await openNextTerm(log, wanted(2));
    expect((await log.chain()).map(({ record }) => [record.term, record.parent?.position])).toEqual([
      [3, 0],
      [1, undefined],
    ]);
    await iterate(log, 1);
    await openNextTerm(log, wanted(3, { position: 0 }));
    expect(await log.head()).toMatchObject({ term: 4, position: 0, counters: zero });
    await iterate(log, 2);
    await expectOneChain(log);
  });

  it('can start before the start of its predecessor, which then leaves the chain', async () => {
    const log = await freshLog();
    await iterate(log, 5);
    await openNextTerm(log, wanted(1, { position: 3 }));
    await iterate(log, 2);
    await openNextTerm(log, wanted(2, { position: 2 }));
    await iterate(log, 1);
    expect((await log.chain()).map(({ record }) => record.term)).toEqual([3, 1]);
    await openNextTerm(log, wanted(3, { position: 3 }));
    await openNextTerm(log, wanted(4, { position: 3, reason: 'again' }));
    await iterate(log, 2);
    expect(
      (await log.chain()).map(({ record }) => [record.term, record.parent?.term, record.parent?.position]),
    ).toEqual([
      [5, 3, 3],
      [3, 1, 2],
      [1, undefined, undefined],
    ]);
    await expectOneChain(log);
    await expectOneOutcomeEach(log);
  });

  it('closes the old one at the update when a batch waits, and abandons that batch', async () => {
    const log = await freshLog();
    await iterate(log, 1);
    const stale = await headOf(log);
    await commitBatch(log, stale, 'a');
    const zombie = await headOf(log);
    await openNextTerm(log, wanted(1, { owner: 'b', reason: 'taken over' }));
    await expect(commitUpdate(log, zombie)).rejects.toMatchObject({
      code: 'Fenced',
      message: expect.stringContaining('b closed term 1 (taken over)'),
    });
    expect(await log.head()).toMatchObject({ term: 2, position: 1, pending: undefined, counters: { cursor: 2 } });
    await iterate(log, 1, 'b');
    await expectOneChain(log);
  });

  it('begins with the state of a standby, and so does every later term at that position', async () => {
    const log = await freshLog();
    await iterate(log, 3);
    const ofLog = (await headOf(log)).stateDigest;
    await commitBatch(log, await headOf(log), 'a');
    const state = digestOf('of the standby');
    const standby = {
      result: 'update-1',
      stateDigest: state,
      components: { actor: { stateDigest: state, weightsDigest: state } },
    };
    const engine = { profile: exampleProfile, from: 3 };
    const begun = await openNextTerm(log, wanted(1, { engine, standby, reason: 'standby' }));
    expect(begun.record).toMatchObject({
      startState: state,
      components: { actor: { stateDigest: state, weightsDigest: state } },
      parent: { term: 1, position: 3, record: (await log.iteration(3)).update.digest },
      adopts: { term: 1, until: 4 },
      standby: { result: 'update-1' },
    });
    expect(await log.at(3)).toMatchObject({ term: 2, stateDigest: state, counters: { cursor: 6 } });
    expect(await log.at(2)).toMatchObject({ position: 2 });
    expect((await log.at(3)).stateDigest).not.toBe(ofLog);
    await iterate(log, 2);
    for (const after of [2, 3]) {
      const redone = await openNextTerm(log, wanted(after, { position: 3, reason: `redo ${after}` }));
      expect(redone.record).toMatchObject({ startState: state, standby: { result: 'update-1' }, parent: { term: 1 } });
      await iterate(log, 1);
    }
    const earlier = await openNextTerm(log, wanted(4, { position: 2, reason: 'redo' }));
    expect(earlier.record.standby).toBeUndefined();
    await iterate(log, 1);
    const next = await openNextTerm(log, wanted(5));
    expect(next.record.standby).toBeUndefined();
    await expectOneChain(log);
  });

  it('begins with fp32 weights, whatever its predecessor published, and a skipped batch keeps the publication', async () => {
    const log = await freshLog();
    expect((await headOf(log)).publication).toEqual({ format: 'F32', digest: digestOf('base') });
    await iterate(log, 2);
    const before = await headOf(log);
    const published = { format: 'BF16', digest: roundedOf(before.stateDigest) };
    expect(before.publication).toEqual(published);
    await commitBatch(log, before, 'skipped');
    const { components } = await skipPendingBatch(log, 'a user wants so', writer);
    expect(actorOf(components).publications).toEqual({ BF16: published.digest });
    expect((await headOf(log)).publication).toEqual(published);
    await openNextTerm(log, wanted(1));
    expect((await headOf(log)).publication).toEqual({ format: 'F32', digest: before.stateDigest });
  });

  it('is noticed by a process that begins where it has left the log itself', async () => {
    const log = await freshLog();
    expect(await log.ownHead()).toBe(undefined);
    await iterate(log, 2);
    const own = await log.ownHead();
    expect(own).toEqual({ ...(await headOf(log)), isOwn: true });
    await append(log, own as Head, 'b');
    expect(await log.ownHead()).toEqual({ ...(await headOf(log)), isOwn: true });
    expect(await log.hasTerm(1)).toBe(true);
    const { record } = await openNextTerm(new RunLog(log.store, log.runId), wanted(1, { owner: 'b' }));
    // Its own head is the old one until it looks; what it appends there is refused.
    await expect(append(log, (await log.ownHead()) as Head, 'b')).rejects.toMatchObject({ code: 'Fenced' });
    expect(await log.hasTerm(1)).toBe(false);
    expect(await log.ownHead()).toBe(undefined);
    expect(await headOf(log)).toMatchObject({ term: record.term, position: 2 });
  });

  it('fences the batch of a late writer', async () => {
    const log = await freshLog();
    const zombie = await headOf(log);
    await openNextTerm(log, wanted(1, { owner: 'b' }));
    await expect(commitBatch(log, zombie, 'a')).rejects.toMatchObject({ code: 'Fenced' });
  });

  it('is opened once: the same request adopts it, another one gets the name of the winner', async () => {
    const log = await freshLog();
    await iterate(log, 3);
    const first = await openNextTerm(log, wanted(1, { position: 1 }));
    expect((await openNextTerm(log, wanted(1, { position: 1 }))).digest).toBe(first.digest);
    await expect(openNextTerm(log, wanted(1, { position: 2 }))).rejects.toMatchObject({
      code: 'Fenced',
      message: expect.stringContaining('term 2'),
    });
    await expect(openNextTerm(log, wanted(1, { position: 1, owner: 'b' }))).rejects.toMatchObject({
      code: 'Fenced',
      message: expect.stringContaining('opened by a'),
    });
    expect((await headOf(log)).seal).toBeUndefined();
  });

  it('needs a committed position', async () => {
    const log = await freshLog();
    await iterate(log, 2);
    await expect(openNextTerm(log, wanted(1, { position: 3 }))).rejects.toMatchObject({
      code: 'InvalidInput',
      hint: 'it can continue from any iteration from 0 to 2',
    });
    expect((await headOf(log)).seal).toBeUndefined();
  });

  it('skips the draws that a redo abandons, and so do the terms after it', async () => {
    const log = await freshLog();
    await iterate(log, 4);
    await commitBatch(log, await headOf(log), 'a');
    expect((await openNextTerm(log, wanted(1, { position: 2, skipDraws: true }))).record.skippedDraws).toEqual([
      [4, 10],
    ]);
    await iterate(log, 1);
    expect((await log.iteration(3)).batch.record.draws.map(({ draw }) => draw)).toEqual([10, 11]);
    await expectOneOutcomeEach(log);
    // A redo of the redo repeats its numbers: skipped draws stay skipped.
    expect((await openNextTerm(log, wanted(2, { position: 1 }))).record.skippedDraws).toEqual([[4, 10]]);
    await iterate(log, 2);
    expect((await log.iteration(3)).batch.record.draws.map(({ draw }) => draw)).toEqual([10, 11]);
    expect((await openNextTerm(log, wanted(3))).record.skippedDraws).toEqual([]);
    await iterate(log, 1);
    await expectOneChain(log);
    await expectOneOutcomeEach(log);
  });
});

class Died extends Error {}

/** A store whose operations wait until the scheduler releases them. After `operations` of them its process is dead. */
function scheduled(store: Store, scheduler: fc.Scheduler, operations = Number.POSITIVE_INFINITY): Store {
  let done = 0;
  const turn = async (label: string) => {
    if (done++ >= operations) throw new Died();
    await scheduler.schedule(Promise.resolve(), label);
  };
  return {
    ...store,
    url: store.url,
    create: async (key, bytes) => {
      await turn(`create ${key}`);
      return store.create(key, bytes);
    },
    get: async (key, range) => {
      await turn(`get ${key}`);
      return store.get(key, range);
    },
    head: async (key) => {
      await turn(`head ${key}`);
      return store.head(key);
    },
    children: async (key) => {
      await turn(`children ${key}`);
      return store.children(key);
    },
    put: (key, bytes) => store.put(key, bytes),
    stream: (key) => store.stream(key),
    list: (key) => store.list(key),
    remove: (key, only) => store.remove(key, only),
    settle: () => store.settle(),
    localPath: (key) => store.localPath(key),
  };
}

/**
 * A control process that knows nothing of the others: appends until it has done its part or is fenced, each time where
 * it has left the log itself. `looks`: whether it looks at the store first, and for a newer term.
 */
async function control(
  store: Store,
  runId: string,
  mark: string,
  looks: readonly { readonly first: boolean; readonly beside: boolean }[],
): Promise<void> {
  const log = new RunLog(store, runId);
  for (const { first, beside } of looks) {
    const head = (first ? undefined : await log.ownHead()) ?? (await headOf(log));
    if (head.seal !== undefined) return;
    if (beside) await log.hasTerm(head.term);
    try {
      await append(log, head, mark);
    } catch (error) {
      if ((error as { code?: string }).code !== 'Fenced') throw error;
      log.appended(undefined);
    }
  }
}

/** Opens a term after the newest one that it sees. Being fenced by a faster process is a valid outcome. */
async function opener(store: Store, runId: string, more: Partial<WantedTerm>): Promise<void> {
  const log = new RunLog(store, runId);
  try {
    const after = (await headOf(log)).term;
    await openNextTerm(log, wanted(after, more));
  } catch (error) {
    if (!(error instanceof Died) && !['Fenced', 'InvalidInput'].includes((error as { code?: string }).code ?? ''))
      throw error;
  }
}

/** The folder of a term holds one run of consecutive iterations, closed by at most one seal. */
async function expectClosedOnce(log: RunLog, term: number, begin: number, isNewest: boolean): Promise<number> {
  let k = begin;
  let sealed = false;
  for (; !sealed; k++) {
    const batch = await readRecord(log.store, keys.batch(log.runId, term, k + 1), batchDecision);
    if (batch === undefined) break;
    sealed = batch.record.decision === 'seal';
    const update = sealed
      ? undefined
      : await readRecord(log.store, keys.update(log.runId, term, k + 1), updateDecision);
    if (!sealed && update === undefined) break;
    sealed ||= update?.record.outcome === 'seal';
    if (sealed) break;
  }
  expect([term, sealed]).toEqual([term, !isNewest || sealed]);
  expect(
    (await log.store.children(keys.positions(log.runId, term))).filter((name) => Number(name.replace('/', '')) > k + 1),
  ).toEqual([]);
  return k;
}

describe('any writers in any order', () => {
  it('the log stays one chain, and nothing committed before a seal is lost', async () => {
    const opening = fc.record({
      owner: fc.constantFrom('b', 'c'),
      skipDraws: fc.boolean(),
      position: fc.option(fc.nat(2), { nil: undefined }),
      diesAfter: fc.option(fc.nat(40), { nil: Number.POSITIVE_INFINITY }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(opening, { minLength: 1, maxLength: 3 }),
        fc.array(fc.record({ first: fc.boolean(), beside: fc.boolean() }), { minLength: 1, maxLength: 5 }),
        async (scheduler, openings, looks) => {
          const log = await freshLog();
          const store = scheduled(log.store, scheduler);
          const all = Promise.all([
            control(store, log.runId, 'a', looks),
            control(store, log.runId, 'zombie', looks),
            ...openings.map(({ position, diesAfter, ...more }, i) =>
              opener(scheduled(log.store, scheduler, diesAfter), log.runId, {
                ...more,
                reason: `wish ${i}`,
                ...(position === undefined ? {} : { position }),
              }),
            ),
          ]);
          await scheduler.waitFor(all);
          // The next process completes all unfinished work.
          await opener(log.store, log.runId, { owner: 'd', reason: 'the last' });
          const terms = [];
          for (let t = 1; ; t++) {
            const term = await readRecord(log.store, keys.term(log.runId, t), termRecord);
            if (term === undefined) break;
            terms.push(term.record);
          }
          expect(terms.length).toBeGreaterThan(1);
          for (const [i, term] of terms.entries()) {
            const end = await expectClosedOnce(log, term.term, term.parent?.position ?? 0, i === terms.length - 1);
            const next = terms[i + 1];
            // undefined for the last term
            const position = next && openings[Number(next.reason.replace('wish ', ''))]?.position;
            if (next !== undefined) expect(next.parent?.position).toBe(position ?? end);
          }
          await expectOneChain(log);
          await expectOneOutcomeEach(log);
        },
      ),
      { numRuns: 100 },
    );
  });
});
