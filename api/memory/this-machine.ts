/** What plans need to know of the machine on which they are made. */
import { readFileSync } from 'node:fs';
import { machineBytes } from '../../infra/machine-memory.ts';
import type { MachineMemory } from './processes.ts';

export const thisMachine = (): MachineMemory => ({
  bytes: machineBytes(),
  bf16: /\bavx512_bf16\b/.test(readFileSync('/proc/cpuinfo', 'utf8')),
});
