import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

test.each(['trouble.ts', 'trouble.py'])('a hanging scorer (%s) ends when its host is killed', async (module) => {
  const args = ['--import', here('./strip-types.mjs'), here('./fixtures/abandoned.ts'), here(`./fixtures/${module}`)];
  const host = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface({ input: host.stdout }), 'line')) as [string];
  const pid = Number(line);
  expect(existsSync(`/proc/${pid}`)).toBe(true);
  host.kill('SIGKILL');
  for (let i = 0; i < 100 && existsSync(`/proc/${pid}`); i++) await sleep(50);
  expect(existsSync(`/proc/${pid}`)).toBe(false);
});
