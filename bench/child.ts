/**
 * A measurement in a separate process: `child.js <measurement> <settings as JSON>`. Prints `{"ready", "about"}` when
 * warm, then answers each line on stdin with the figures of one turn, and exits when stdin ends.
 */
import { createInterface } from 'node:readline';
import type { BenchSettings } from './measurement.ts';
import { MEASUREMENTS } from './registry.ts';

const [name, settings] = process.argv.slice(2);
const measurement = MEASUREMENTS.find((one) => one.name === name);
if (measurement === undefined || settings === undefined) throw new Error(`no measurement is called ${name}`);

const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);
const session = await measurement.open(JSON.parse(settings) as BenchSettings);
try {
  say({ ready: true, about: session.about });
  for await (const _ of createInterface({ input: process.stdin })) say(await session.turn());
} finally {
  await session.close();
}
