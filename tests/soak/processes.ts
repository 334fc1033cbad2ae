/** The resources of a stack's processes, from /proc: memory, file handles, threads, listening ports. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { stackVariable } from '../../infra/stack/child-spec.ts';
import { strangers } from '../../infra/stack/adoption.ts';
import { lockHolder } from '../../infra/stack/lock.ts';
import { readStack } from '../../infra/stack/index.ts';
import { processesWith } from '../../infra/stack/process.ts';
import { lockFolder, stackFile } from '../../infra/stack/state.ts';

/** One process after a round, when it is idle. */
export interface ProcessSample {
  readonly round: number;
  /** `worker`, `control`, `nats`, `temporal`, `supervisor`, `scorer`. */
  readonly kind: string;
  /** Unique for every process, also if a pid is used again. */
  readonly incarnation: string;
  readonly residentMiB: number;
  readonly handles: number;
  readonly threads: number;
}

export interface Census {
  readonly samples: readonly ProcessSample[];
  /** Processes that belong to this stack, but were started neither by it nor by its children. */
  readonly orphans: readonly string[];
  readonly ports: readonly number[];
}

export function takeCensus(home: string, round: number): Census {
  const supervisor = lockHolder(lockFolder(home));
  const children = readStack(home)?.children ?? [];
  const kinds = new Map<number, string>(
    children.flatMap(({ pid, kind }) => (pid === undefined ? [] : [[pid, kind] as const])),
  );
  if (supervisor !== undefined) kinds.set(supervisor.pid, 'supervisor');
  const kept = [
    ...(supervisor === undefined ? [] : [supervisor]),
    ...children.flatMap(({ pid, startTime }) =>
      pid === undefined || startTime === undefined ? [] : [{ pid, startTime }],
    ),
  ];
  const listed = [...(supervisor === undefined ? [] : [supervisor]), ...processesWith(stackVariable, stackFile(home))];
  const samples = listed.flatMap(({ pid, startTime }) => {
    const held = heldBy(pid);
    return held === undefined
      ? []
      : [{ round, kind: kinds.get(pid) ?? 'scorer', incarnation: `${pid}-${startTime}`, ...held }];
  });
  return {
    samples,
    orphans: strangers(home, kept).map(({ pid, args }) => `${pid} ${args.join(' ').slice(0, 120)}`),
    ports: listeningPorts(listed.map(({ pid }) => pid)),
  };
}

/** Undefined when the process has just ended. */
function heldBy(pid: number): Pick<ProcessSample, 'residentMiB' | 'handles' | 'threads'> | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const field = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
    return {
      residentMiB: field('VmRSS') / 1024,
      handles: readdirSync(`/proc/${pid}/fd`).length,
      threads: field('Threads'),
    };
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/** Ports on which these processes listen, ascending. */
export function listeningPorts(pids: readonly number[]): number[] {
  const inodes = new Set(pids.flatMap(socketsOf));
  const lines = ['tcp', 'tcp6'].flatMap((name) => readFileSync(`/proc/net/${name}`, 'utf8').split('\n').slice(1));
  const listening = '0A';
  const ports = lines
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[3] === listening && inodes.has(fields[9] ?? ''));
  return [...new Set(ports.map((fields) => Number.parseInt(fields[1]?.split(':')[1] ?? '', 16)))].sort((a, b) => a - b);
}

function socketsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
      } catch (error) {
        if (isGone(error)) return [];
        throw error;
      }
    });
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

const isGone = (error: unknown): boolean =>
  ['ENOENT', 'ESRCH', 'EACCES'].includes(String((error as NodeJS.ErrnoException).code));
