/**
 * Twelve promises that are not awaited, one per line, each after `// floating`: promises of this project, of Node, of
 * interfaces, in lists, maps and conditions. `npm run lint` must report each of them; floating-promises.test.ts checks
 * this.
 */
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Store } from '../../core/ports/store.ts';

interface Port {
  get(key: string): Promise<string>;
  go?(): Promise<void>;
}

const later = async () => 1;
const same = <T>(value: T): T => value;

export function floating(port: Port, ports: Map<string, Port>, store: Store, list: readonly Port[], now: boolean) {
  later(); // floating
  port.get('a'); // floating
  readFile('x'); // floating
  delay(5); // floating
  store.get('k'); // floating
  same(later()); // floating
  for (const one of list) one.get('c'); // floating
  ports.get('x')?.get('d'); // floating
  list.map((one) => one.get('a')); // floating
  port.go?.(); // floating
  now ? later() : port.get('e'); // floating
  Promise.all([later(), port.get('f')]); // floating
  later().finally(() => undefined); // floating
}

export async function awaited(port: Port): Promise<void> {
  await port.get('a');
  void port.get('b');
  port.get('c').catch(() => undefined);
}
