/**
 * `npm test` and `npm run test:long`: runs run.ts, and ends all that tests have started when this process or npm ends.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ancestors, identify, isAlive } from '../../infra/stack/process.ts';
import { runReaped } from './reaped.ts';

/** How often this process looks whether npm is still there: a killed npm tells its script nothing. */
const lookMs = 1_000;

endWithNpm();
process.exit(await runReaped([process.execPath, join(import.meta.dirname, 'run.js'), ...process.argv.slice(2)]));

function endWithNpm(): void {
  if (!isOfScript(process.pid)) return;
  const npm = identify(ancestors(process.pid).find((pid) => !isOfScript(pid)) ?? 0);
  setInterval(() => {
    if (npm === undefined || !isAlive(npm)) process.exit(1);
  }, lookMs).unref();
}

/** npm gives its script, and the shell between them, this variable, and does not have it. */
function isOfScript(pid: number): boolean {
  return /(?:^|\0)npm_lifecycle_event=/.test(readFileSync(`/proc/${pid}/environ`, 'latin1'));
}
