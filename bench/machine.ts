/** What the figures were measured on. */
import { cpus, totalmem } from 'node:os';
import { engineInfo } from '../native/index.ts';
import type { BenchSettings } from './measurement.ts';

/** One line: processor, cores, memory, instruction set, precision, Node. */
export function describeMachine({ precision, threads }: BenchSettings): string {
  const model = cpus()[0]?.model.trim() ?? 'unknown processor';
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  return `${model}, ${cpus().length} cores, ${memory}; ${engineInfo().isa}, ${precision}, ${threads} threads; Node ${process.version}`;
}
