/** Limits of a shell: they keep a stack from being started, and nobody from using one that runs. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { StackUnderTest } from '../../tests/stack-under-test.ts';
import { packageRoot } from '../home.ts';

let under: StackUnderTest;
beforeEach(() => (under = new StackUnderTest()));
afterEach(() => under.remove());

/** What a command says in a shell with few open files: the state of the stack, or why there is none. */
function askedWithFewFiles(): string {
  const module = pathToFileURL(join(packageRoot(), 'dist/infra/stack/index.js')).href;
  const program = `const { ensureStack } = await import(${JSON.stringify(module)});
    const said = ensureStack({ home: ${JSON.stringify(under.home)} }).then(({ phase }) => phase, ({ message }) => message);
    process.stdout.write(await said);`;
  const words = ['-c', 'ulimit -n 200; exec "$@"', 'bash', process.execPath, '--input-type=module', '-e', program];
  return execFileSync('bash', words, { encoding: 'utf8' });
}

it('are asked of the shell that starts a stack, and of no other', async () => {
  expect(askedWithFewFiles()).toBe('ulimit -n is 200, a stack needs 256');
  await under.up();
  expect(askedWithFewFiles()).toBe('running');
});
