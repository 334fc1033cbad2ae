import { totalmem } from 'node:os';

/** Bytes of memory of this machine, or what a container is limited to. */
export const machineBytes = (): number => Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
