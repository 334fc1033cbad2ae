/** The open ports of processes, from /proc. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** TCP ports on which a process listens. */
export function portsOf(pid: number): number[] {
  const open = readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
  const lines = readFileSync(`/proc/${pid}/net/tcp`, 'utf8').split('\n').slice(1);
  const listens = '0A';
  const ports = lines.flatMap((line) => {
    const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
    return state === listens && open.includes(`socket:[${inode}]`)
      ? [Number.parseInt(local.split(':')[1] ?? '', 16)]
      : [];
  });
  return [...new Set(ports)];
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ''; // this descriptor was closed after the folder was read
  }
}
