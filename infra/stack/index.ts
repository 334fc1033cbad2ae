/** The embedded local stack: Temporal, NATS, the control process and the local fleet, under one supervisor. */
export { ensureStack, keepStack, replaceOtherBuild, requireSetUp, setPools } from './up.ts';
export type { EnsureStackOptions } from './up.ts';
export { stopStack } from './down.ts';
export { readStack, stackFromEnv } from './read.ts';
export { stackHealth } from './health.ts';
export type { StackHealth } from './health.ts';
export { announceReady } from './ready.ts';
export { predecessorVariable } from './child-spec.ts';
export { workerGraceMs } from './children/worker.ts';
export { logFile, logTail } from './logs.ts';
export { defaultPools } from './state.ts';
export type { ChildState, StackInfo, WorkerPool } from './state.ts';
export { parseListenAddress } from './listen.ts';
export type { ListenAddress } from './listen.ts';
export { leftMachines, LeftMachines } from './left-machines.ts';
export type { LeftMachine } from './left-machines.ts';
export { stackName } from './identity.ts';
export { asWorker } from './nats-secrets.ts';
