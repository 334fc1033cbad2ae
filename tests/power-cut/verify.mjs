/**
 * `verify.mjs <built checkout>`: verifies the ledgers of the stores whose folders it reads, a line each, by that
 * checkout's own code, and answers with a line of JSON: an array of verdicts.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const dist = join(process.argv[2], 'dist');
// Commit 5ad3543 has this file in cli/.
const verifier = ['api/ledger/verify.js', 'cli/ledger/verify.js'].map((path) => join(dist, path)).find(existsSync);
const { verifyLedger } = await import(verifier);
const { openStore } = await import(join(dist, 'infra/store/open.js'));

for await (const folder of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify(await verdicts(folder))}\n`);

async function verdicts(folder) {
  if (!existsSync(folder)) return [];
  const store = await openStore(folder, 'refuse');
  const found = [];
  for (const name of await store.children('runs/')) {
    const runId = name.replace('/', '');
    if ((await store.head(`runs/${runId}/run.json`)) === undefined) continue; // the id of this run is not claimed yet
    const { state, position, faults } = await verifyLedger(store, runId);
    found.push({ runId, state, position, faults });
  }
  return found;
}
