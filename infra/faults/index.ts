/**
 * The one fault injector's side inside the processes. Inert unless PETREL_FAULTS names a folder: then a process that
 * comes to a point which an armed fault names writes down that it stands there, and does what the fault says. Who arms
 * faults and acts on processes from outside is tests/inject.ts.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { faultPoints } from './points.ts';
import type { FaultFacts, FaultPoint } from './points.ts';

export type { FaultFacts, FaultPoint } from './points.ts';

export const faultsVariable = 'PETREL_FAULTS';
/** Set by the supervisor for its children. */
const childVariable = 'PETREL_CHILD';

const armedFault = z.object({
  /** Name of the fault, and of its files. */
  id: z.string().regex(/^[\w.-]+$/),
  point: z.enum(faultPoints),
  /** Only in processes of this name (`control`, `local-1`); any when absent. */
  process: z.string().optional(),
  /** Only where the point's facts are these. */
  facts: z.record(z.string(), z.union([z.string(), z.number()])).default({}),
  /** At the how manyth time that a process comes there. */
  nth: z.int().positive().default(1),
  /** `stand`: the whole process stops (SIGSTOP) until somebody acts on it. `note`: it goes on, and that it was here is known. */
  action: z.enum(['stand', 'note', 'kill', 'segv', 'throw']),
  /** Every time from the nth on, in every process: a poison. Otherwise once in all. */
  always: z.boolean().default(false),
});
export type ArmedFault = z.input<typeof armedFault>;

/** What a process wrote before it acted. */
export interface FiredFault {
  readonly id: string;
  readonly pid: number;
  readonly process: string;
  readonly point: FaultPoint;
  readonly facts: FaultFacts;
}

/** Folder of armed faults, and of those that have fired, under PETREL_FAULTS. */
export const armedFolder = (root: string): string => join(root, 'armed');
export const firedFolder = (root: string): string => join(root, 'fired');

const root = process.env[faultsVariable];
/** Visits of this thread to a fault's point, by fault. */
const visits = new Map<string, number>();

/**
 * Says that the caller stands at `point`. Does nothing in production. Throws an ordinary Error for a fault of kind
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

/** None when it was disarmed just now. */
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
    return []; // nothing is armed yet
  }
}

/** False when the fault has fired already: the file is created once, whoever comes first. */
function writeDown(folder: string, fault: z.infer<typeof armedFault>, facts: FaultFacts): boolean {
  const fired: FiredFault = {
    id: fault.id,
    pid: process.pid,
    process: process.env[childVariable] ?? '',
    point: fault.point,
    facts,
  };
  mkdirSync(firedFolder(folder), { recursive: true });
  try {
    const name = fault.always ? `${fault.id}.${process.pid}.${visits.get(fault.id)}` : fault.id;
    writeFileSync(join(firedFolder(folder), `${name}.json`), JSON.stringify(fired), { flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
  writeSync(2, `fault ${fault.id}: at ${fault.point} ${JSON.stringify(facts)}, ${fault.action}\n`);
  return true;
}

function act({ id, point, action }: z.infer<typeof armedFault>): void {
  if (action === 'note') return;
  if (action === 'throw') throw new Error(`injected fault ${id} at ${point}`);
  process.kill(process.pid, { stand: 'SIGSTOP', kill: 'SIGKILL', segv: 'SIGSEGV' }[action] as NodeJS.Signals);
  // Another thread of this process may be the one that takes the signal; nothing may be done past the point meanwhile.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, action === 'stand' ? 50 : 10_000);
}
