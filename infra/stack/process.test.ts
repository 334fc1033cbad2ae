import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { isPortFree } from '../ports.ts';
import { identify, isAlive, signalProcess, waitForExit } from './process.ts';

/** The first thread ends alone (system call 60 is `exit`); another one keeps a port open. */
const program = `
import ctypes, socket, threading, time
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=time.sleep, args=(86400,)).start()
print(server.getsockname()[1], flush=True)
ctypes.CDLL(None).syscall(60, 0)
`;

it('a process is alive until its last thread has ended, and its ports are free afterwards', async () => {
  const child = spawn('python3', ['-c', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const identity = identify(child.pid ?? 0);
  if (identity === undefined) return expect.fail('python3 did not start');
  try {
    const port = Number(String(await once(child.stdout, 'data')));
    expect(await waitForExit(identity, 500)).toBe(false);
    expect([isAlive(identity), await isPortFree(port)]).toEqual([true, false]);
    signalProcess(identity, 'SIGKILL');
    expect(await waitForExit(identity, 10_000)).toBe(true);
    expect(await isPortFree(port)).toBe(true);
  } finally {
    child.kill('SIGKILL');
  }
});
