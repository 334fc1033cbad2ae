/**
 * The part of the fault injector that runs inside the processes. It does nothing unless PETREL_FAULTS names a folder. A
 * process that reaches a point of an armed fault records that and then does what the fault says. tests/inject.ts arms
 * faults and acts on processes from outside.
 */
import { linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { z } from 'zod';
import { faultPoints } from './points.ts';
import type { FaultFacts, FaultPoint } from './points.ts';

export type { FaultFacts, FaultPoint } from './points.ts';

export const faultsVariable = 'PETREL_FAULTS';
/** The supervisor sets it for its children. */
const childVariable = 'PETREL_CHILD';

const armedFault = z.object({
  /** Id of the fault, and name of its files. */
  id: z.string().regex(/^[\w.-]+$/),
  point: z.enum(faultPoints),
  /** Only in processes of this name (`control`, `local-1`); default: any. */
  process: z.string().optional(),
  /** Only when the point's facts equal these. */
  facts: z.record(z.string(), z.union([z.string(), z.number()])).default({}),
  /** Fires when a process reaches the point for the n-th time. */
  nth: z.int().positive().default(1),
  /**
   * `stand`: the whole process stops (SIGSTOP) until the test acts on it. `note`: the process continues, and the visit
   * is recorded.
   */
  action: z.enum(['stand', 'note', 'kill', 'segv', 'throw']),
  /** Fires every time from the n-th on, in every process: a poison job. Otherwise once in total. */
  always: z.boolean().default(false),
});
export type ArmedFault = z.input<typeof armedFault>;

/** What a process recorded before it acted. */
export interface FiredFault {
  readonly id: string;
  readonly pid: number;
  readonly process: string;
  readonly point: FaultPoint;
  readonly facts: FaultFacts;
}

/** Folders of armed and of fired faults, under PETREL_FAULTS. */
export const armedFolder = (root: string): string => join(root, 'armed');
export const firedFolder = (root: string): string => join(root, 'fired');

const root = process.env[faultsVariable];
/** This thread's visits to a fault's point, by fault. */
const visits = new Map<string, number>();

/**
 * Reports that the caller has reached `point`. Does nothing in production. Throws an ordinary Error for a fault of kind
 * `throw`; kinds `kill` and `segv` do not return.
 */
export function faultPoint(point: FaultPoint, facts: FaultFacts = {}): void {
  if (root === undefined || root === '') return;
  for (const fault of armedAt(root, point, facts)) {
    const visit = (visits.get(fault.id) ?? 0) + 1;
    visits.set(fault.id, visit);
    if (visit < fault.nth || (!fault.always && visit > fault.nth)) continue;
    if (writeDown(root, fault, facts)) act(fault);
  }
}

function armedAt(folder: string, point: FaultPoint, facts: FaultFacts): z.infer<typeof armedFault>[] {
  const here = process.env[childVariable] ?? '';
  return namesIn(armedFolder(folder))
    .filter((name) => name.endsWith('.json'))
    .flatMap((name) => readArmed(join(armedFolder(folder), name)))
    .filter((fault) => fault.point === point && (fault.process ?? here) === here)
    .filter((fault) => Object.entries(fault.facts).every(([name, value]) => facts[name] === value));
}

/** Empty when the fault was just disarmed. */
function readArmed(path: string): z.infer<typeof armedFault>[] {
  try {
    return [armedFault.parse(JSON.parse(readFileSync(path, 'utf8')))];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // no fault is armed
  }
}

/** False when the fault has fired already: exactly one process makes the file, whole at once. */
function writeDown(folder: string, fault: z.infer<typeof armedFault>, facts: FaultFacts): boolean {
  const fired: FiredFault = {
    id: fault.id,
    pid: process.pid,
    process: process.env[childVariable] ?? '',
    point: fault.point,
    facts,
  };
  mkdirSync(firedFolder(folder), { recursive: true });
  const name = fault.always ? `${fault.id}.${process.pid}.${visits.get(fault.id)}` : fault.id;
  const path = join(firedFolder(folder), `${name}.json`);
  const draft = `${path}.${process.pid}.${threadId}`;
  writeFileSync(draft, JSON.stringify(fired));
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft);
  }
  writeSync(2, `fault ${fault.id}: at ${fault.point} ${JSON.stringify(facts)}, ${fault.action}\n`);
  return true;
}

function act({ id, point, action }: z.infer<typeof armedFault>): void {
  if (action === 'note') return;
  if (action === 'throw') throw new Error(`injected fault ${id} at ${point}`);
  process.kill(process.pid, { stand: 'SIGSTOP', kill: 'SIGKILL', segv: 'SIGSEGV' }[action] as NodeJS.Signals);
  // The signal may be delivered to another thread of this process, so this thread waits here until it takes effect.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, action === 'stand' ? 50 : 10_000);
}
