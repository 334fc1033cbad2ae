/**
 * `node dist/tests/cloud/main.js [--port 0] [--options JSON]`: the test cloud as a process of its own. Prints one JSON
 * line with its endpoint and its account. SIGTERM ends it, and its machines end with it, however it ends.
 */
import { parseArgs } from 'node:util';
import type { CloudOptions } from './cloud.ts';
import { startTestCloud } from './server.ts';

const text = { type: 'string' } as const;
const { values } = parseArgs({ options: { port: text, options: text } });
const options = JSON.parse(values.options ?? '{}') as CloudOptions;
const { cloud, endpoint, close } = await startTestCloud({ ...options, port: Number(values.port ?? 0) });
console.log(JSON.stringify({ endpoint, account: cloud.account, folder: cloud.folder }));
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void close().then(() => process.exit(0)));
