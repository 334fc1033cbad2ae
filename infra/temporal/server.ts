/** The Temporal dev server: its command line, and the check that it serves. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { acceptsConnections, loopback } from '../ports.ts';

export interface TemporalServerOptions {
  readonly dbFile: string;
  readonly port: number;
  /** Dynamic settings, `name=value`. */
  readonly settings?: readonly string[] | undefined;
}

/**
 * Arguments of `temporal`.
 *
 * The server has no web page, and its HTTP API answers 403 to every host name, because any page in the user's browser
 * could send requests to it. The API cannot be switched off.
 *
 * WAL and synchronous=NORMAL survive a killed process and cost no fsync per task. With the default of one queue poll
 * per 50 ms, an iteration of four activities would wait 170 ms; with 1,000 polls per second it is 31 ms.
 */
export function temporalArgs({ dbFile, port, settings = [] }: TemporalServerOptions): string[] {
  return [
    ...[
      'server',
      'start-dev',
      '--ip',
      loopback,
      '--port',
      String(port),
      '--db-filename',
      dbFile,
      '--log-level',
      'warn',
    ],
    '--headless',
    ...['--dynamic-config-value', 'frontend.httpAllowedHosts=[]'],
    ...['--sqlite-pragma', 'journal_mode=WAL', '--sqlite-pragma', 'synchronous=NORMAL'],
    ...['--dynamic-config-value', 'history.transferProcessorMaxPollRPS=1000'],
    ...['--dynamic-config-value', 'history.timerProcessorMaxPollRPS=1000'],
    ...settings.flatMap((setting) => ['--dynamic-config-value', setting]),
  ];
}

/**
 * The server needs its user's name and home. It is built without cgo, so for a user id without a passwd entry it reads
 * USER and HOME, and does not start without them.
 */
export function temporalEnv(home: string, env: NodeJS.ProcessEnv = process.env): Readonly<Record<string, string>> {
  return {
    TEMPORAL_VERSION_CHECK_DISABLED: '1',
    USER: env['USER'] || String(process.getuid?.() ?? 'petrel'),
    HOME: env['HOME'] || home,
  };
}

/** Closed runs stay visible for 30 days; the server's default is one. The store keeps everything anyway. */
const retention = '720h';
const callTimeoutMs = 5_000;

/**
 * True once the server accepts work. The port accepts connections before the namespace exists, so the check is a call
 * that needs both: it sets the retention of closed runs.
 */
export async function isTemporalReady(temporal: string, port: number): Promise<boolean> {
  if (!(await acceptsConnections(port))) return false;
  const args = [
    'operator',
    'namespace',
    'update',
    '--namespace',
    'default',
    '--retention',
    retention,
    '--address',
    `${loopback}:${port}`,
  ];
  return promisify(execFile)(temporal, args, { timeout: callTimeoutMs }).then(
    () => true,
    () => false, // not yet: the caller polls until its timeout
  );
}
