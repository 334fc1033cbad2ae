// @module-tag long
/** What another user of the machine can do to a running stack through its ports on the loopback interface. */
import { spawn } from 'node:child_process';
import { existsSync, lchownSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { finish, PetrelUser, root } from './petrel.ts';
import type { Ran } from './petrel.ts';
import { portsOf } from './ports.ts';
import { patienceMs } from '../patience.ts';

interface Server {
  readonly address: string;
  readonly pid: number;
}

/** Fields of the output of `petrel up --json`. */
interface Stack {
  readonly temporal: { readonly address: string };
  readonly children: readonly { readonly name: string; readonly pid: number }[];
}

/** `nobody` is neither the owner of the stack nor in one of the owner's groups. */
const otherUser = 65534;
const isRoot = process.getuid?.() === 0;
if (!isRoot) console.warn('skipped: only root can start a process of another user, which these tests need');

describe.skipIf(!isRoot)('another user of the machine', () => {
  const owner = new PetrelUser();
  const intruder = new PetrelUser();
  const loot = join(intruder.folder, 'loot');
  const secret = join(owner.home, 'secret');
  let temporal: Server;

  beforeAll(async () => {
    writeFileSync(secret, 'only the owner reads this', { mode: 0o600 });
    const up = await owner.petrel('up', '--json');
    expect(up.code, up.err).toBe(0);
    const { temporal: server, children } = up.json<Stack>();
    temporal = { ...server, pid: Number(children.find(({ name }) => name === 'temporal')?.pid) };
  });
  afterAll(() => Promise.all([owner.remove(), intruder.remove()]));

  /**
   * Runs a script as the other user, and reads the one line of JSON that it prints. The Temporal client is loaded
   * before the process becomes the other user, who may have no right to read this folder.
   */
  async function asIntruder<T>(script: string): Promise<T> {
    const file = intruder.write(
      'intrude.mjs',
      `import { createRequire } from 'node:module';
       const require = createRequire(${JSON.stringify(join(root, 'package.json'))});
       const { Client, Connection } = require('@temporalio/client');
       process.setgroups([]);
       process.setgid(${otherUser});
       process.setuid(${otherUser});
       const connection = await Connection.connect({ address: ${JSON.stringify(temporal.address)} });
       const client = new Client({ connection });
       ${script}
       await connection.close();`,
    );
    giveTo(otherUser, dirname(intruder.folder));
    const child = spawn(process.execPath, [file], {
      cwd: intruder.folder,
      env: { PATH: process.env['PATH'] },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ran: Ran = await finish(child, 'the intruder');
    expect(ran.code, ran.err).toBe(0);
    return ran.json<T>();
  }

  /** A run with the intruder's scorer in the intruder's store. No stack drives it. */
  async function runOfIntruder(): Promise<{ runId: string; store: string }> {
    intruder.write(
      'steal.mjs',
      `import { readFileSync, writeFileSync } from 'node:fs';
       export function computeScore() {
         writeFileSync(${JSON.stringify(loot)}, readFileSync(${JSON.stringify(secret)}));
         return 1;
       }`,
    );
    intruder.recipe('recipe.yaml', {
      store: './store',
      reward: { scorer: null, custom_reward_function: { path: './steal.mjs' } },
    });
    for (const words of [
      ['up', '--workers', '0'],
      ['run', 'recipe.yaml', '--name', 'steal', '--detach', '--json'],
      ['down'],
    ]) {
      const ran = await intruder.petrel(...words);
      expect(ran.code, ran.err).toBe(0);
    }
    const store = join(intruder.folder, 'store');
    const [runId] = readdirSync(join(store, 'runs'));
    rmSync(loot, { force: true }); // `run` has called the scorer once, as the intruder
    return { runId: String(runId), store: pathToFileURL(store).href };
  }

  it('cannot let the stack of another user run their own scorer', async () => {
    const run = await runOfIntruder();
    const { ended } = await asIntruder<{ ended: string }>(
      `const handle = await client.workflow.start('trainRun', {
         taskQueue: 'petrel', workflowId: ${JSON.stringify(run.runId)}, args: [${JSON.stringify(run)}],
       });
       const ended = await handle.result().then(() => 'completed', (error) => error.name);
       console.log(JSON.stringify({ ended }));`,
    );
    expect(existsSync(loot) ? `the scorer read: ${readFileSync(loot, 'utf8')}` : 'the scorer was not run').toBe(
      'the scorer was not run',
    );
    expect(ended).toBe('WorkflowFailedError');
  });

  it('cannot change another user’s run with a signal', async () => {
    owner.recipe('recipe.yaml', { trainer: { total_training_steps: 40, save_freq: 100 } });
    const running = finish(
      owner.start(['run', 'recipe.yaml', '--name', 'mine', '--wait', '--json'], { stdio: ['ignore', 'pipe', 'pipe'] }),
      'petrel run',
    );
    const { signalled } = await asIntruder<{ signalled: string }>(
      `let found;
       while (found === undefined) {
         for await (const one of client.workflow.list({ query: 'WorkflowType = "trainRun" AND ExecutionStatus = "Running"' }))
           found = one.workflowId;
       }
       await client.workflow.getHandle(found).signal('wish', 'cancel');
       console.log(JSON.stringify({ signalled: found }));`,
    );
    expect(signalled).toMatch(/^mine-/);
    const ran = await running;
    expect(ran.code, `${ran.out}\n${ran.err}`).toBe(0);
    const status = await owner.petrel('status', 'mine', '--json');
    expect(status.out).toContain('"completed"');
  });

  it('gets no answer from an HTTP port to a request that a web page may send', async () => {
    const answers = await Promise.all(portsOf(temporal.pid).map(crossOriginStart));
    expect(answers.filter(({ status }) => status === 200)).toEqual([]);
    expect(answers.map(({ status }) => status)).toContain(403); // one of the ports is the HTTP port
  });
});

/** Starts a workflow by HTTP, as a form on a web page could: the browser asks for no preflight with `text/plain`. */
async function crossOriginStart(port: number): Promise<{ port: number; status: number | string }> {
  const url = `http://127.0.0.1:${port}/api/v1/namespaces/default/workflows/from-a-web-page-${port}`;
  const body = JSON.stringify({ workflowType: { name: 'trainRun' }, taskQueue: { name: 'petrel' } });
  try {
    const headers = { 'content-type': 'text/plain', origin: 'http://a-web-page.example' };
    const { status } = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(patienceMs) });
    return { port, status };
  } catch (error) {
    return { port, status: String(error) }; // this port does not speak HTTP
  }
}

function giveTo(user: number, folder: string): void {
  lchownSync(folder, user, user);
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    lchownSync(join(folder, path), user, user);
}
