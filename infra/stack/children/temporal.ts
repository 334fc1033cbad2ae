/** The Temporal dev server of the stack. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Tool } from '../../home.ts';
import { serverEnvironment } from '../../environment.ts';
import { temporalArgs, temporalRefusal } from '../../temporal/server.ts';
import type { ChildSpec } from '../child-spec.ts';
import { stackFolder } from '../state.ts';
import type { Endpoints } from '../state.ts';

/** Dynamic settings of the server, as `name=value` separated by commas; for tests of limits that are slow to reach. */
const settingsVariable = 'PETREL_TEMPORAL_SETTINGS';

export function temporalChild(home: string, tool: Tool, { temporalPort: port }: Endpoints): ChildSpec {
  const dbFile = join(stackFolder(home), 'temporal.db');
  return {
    name: 'temporal',
    kind: 'temporal',
    command: tool.path,
    args: temporalArgs({ dbFile, port, settings: process.env[settingsVariable]?.split(',') }),
    env: serverEnvironment(stackFolder(home)),
    isolated: true,
    prepare: () => setAsideForeignDatabase(dbFile, tool.version),
    isReady: async () => (await temporalRefusal(tool.path, port, stackFolder(home))) ?? true,
    readyTimeoutMs: 60_000,
    // Told to end, it takes a second. Killed, it loses nothing: its database is on disk before it answers.
    stopGraceMs: 0,
  };
}

/**
 * The dev server does not migrate its database between versions. A database of another version is kept beside the new
 * one. The runs' records are in the store, so the runs continue with `petrel resume`.
 */
function setAsideForeignDatabase(dbFile: string, version: string): void {
  const versionFile = `${dbFile}.version`;
  const previous = existsSync(versionFile) ? readFileSync(versionFile, 'utf8') : version;
  if (previous !== version) {
    console.log(
      `temporal ${version} starts with a new database; the one of ${previous} is kept as ${dbFile}.${previous}`,
    );
    for (const suffix of ['', '-wal', '-shm']) {
      if (existsSync(dbFile + suffix)) renameSync(dbFile + suffix, `${dbFile}.${previous}${suffix}`);
    }
  }
  writeFileSync(versionFile, version);
}
