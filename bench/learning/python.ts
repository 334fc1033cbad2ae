/** The Python of the other side: that it has what its script needs, and the lines that the script prints. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { errorToJson, InvalidInputError } from '../../core/errors.ts';
import { packageRoot } from '../../infra/home.ts';

const packages = ['torch', 'transformers', 'trl', 'datasets'] as const;

/** Returns the interpreter. Throws InvalidInputError that says what to install when a package is missing. */
export async function checkedPython(python: string | undefined): Promise<string> {
  const hint = `python3 -m venv env && env/bin/pip install ${packages.join(' ')}, then PETREL_PYTHON=env/bin/python`;
  if (!python)
    throw new InvalidInputError(`PETREL_PYTHON is not set: a Python that has ${packages.join(', ')}`, { hint });
  const look = `import importlib.util as u, sys; sys.exit(",".join(n for n in sys.argv[1:] if not u.find_spec(n)) or None)`;
  await promisify(execFile)(python, ['-c', look, ...packages]).catch((cause: unknown) => {
    const lines = String((cause as { readonly stderr?: string }).stderr ?? '').trim();
    const missing = /^[a-z,]+$/.test(lines) ? `has no ${lines}` : `does not run: ${errorToJson(cause).message}`;
    throw new InvalidInputError(`PETREL_PYTHON=${python} ${missing}`, { hint, cause });
  });
  return python;
}

const keptErrorBytes = 4_000;

/**
 * Runs a script of bench/peer with its work, and gives each JSON object that it prints. Throws an error with the end of
 * its stderr when it fails.
 */
export async function* peerLines(python: string, script: string, work: unknown): AsyncGenerator<unknown> {
  const env = { ...process.env, HF_HUB_OFFLINE: '1' };
  const child = spawn(python, [join(packageRoot(), 'bench/peer', script), JSON.stringify(work)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env,
  });
  let errors = '';
  child.stderr.on('data', (text: Buffer) => (errors = (errors + text.toString()).slice(-keptErrorBytes)));
  const closed = once(child, 'close');
  try {
    for await (const line of createInterface({ input: child.stdout }))
      if (line.startsWith('{"')) yield JSON.parse(line);
    const [code] = (await closed) as [number | null];
    if (code !== 0) throw new Error(`${script} ended with ${code ?? 'a signal'}:\n${errors.trim()}`);
  } finally {
    if (child.exitCode === null) child.kill();
  }
}
