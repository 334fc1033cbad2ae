/** What plans need to know of the machine on which they are made. */
import { readFileSync } from 'node:fs';
import { chosenEnvironment } from '../../infra/engines/environment.ts';
import { machineBytes } from '../../infra/machine-memory.ts';
import type { MachineMemory } from './processes.ts';

/** `home`: whose engines say where they compute. How much memory cards have, only their engines know when they run. */
export const thisMachine = (home: string): MachineMemory => ({
  bytes: machineBytes(),
  bf16: /\bavx512_bf16\b/.test(readFileSync('/proc/cpuinfo', 'utf8')),
  cardBytes: (engine) => (chosenEnvironment(home, engine)?.device === 'cuda' ? Number.POSITIVE_INFINITY : undefined),
});
