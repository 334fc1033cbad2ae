/** Programs of an engine's environment end with the process that runs them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { builtFile } from '../../infra/home.ts';
import { identify, waitForExit } from '../../infra/stack/process.ts';
import { patienceMs } from '../../tests/patience.ts';
import { linesOf } from './lines-of.ts';

it('gives each line, and the last one of a program that fails', async () => {
  const lines: string[] = [];
  const script = 'echo one; echo two >&2; exit 3';
  await expect(
    linesOf('sh', ['-c', script], 'the script', { onLine: (line) => lines.push(line) }),
  ).rejects.toMatchObject({
    code: 'EngineFailed',
    message: expect.stringMatching(/^the script failed \(exit code 3\): (?:one|two)$/) as string,
  });
  expect(lines.sort()).toEqual(['one', 'two']);
  expect(await linesOf('sh', ['-c', 'echo one'], 'the script')).toEqual(['one']);
  await expect(linesOf('no-such-program', [], 'it')).rejects.toThrow(/^it failed/);
});

it('leaves no process when it is killed, as pip with the pip that this starts', async () => {
  const module = pathToFileURL(builtFile('api/engines/lines-of.js')).href;
  const code = `import(${JSON.stringify(module)}).then(({ linesOf }) =>
    linesOf('sh', ['-c', 'sleep 1000 & echo $!; wait'], 'it', { onLine: (line) => console.log(line) }))`;
  const petrel = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface({ input: petrel.stdout }), 'line')) as [string];
  const sleeper = identify(Number(line));
  if (sleeper === undefined) throw new Error('it has ended before petrel was killed');
  petrel.kill('SIGKILL');
  expect(await waitForExit(sleeper, patienceMs)).toBe(true);
});
