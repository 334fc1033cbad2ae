/** Entry of a worker process of the fleet. */
import { randomBytes } from 'node:crypto';
import { timings } from '../core/wire/messages.ts';
import { identityText } from '../core/wire/worker-identity.ts';
import { ec2Notice, metadataVariable } from '../infra/fleet/ec2-notice.ts';
import { firstNotice, signalNotice } from '../infra/fleet/notice.ts';
import type { Notice } from '../infra/fleet/notice.ts';
import { buildId, petrelHome } from '../infra/home.ts';
import { connectNats } from '../infra/nats/connection.ts';
import { servesStore } from '../infra/stack/driven-runs.ts';
import { instanceName } from '../infra/stack/identity.ts';
import {
  announceReady,
  asWorker,
  keepStack,
  predecessorVariable,
  stackFromEnv,
  workerGraceMs,
} from '../infra/stack/index.ts';
import { goodbyeMs, within } from './drain.ts';
import { workerOptions } from './options.ts';
import { Worker } from './worker.ts';

const options = { ...workerOptions(process.argv.slice(2)), predecessorEnded: process.env[predecessorVariable] };
const instance = instanceName(petrelHome());
const identity = { instance, worker: options.name, incarnation: randomBytes(6).toString('hex') };
const nc = await connectNats(asWorker(stackFromEnv(), instance), identityText(identity));
const worker = new Worker(options, {
  nc,
  identity,
  stackInstance: instance,
  timing: timings.local,
  home: petrelHome(),
  isKnownStore: (url) => servesStore(petrelHome(), url),
  die: (error) => {
    console.error(error);
    process.exit(1);
  },
  renew: () => void leave(),
  build: { own: buildId(), ofStack: () => stackFromEnv().build },
});
await worker.start();
announceReady();

// The check of the supervisor must survive the control process, so every process of the stack has it.
const leaving = new AbortController();
void keepStack(petrelHome(), leaving.signal, (line) => console.log(line));

const leave = async (notice?: Notice) => {
  leaving.abort();
  await worker.stop(notice);
  await within(goodbyeMs, nc.drain()); // also sends back messages that have come meanwhile
  process.exit(0);
};
const notices = [signalNotice(workerGraceMs)];
if (options.notice === 'ec2')
  notices.push(ec2Notice({ endpoint: process.env[metadataVariable], log: (line) => console.log(line) }));
firstNotice(notices)((notice) => void leave(notice));
