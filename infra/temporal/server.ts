/** The Temporal dev server: its command line, and the check that it serves. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { serverEnvironment } from '../environment.ts';
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

/** Closed runs stay visible for 30 days; the server's default is one. The store keeps everything anyway. */
const retention = '720h';
const callTimeoutMs = 5_000;

/**
 * Why the server does not serve; undefined once it accepts work. The port accepts connections before the namespace
 * exists, so the check is a call that needs both: it sets the retention of closed runs. `home`: the folder that takes
 * the place of the user's home, as for the server.
 */
export async function temporalRefusal(temporal: string, port: number, home: string): Promise<string | undefined> {
  if (!(await acceptsConnections(port))) return `nothing accepts connections at ${loopback}:${port}`;
  const words = ['operator', 'namespace', 'update', '--namespace', 'default', '--retention', retention];
  const args = [...words, '--address', `${loopback}:${port}`];
  try {
    await promisify(execFile)(temporal, args, { timeout: callTimeoutMs, env: serverEnvironment(home) });
    return undefined;
  } catch (error) {
    const { stderr = '', message, killed } = error as Error & { readonly stderr?: string; readonly killed?: boolean };
    if (killed === true) return `its command line had no answer within ${callTimeoutMs / 1000} s`;
    return stderr.trim().split('\n').at(-1) || message;
  }
}
