/** Checkpoint commands over a folder store: what is listed, what is found damaged, what is exported. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { actorOf, shardsOf } from '../../../core/records/components.ts';
import { keys } from '../../../core/records/keys.ts';
import { stateDigests } from '../../../tests/state-digests.ts';
import { encodeRecord } from '../../../log/objects/records.ts';
import { openSafetensors } from '../../../models/safetensors.ts';
import { harm, keepCopy } from '../../../tests/damage.ts';
import { cliHome } from '../../../tests/cli.ts';
import { builtState, buildRun } from '../../../tests/run-builder.ts';
import type { BuiltRun } from '../../../tests/run-builder.ts';
import type { CheckpointRow, IterationVerdict } from '../../../api/index.ts';

interface Report {
  readonly ok: boolean;
  readonly checkpoints: readonly IterationVerdict[];
  readonly batches: readonly IterationVerdict[];
}

const cli = cliHome();
let n = 0;
const fresh = async (): Promise<BuiltRun> =>
  buildRun(await cli.store(), { name: `toy-${n++}`, done: 4, checkpoints: [1, 3] });
const pathOf = ({ log }: BuiltRun, key: string): string => log.store.localPath(key) ?? '';

/** Flips a bit in the middle of a stored object. */
function damage(run: BuiltRun, key: string): void {
  const bytes = readFileSync(pathOf(run, key));
  bytes[bytes.length - 3] = (bytes.at(-3) ?? 0) ^ 1;
  writeFileSync(pathOf(run, key), bytes);
}

let run: BuiltRun;
beforeAll(async () => (run = await fresh()));
afterAll(() => cli.remove());

describe('ckpt ls', () => {
  it('has rows ascending, with the digests of weights and state', async () => {
    const rows = (await cli.petrel('ckpt', 'ls', run.runId, '--json')).json<CheckpointRow[]>();
    expect(rows.map(({ iteration }) => iteration)).toEqual([1, 3]);
    expect(rows[1]).toMatchObject({
      digest: stateDigests(builtState(3)).weightsDigest,
      stateDigest: stateDigests(builtState(3)).stateDigest,
      shards: 3,
      complete: true,
    });
    expect(rows[1]?.bytes).toBeGreaterThan(3 * 40);
  });

  it('names the best one, where the recipe names a metric', async () => {
    const options = { name: 'best', done: 4, checkpoints: [2, 4], evaluations: [0, 2, 4], best: 'min' } as const;
    const { runId } = await buildRun(await cli.store(), options);
    const rows = (await cli.petrel('ckpt', 'ls', runId, '--json')).json<CheckpointRow[]>();
    expect(rows.map(({ iteration, best }) => [iteration, best])).toEqual([
      [2, { metric: 'accuracy', value: 0.375 }],
      [4, undefined],
    ]);
    expect((await cli.petrel('ckpt', 'ls', runId)).out).toContain('accuracy 0.375');
    expect((await cli.petrel('ckpt', 'ls', run.runId)).out).not.toContain('BEST');
    const exported = await cli.petrel('ckpt', 'export', runId, 'best', '--out', 'best', '--json');
    expect(exported.json()).toMatchObject({ iteration: 2 });
    await expect(cli.petrel('ckpt', 'export', run.runId, 'best', '--out', 'none')).rejects.toMatchObject({
      code: 'NotFound',
      hint: expect.stringContaining('trainer.best_metric'),
    });
  });

  it('tells of a run without any', async () => {
    const { runId } = await buildRun(await cli.store(), { name: 'bare' });
    expect((await cli.petrel('ckpt', 'ls', runId)).out).toContain('no checkpoints yet');
    expect((await cli.petrel('ckpt', 'ls', runId, '--json')).json()).toEqual([]);
    await expect(cli.petrel('ckpt', 'verify', runId)).rejects.toMatchObject({ code: 'NotFound' });
  });
});

describe('ckpt verify', () => {
  const verify = async (of: BuiltRun, ...words: string[]) => {
    const result = await cli.petrel('ckpt', 'verify', of.runId, ...words, '--json');
    return { code: result.code, report: result.json<Report>() };
  };

  it('reads every checkpoint and the batches after the oldest', async () => {
    const { code, report } = await verify(run);
    expect(code).toBe(0);
    expect(report.checkpoints.map(({ iteration, ok }) => [iteration, ok])).toEqual([
      [1, true],
      [3, true],
    ]);
    expect(report.batches.map(({ iteration, ok }) => [iteration, ok])).toEqual([
      [2, true],
      [3, true],
      [4, true],
    ]);
    expect((await cli.petrel('ckpt', 'verify', run.runId)).out).toContain('2 checkpoints, 3 batches: all is well');
  });

  it('reads one checkpoint and the batches after it', async () => {
    const { report } = await verify(run, '3');
    expect([report.checkpoints.length, report.batches.map(({ iteration }) => iteration)]).toEqual([1, [4]]);
    await expect(cli.petrel('ckpt', 'verify', run.runId, '2')).rejects.toMatchObject({
      code: 'NotFound',
      hint: 'there are: 1, 3',
    });
    await expect(cli.petrel('ckpt', 'verify', run.runId, 'two')).rejects.toMatchObject({ code: 'InvalidInput' });
  });

  it('finds a damaged blob of a shard', async () => {
    const hurt = await fresh();
    const [newest] = await hurt.log.checkpoints.all();
    damage(hurt, keys.blob(hurt.runId, (newest && shardsOf(newest.record)[1]?.blob) ?? ''));
    const { code, report } = await verify(hurt);
    expect(code).toBe(1);
    expect(report.checkpoints.map(({ iteration, ok }) => [iteration, ok])).toEqual([
      [1, true],
      [3, false],
    ]);
    expect(report.checkpoints[1]?.problem).toContain('do not match');
    expect((await cli.petrel('ckpt', 'verify', hurt.runId)).out).toMatch(/checkpoint 3 +DAMAGED/);
  });

  it('finds a manifest that names other digests, or is no JSON any more', async () => {
    const hurt = await fresh();
    const [newest, oldest] = await hurt.log.checkpoints.all();
    const components = { actor: { ...actorOf(newest?.record.components ?? {}), steps: 4 } };
    writeFileSync(pathOf(hurt, newest?.key ?? ''), encodeRecord({ ...newest?.record, components }));
    writeFileSync(pathOf(hurt, oldest?.key ?? ''), '{');
    const { report } = await verify(hurt);
    expect(report.checkpoints[0]?.problem).toContain('not JSON');
    expect(report.checkpoints[1]?.problem).toContain('the state of actor hashes to');
    expect(
      (await cli.petrel('ckpt', 'ls', hurt.runId, '--json')).json<CheckpointRow[]>().map(({ iteration }) => iteration),
    ).toEqual([3]);
  });

  it('finds a damaged model, damaged rows, and records that were lost before others', async () => {
    const hurt = await fresh();
    const { inputs } = await hurt.log.revision();
    const [model, rows] = [keys.model(inputs.model, 'manifest.json'), keys.dataset(inputs.train, 'rows.jsonl')];
    const put = [model, rows].map((key) => keepCopy(hurt.log.store, key));
    [model, rows].forEach((key) => harm(hurt.log.store, key, 'bit flip'));
    for (const lost of ['update', 'batch'] as const) harm(hurt.log.store, keys[lost](hurt.runId, 1, 4), 'loss');
    harm(hurt.log.store, keys.update(hurt.runId, 1, 3), 'loss');
    const { json, out } = await cli
      .petrel('ckpt', 'verify', hurt.runId, '--json')
      .finally(() => put.forEach((back) => back()));
    expect(json<{ inputs: unknown; hole: unknown }>(), out).toMatchObject({
      ok: false,
      inputs: [
        { what: 'model', ok: false },
        { what: 'training rows', ok: false },
        { what: 'validation rows', ok: false },
      ],
      hole: { code: 'LogHole', hint: expect.stringContaining('--from 2') },
    });
  });

  it('finds a batch whose tensors are damaged, and a chain that is broken', async () => {
    const hurt = await fresh();
    damage(hurt, keys.blob(hurt.runId, (await hurt.log.iteration(4)).batch.record.tensors));
    const path = pathOf(hurt, keys.batch(hurt.runId, 1, 3));
    writeFileSync(path, `${readFileSync(path, 'utf8')}\n`);
    const { code, report } = await verify(hurt);
    expect(code).toBe(1);
    expect(report.batches.map(({ ok }) => ok)).toEqual([true, false, false]);
    expect(report.batches[1]?.problem).toContain('applies another batch');
    expect(report.batches[2]?.problem).toContain('do not match');
  });
});

describe('ckpt export', () => {
  it('writes the newest policy as a Hugging Face folder, in the type of the base model', async () => {
    const answer = (await cli.petrel('ckpt', 'export', run.runId, '--out', 'trained', '--json')).json<{
      folder: string;
      iteration: number;
      dtype: string;
    }>();
    expect(answer).toMatchObject({ folder: join(cli.home, 'trained'), iteration: 3, dtype: 'bfloat16' });
    for (const name of ['config.json', 'tokenizer.json', 'tokenizer_config.json'])
      expect(existsSync(join(answer.folder, name)), name).toBe(true);
    expect(JSON.parse(readFileSync(join(answer.folder, 'config.json'), 'utf8'))).toMatchObject({
      torch_dtype: 'bfloat16',
      model_type: 'llama',
    });
  });

  it('writes exactly the weights of the iteration that was asked for', async () => {
    await cli.petrel('ckpt', 'export', run.runId, '1', '--out', 'first', '--dtype', 'fp32');
    const folder = await openSafetensors(join(cli.home, 'first'));
    for await (const norm of folder.values('model.norm.weight'))
      expect([...norm]).toEqual([...builtState(1).weights.subarray(8, 10)]);
    expect(folder.tensors.has('model.norm.weight')).toBe(true);
    expect(folder.tensors.get('model.embed_tokens.weight')?.shape).toEqual([4, 2]);
    await folder.close();
  });

  it('refuses a folder that is not empty, and weights that are damaged', async () => {
    await expect(cli.petrel('ckpt', 'export', run.runId, '--out', 'trained')).rejects.toMatchObject({
      code: 'InvalidInput',
    });
    const hurt = await fresh();
    const [newest] = await hurt.log.checkpoints.all();
    damage(hurt, keys.blob(hurt.runId, (newest && shardsOf(newest.record)[0]?.blob) ?? ''));
    await expect(cli.petrel('ckpt', 'export', hurt.runId, '--out', 'damaged')).rejects.toMatchObject({
      code: 'DamagedBlob',
    });
    expect(existsSync(join(cli.home, 'damaged'))).toBe(false);
  });
});
