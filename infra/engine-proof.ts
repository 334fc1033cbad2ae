/** The native engine of this machine, asked in a process of its own: what loads it there cannot end this one. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { z } from 'zod';
import { TerminalError } from '../core/errors.ts';
import { engineFacts } from '../core/wire/engine-facts.ts';
import { builtFile } from './home.ts';

const report = engineFacts.required({ proofs: true }).extend({ addedFlags: z.string() });

/** What the native engine says of itself, and the name of the flags that a person added to its build. */
export type EngineReport = z.infer<typeof report>;

/** Probes the native engine of this machine. Throws TerminalError where it cannot be loaded. */
export async function engineReport(): Promise<EngineReport> {
  const program = builtFile('native/print-proof.js');
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [program]);
    return report.parse(JSON.parse(stdout));
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause);
    const reason = /^\w*Error: (.*)$/m.exec(text)?.[1] ?? text.split('\n')[0] ?? text;
    throw new TerminalError('EngineUnusable', reason, { cause, hint: 'npm run setup' });
  }
}
