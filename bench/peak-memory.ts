/** Peak memory of this process, in bytes. */
import { readFileSync } from 'node:fs';

/** Linux' own high-water mark; `getrusage` would count the parent's memory from before exec. */
export function peakResidentBytes(): number {
  try {
    const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
    if (kilobytes !== undefined) return Number(kilobytes) * 1024;
  } catch {
    // not Linux
  }
  return process.resourceUsage().maxRSS * 1024;
}
