// @module-tag long
/** A worker that loads a model from a slow store keeps its job, however long the loading takes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type S3Server, startSeaweed } from '../s3-servers.ts';
import { PetrelUser, root } from './petrel.ts';
import { environmentOf, seenWorker, until } from './second-worker.ts';

/**
 * A worker loses its job after this time without committed work. Loading the weights (3.7 MB) takes four times as long.
 */
const stallMs = 3_000;
const bytesPerSecond = 300_000;

const folder = mkdtempSync(join(tmpdir(), 'petrel-slow-'));
const user = new PetrelUser();
const workers: ChildProcess[] = [];
let server: S3Server;
let slow: Server;

/** A proxy that sends the weights of a model slowly. */
function startSlowProxy(target: string): Server {
  const { hostname, port } = new URL(target);
  return createServer((request, reply) => {
    const { method, headers, url: path } = request;
    const onward = httpRequest({ hostname, port, method, path, headers, agent: false }, async (answer) => {
      reply.writeHead(answer.statusCode ?? 502, answer.headers);
      const isSlow = method === 'GET' && path?.includes('.safetensors') === true;
      for await (const chunk of answer) {
        const bytes = chunk as Buffer;
        for (let at = 0; at < bytes.length; at += 32_768) {
          const piece = bytes.subarray(at, at + 32_768);
          if (isSlow) await delay((1000 * piece.length) / bytesPerSecond);
          if (!reply.write(piece)) await once(reply, 'drain');
        }
      }
      reply.end();
    });
    onward.on('error', () => reply.destroy());
    request.pipe(onward);
  }).listen(0, '127.0.0.1');
}

/** A worker with a short stall limit, which prints the id of each job that it starts. */
const program = `
const [root, name, home, stallMs] = process.argv.slice(2);
const load = (path) => import(root + '/dist/' + path);
const { timings } = await load('core/wire/messages.js');
const { connectNats } = await load('infra/nats/connection.js');
const { asWorker, stackFromEnv } = await load('infra/stack/index.js');
const { instanceName } = await load('infra/stack/identity.js');
const { Worker } = await load('workers/worker.js');
const instance = instanceName(process.env.PETREL_HOME);
const nc = await connectNats(asWorker(stackFromEnv(), instance), name);
const publish = nc.publish.bind(nc);
nc.publish = (subject, text, options) => {
  if (subject.startsWith('presence.')) JSON.parse(text).jobs.forEach((job) => console.log(job));
  return publish(subject, text, options);
};
const timing = { ...timings.loopback, stallMs: Number(stallMs) };
const end = () => process.exit(1);
const identity = { instance, worker: name, incarnation: name };
const ports = { nc, identity, stackInstance: instance, timing, home, isKnownStore: () => true, die: end, renew: end };
await new Worker({ roles: ['trainer', 'rollout', 'reward'], threads: 1 }, ports).start();
`;

beforeAll(async () => {
  server = await startSeaweed(folder);
  server.use('slow');
  slow = startSlowProxy(server.endpoint);
  await once(slow, 'listening');
  const endpoint = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`;
  const up = await user.petrelWith({ env: { AWS_ENDPOINT_URL: endpoint } }, 'up');
  expect(up.code, up.err).toBe(0);
});
afterAll(async () => {
  for (const worker of workers) worker.kill('SIGKILL');
  await user.remove();
  slow?.close();
  slow?.closeAllConnections();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});

it('a job stays with the one worker that loads the base for it', async () => {
  const script = user.write('worker.mjs', program);
  const own = await seenWorker(user, 'local-1', () => true);
  const env = environmentOf(own.pid);
  for (const variable of ['PETREL_CHILD_KIND', 'PETREL_READY_FILE']) delete env[variable];
  const jobs = new Map<string, Set<string>>();
  process.kill(own.pid, 'SIGSTOP');
  try {
    for (const name of ['slow-1', 'slow-2']) {
      const home = join(folder, name);
      mkdirSync(home);
      const child = spawn(process.execPath, [script, root, name, home, String(stallMs)], {
        env: { ...env, PETREL_CHILD: name },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      workers.push(child);
      child.stdout?.on('data', (text: Buffer) => {
        for (const job of text.toString().trim().split('\n')) jobs.set(job, (jobs.get(job) ?? new Set()).add(name));
      });
      await seenWorker(user, name, () => true);
    }
    user.recipe('slow.yaml', { store: 's3://petrel-tests/slow' });
    const run = await user.petrel('run', 'slow.yaml', '--name', 'slow', '--detach');
    expect(run.code, run.err).toBe(0);
    const holders = await until('the end of its loading', async () => {
      const opened = [...jobs].find(([job]) => job.startsWith('open-'))?.[1];
      const { state } = (await user.petrel('status', 'slow', '--json')).json<{ readonly state: string }>();
      return opened !== undefined && (state !== 'queued' || opened.size > 1) ? [...opened] : undefined;
    });
    expect(holders, 'workers that had the job').toHaveLength(1);
  } finally {
    process.kill(own.pid, 'SIGCONT');
  }
});
