/** A server that starts and does not serve: the wait for the stack ends with what the server answers. */
import { mkdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { bounded, StackUnderTest } from '../../tests/stack-under-test.ts';
import { readTools } from '../home.ts';
import { poll } from '../poll.ts';
import { ensureStack, readStack } from './index.ts';

const answer = 'tls: first record does not look like a TLS handshake';

let under: StackUnderTest;
beforeEach(() => (under = new StackUnderTest()));
afterEach(() => under.remove());

/** Replaces Temporal's program by one whose command line cannot reach the server. */
function useDeafTemporal(): void {
  const tools = readTools(under.home);
  const folder = join(under.home, 'toolchain');
  const path = join(under.home, 'temporal');
  const script = `#!/bin/sh\nif [ "$1" = operator ]; then echo "Error: ${answer}" >&2; exit 1; fi\nexec "${tools.temporal.path}" "$@"\n`;
  writeFileSync(path, script, { mode: 0o755 });
  unlinkSync(folder);
  mkdirSync(folder);
  writeFileSync(join(folder, 'tools.json'), JSON.stringify({ ...tools, temporal: { ...tools.temporal, path } }));
}

it('names the reason of a server that is not ready', async () => {
  useDeafTemporal();
  const wait = (timeoutMs: number) => ensureStack({ home: under.home, programs: under.programs, timeoutMs });
  await expect(wait(1)).rejects.toMatchObject({ code: 'StackTimeout' });
  const known = () => readStack(under.home)?.children.some(({ notYet }) => notYet?.includes(answer));
  expect(await poll(known, bounded)).toBe(true);
  await expect(wait(1)).rejects.toMatchObject({
    code: 'StackTimeout',
    message: expect.stringContaining(`temporal is starting: Error: ${answer}`),
  });
});
