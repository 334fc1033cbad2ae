/** Memory and processor time of another process, from /proc. */
import { readFileSync } from 'node:fs';

/** Clock ticks per second of /proc: always 100 on Linux. */
const ticksPerSecond = 100;

export function processFigures(pid: number): { readonly peakMb: number; readonly cpuSeconds: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const [, peakKb] = /^VmHWM:\s+(\d+) kB$/m.exec(status) ?? [];
  // The name of the program is in brackets and may contain spaces.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  return { peakMb: Number(peakKb) / 1024, cpuSeconds: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond };
}
