// @module-tag long
/** A batch of many tokens is made and applied shard by shard: check-largest-batch.ts. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { builtFile } from '../infra/home.ts';

const prompts = 3500;
/** 8 responses of 1,000 tokens to each prompt. */
const tokens = prompts * 8 * 1000;
const shardGiB = 0.25;

it(`updates on ${tokens} response tokens within 3 GiB, and no buffer is larger than a shard`, async () => {
  // An array that grows with the tokens and is no larger than a shard here has less than 1 GiB at 100 million.
  expect((shardGiB * 1e8) / tokens).toBeLessThan(1);
  const { stdout } = await promisify(execFile)(process.execPath, [
    builtFile('tests/check-largest-batch.js'),
    '--prompts',
    String(prompts),
  ]);
  const gib = (what: RegExp) => Number(what.exec(stdout)?.[1]);
  expect(gib(/the batch is made, in 4 objects; peak ([\d.]+) GiB/), stdout).toBeLessThan(3);
  expect(gib(/the update is applied; peak ([\d.]+) GiB/), stdout).toBeLessThan(3);
  expect(gib(/the largest buffer had ([\d.]+) GiB/), stdout).toBeLessThanOrEqual(shardGiB);
});
