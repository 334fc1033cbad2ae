/** Numbers that no machine can meet are refused before anything is started. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { PetrelUser } from './petrel.ts';

const user = new PetrelUser();
afterAll(() => user.remove());

describe('a recipe', () => {
  it.each([
    ['fleet.pools', { fleet: { pools: { local: { roles: ['trainer', 'rollout', 'reward'], workers: 100_000 } } } }],
    ['data.train_batch_size', { data: { train_batch_size: 2 ** 40 }, actor: { ppo_mini_batch_size: 2 ** 40 } }],
  ])('is refused for too large a %s', async (key, sections) => {
    user.recipe('large.yaml', sections);
    const { code, out, err } = await user.petrel('plan', 'large.yaml');
    expect(out + err, 'the plan does not mention it').toMatch(new RegExp(`${key}[^]*(256|65,?536)`));
    expect(code).not.toBe(0);
  });
});

it('a model that is larger than the disk is refused before its download starts', async () => {
  const fetched: string[] = [];
  const oid = 'a'.repeat(64);
  const files = [
    { type: 'file', path: 'config.json', size: 10, oid: 'b'.repeat(40) },
    {
      type: 'file',
      path: 'model.safetensors',
      size: 2 ** 50,
      oid: 'c'.repeat(40),
      lfs: { oid, size: 2 ** 50, pointerSize: 1 },
    },
  ];
  const hub = createServer((request, response) => {
    const path = request.url ?? '';
    if (path.includes('/resolve/')) fetched.push(path);
    response.setHeader('content-type', 'application/json');
    if (path.includes('/tree/')) response.end(JSON.stringify(files));
    else if (path.includes('/resolve/')) response.writeHead(404).end('{}');
    else
      response.end(
        JSON.stringify({
          _id: '1',
          id: 'org/huge',
          sha: 'd'.repeat(40),
          private: false,
          gated: false,
          downloads: 0,
          likes: 0,
          lastModified: '2026-01-01T00:00:00Z',
        }),
      );
  });
  await new Promise<void>((resolve) => hub.listen(0, '127.0.0.1', resolve));
  try {
    user.recipe('huge.yaml', { model: { path: 'org/huge' } });
    const env = { HF_ENDPOINT: `http://127.0.0.1:${(hub.address() as AddressInfo).port}` };
    const { code, out, err } = await user.petrelWith({ env }, 'run', 'huge.yaml', '--detach');
    expect(fetched, 'files that were fetched').toEqual([]);
    expect(out + err).toContain('is full');
    expect(code).not.toBe(0);
  } finally {
    hub.closeAllConnections();
    await new Promise((resolve) => hub.close(resolve));
  }
});
