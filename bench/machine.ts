/** Describes the machine on which the figures were measured. */
import { spawnSync } from 'node:child_process';
import { cpus, totalmem } from 'node:os';
import { packageRoot } from '../infra/home.ts';
import { peakClass } from '../native/index.ts';
import { describeLowering } from './lowering.ts';
import type { BenchSettings } from './measurement.ts';
import { bestClass, readProcessor } from './processor.ts';

/**
 * One line: processor, cores, memory, class of instructions, precision, Node, commit, and whether a side is lowered.
 */
export function describeMachine({ precision, threads }: BenchSettings, env: NodeJS.ProcessEnv): string {
  const processor = readProcessor();
  const name = cpus()[0]?.model.trim() ?? 'unknown processor';
  const numbers =
    processor === undefined
      ? ''
      : `, family ${processor.family}, model ${processor.model}, stepping ${processor.stepping} (${processor.flags.join(' ')})`;
  const lowered = processor === undefined ? undefined : describeLowering(env, bestClass(processor));
  return [
    `${name}${numbers}`,
    `${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB`,
    `class ${peakClass(precision)}, ${precision}, ${threads} threads`,
    `Node ${process.version}`,
    ...commit(),
    ...(lowered === undefined ? [] : [lowered]),
  ].join('; ');
}

/** The commit of a checkout; `-dirty` when files differ from it. */
function commit(): string[] {
  const { status, stdout } = spawnSync('git', ['describe', '--always', '--dirty'], {
    cwd: packageRoot(),
    encoding: 'utf8',
  });
  return status === 0 ? [`commit ${stdout.trim()}`] : [];
}
