/** The verifier and rows in blocks: a dataset of format 2. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { readDataset } from '../../log/inputs/datasets.ts';
import { openStore } from '../../infra/store/open.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { buildRun } from '../../tests/run-builder.ts';
import { verifyInputs } from '../checkpoints/verify-inputs.ts';
import { tokenisedBy } from '../runs/row-tokens.ts';
import type { Tokenise } from './inputs.ts';
import { verifyLedger } from './verify.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-row-blocks-'));
const [pristine, hurt] = [join(folder, 'pristine'), join(folder, 'hurt')];
let runId = '';
let dataset = '';
let blocks: readonly string[] = [];
let store: Store;

beforeAll(async () => {
  const origin = await openStore(pristine);
  const built = await buildRun(origin, { done: 4, checkpoints: [4], evaluations: [4], blockBytes: 80 });
  runId = built.runId;
  dataset = (await built.log.revision()).inputs.train;
  const stored = await readDataset(origin, dataset);
  if (stored.format !== 2) throw new Error('expected blocks');
  blocks = stored.index.blocks.map(({ sha256 }) => keys.dataset(dataset, `${sha256}.jsonl`));
});
beforeEach(async () => {
  cpSync(pristine, hurt, { recursive: true });
  store = await openStore(hurt);
});
afterEach(() => rmSync(hurt, { recursive: true, force: true }));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const verify = (deep: boolean, tokenise: Tokenise = tokenisedBy(store, join(folder, 'cache'))) =>
  verifyLedger(store, runId, { deep, tokenise });

const faultsOf = async (deep: boolean, tokenise?: Tokenise) =>
  (await verify(deep, tokenise)).faults.map(
    ({ key, expected, found }) => `${key}: expected ${expected}, found ${found}`,
  );

function flip(key: string): void {
  const path = store.localPath(key) ?? '';
  const bytes = readFileSync(path);
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

describe('rows in blocks', () => {
  it('are in order, and their prompts are the ones that were sampled', async () => {
    expect(blocks).toHaveLength(2);
    expect(await verify(true)).toMatchObject({ faults: [], samplesCompared: 12 });
    expect(await faultsOf(false)).toEqual([]);
  });

  it('are compared with what was sampled, token by token', async () => {
    const others: Tokenise = async (_, __, rows) => rows.map(() => ({ prompt: Int32Array.of(1, 2, 3) }));
    const found = await faultsOf(true, others);
    expect(found).toContainEqual(expect.stringMatching(/the prompt of row 1 for draw \d+, found another prompt/));
  });

  it('that are damaged are found by their block', async () => {
    flip(blocks[1] ?? '');
    expect(await faultsOf(true)).toEqual([`${blocks[1]}: expected rows 1 to 1, found other bytes`]);
    const verdicts = await verifyInputs({ log: new RunLog(store, runId), say: () => {} });
    expect(verdicts.filter(({ ok }) => !ok)).toMatchObject([
      { what: 'training rows', problem: expect.stringContaining(blocks[1] ?? '?') as string },
      { what: 'validation rows' },
    ]);
  });

  it.each([true, false])('that are missing are found by their block (deep: %s)', async (deep) => {
    await store.remove(blocks[0] ?? '');
    expect(await faultsOf(deep)).toEqual([expect.stringMatching(`^${blocks[0]}: expected .*rows.*, found nothing$`)]);
  });

  it('have an index that their name is the digest of', async () => {
    flip(keys.dataset(dataset, 'index.json'));
    expect(await faultsOf(false)).toEqual([
      expect.stringMatching(`^datasets/${dataset}: expected an index whose digest names the dataset`),
    ]);
    await store.remove(keys.dataset(dataset, 'index.json'));
    expect(await faultsOf(false)).toEqual([
      expect.stringMatching(`^datasets/${dataset}/index.json: expected rows: .* names them, found nothing`),
    ]);
  });
});
