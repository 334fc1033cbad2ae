/** Limits of one sandboxed program. All its processes share them, unless a comment says otherwise. */
export interface SandboxLimits {
  /** Time from its start. */
  readonly wallMs: number;
  /** Processor time. */
  readonly cpuMs: number;
  /** Memory, with the files in /tmp and /dev/shm, which are memory too. */
  readonly memoryMb: number;
  /** Processes and their threads at a time. */
  readonly tasks: number;
  /** Bytes on stdout, and as many on stderr. */
  readonly outputBytes: number;
  /** Size of /tmp, of /dev/shm and of each file. */
  readonly diskMb: number;
  /** Open files of one process. */
  readonly openFiles: number;
}

/** The limits that stop a program. A full disk and too many open files are errors that the program sees. */
export type ExceededLimit = 'wall' | 'cpu' | 'memory' | 'tasks' | 'output';

const mib = (value: number) => `${value} MiB`;
const seconds = (milliseconds: number) => `${Number((milliseconds / 1000).toFixed(1))} s`;

/** The limit that stopped a program, in words: `it took more than 5 s`. */
export function showLimit(limit: ExceededLimit, limits: SandboxLimits): string {
  switch (limit) {
    case 'wall':
      return `it took more than ${seconds(limits.wallMs)}`;
    case 'cpu':
      return `it took more than ${seconds(limits.cpuMs)} of processor time`;
    case 'memory':
      return `it took more than ${mib(limits.memoryMb)} of memory`;
    case 'tasks':
      return `it ran more than ${limits.tasks} processes and threads at a time`;
    case 'output':
      return `it printed more than ${limits.outputBytes} bytes`;
  }
}
