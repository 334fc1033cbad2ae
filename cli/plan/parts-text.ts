/** What a process holds, in words. */
import { showBytes } from '../../core/quantities.ts';

/** `weights 3.5 GiB, moments 7.1 GiB`: parts that take memory, as the engine orders them. */
export function partsText(parts: Readonly<Record<string, number>>): string {
  return Object.entries(parts)
    .filter(([, bytes]) => bytes > 0)
    .map(([name, bytes]) => `${partNames[name] ?? name} ${showBytes(bytes)}`)
    .join(', ');
}

/** Names of parts that are not words. */
const partNames: Readonly<Record<string, string>> = {
  kvCache: 'KV cache',
  hostCopy: 'copy of the weights',
  probe: 'model of the check',
};
