/** Processor time of a stack. */
import { readFileSync } from 'node:fs';
import { processesWith } from '../../infra/stack/process.ts';

/** Ticks of /proc in a second: fixed in the interface of Linux. */
const ticksPerSecond = 100;

/** Seconds, user and system, of the living processes with this PETREL_HOME and of the children that they waited for. */
export function processorSeconds(home: string): number {
  return processesWith('PETREL_HOME', home).reduce((sum, { pid }) => sum + ticksOf(pid), 0) / ticksPerSecond;
}

/** 0 for a process that has ended. */
function ticksOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // After the name, which may contain spaces: utime, stime, cutime and cstime are fields 14 to 17 of the line.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  } catch {
    return 0;
  }
}
