/** A process that answers each line with a line: a measurement of petrel or of the peer. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';

export interface LineProcess {
  /** The first line that it printed. */
  readonly greeting: Readonly<Record<string, unknown>>;
  /** Runs one turn. Throws an error with the end of its stderr when the process dies. */
  ask(): Promise<Readonly<Record<string, unknown>>>;
  /** Resolves when the process has exited. */
  close(): Promise<void>;
}

const keptErrorBytes = 4_000;

/** Resolves when the process has printed its first line: then it is warm. */
export async function startLineProcess(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<LineProcess> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], env });
  child.stdin.on('error', () => {}); // the process died: its answer reports it
  let errors = '';
  child.stderr.on('data', (text: Buffer) => (errors = (errors + text.toString()).slice(-keptErrorBytes)));
  const ended = exitOf(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<Readonly<Record<string, unknown>>> => {
    for (;;) {
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`${command} ended with ${await ended}:\n${errors.trim()}`);
      if (value.startsWith('{')) return JSON.parse(value) as Record<string, unknown>;
    }
  };
  return {
    greeting: await next(),
    ask: () => {
      child.stdin.write('turn\n');
      return next();
    },
    close: async () => {
      child.stdin.end();
      await ended;
    },
  };
}

function exitOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(signal ?? `code ${code}`));
  });
}
