/** The supervisor's process: `supervisor.js <PETREL_HOME> [--only-if-up]`. Started detached by `ensureStack`. */
import { existsSync, rmSync, unwatchFile, watchFile } from 'node:fs';
import { errorToJson } from '../../core/errors.ts';
import { tryLock } from './lock.ts';
import { configFile, lockFolder, makeStackFolder, onlyIfUp, stackFile } from './state.ts';
import { Supervisor } from './supervisor.ts';

const configCheckMs = 100;
const folderCheckMs = 2_000;

const home = homeArgument();

const log = (line: string): void => console.log(`${new Date().toISOString()} ${line}`);

// A full disk must not end the supervision of the processes. Writes that failed are repeated later.
process.on('uncaughtException', (error: NodeJS.ErrnoException) => {
  log(`supervisor: ${error.stack ?? error.message}`);
  if (error.code !== 'ENOSPC') process.exit(1);
});

if (wasStopped()) process.exit(0); // before it makes the folder of the stack again
makeStackFolder(home);
const lock = takeLock();
if (wasStopped()) {
  lock.release();
  process.exit(0);
}

let supervisor: Supervisor;
try {
  supervisor = await Supervisor.start(home, log);
} catch (error) {
  const { message, hint } = errorToJson(error);
  log(`the stack cannot be started: ${message}${hint === undefined ? '' : ` → ${hint}`}`);
  process.exit(1);
}
log(`supervisor ${process.pid} serves ${home}`);

// Polls with stat, because shared machines have few kernel watches and network folders have none.
watchFile(configFile(home), { interval: configCheckMs }, () => void applyConfig());
const folderCheck = setInterval(() => {
  if (!supervisor.hasFolder) void end('the folder of the stack is gone');
}, folderCheckMs);
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void end(signal));
process.on('SIGHUP', () => {}); // the stack continues after its shell has ended
await applyConfig(); // in case the file was written before the watch started

async function applyConfig(): Promise<void> {
  try {
    await supervisor.applyConfig();
  } catch (error) {
    log(`the new configuration was not applied: ${errorToJson(error).message}`);
  }
}

let ending: Promise<void> | undefined;

function end(why: string): Promise<void> {
  ending ??= (async () => {
    log(`ending: ${why}`);
    unwatchFile(configFile(home));
    clearInterval(folderCheck);
    await supervisor.stop();
    if (supervisor.hasFolder) {
      rmSync(stackFile(home), { force: true });
      lock.release();
    }
    log('the stack is down');
    process.exit(0);
  })();
  return ending;
}

function homeArgument(): string {
  const path = process.argv[2];
  if (path === undefined) throw new Error('usage: supervisor.js <PETREL_HOME> [--only-if-up]');
  return path;
}

/** Ends this process when another supervisor holds the lock of this home. */
function takeLock() {
  const taken = tryLock(lockFolder(home));
  if (taken) return taken;
  log('another supervisor serves this home');
  return process.exit(0);
}

/** Whether this process was to replace a dead supervisor, and the user has stopped the stack since. */
function wasStopped(): boolean {
  if (!process.argv.includes(onlyIfUp) || existsSync(stackFile(home))) return false;
  log('the stack was stopped');
  return true;
}
