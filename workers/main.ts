/** Entry of a worker process of the fleet. */
import { randomBytes } from 'node:crypto';
import { timingAt, timings } from '../core/wire/messages.ts';
import { identityText } from '../core/wire/worker-identity.ts';
import { metadataVariable } from '../infra/fleet/ec2-metadata.ts';
import { ec2Notice } from '../infra/fleet/ec2-notice.ts';
import { firstNotice, signalNotice } from '../infra/fleet/notice.ts';
import type { Notice } from '../infra/fleet/notice.ts';
import { gpusHere } from '../infra/engines/gpu-facts.ts';
import { petrelHome } from '../infra/home.ts';
import { connectNats } from '../infra/nats/connection.ts';
import { RoundTrip } from '../infra/nats/round-trip.ts';
import { announceReady, predecessorVariable, workerGraceMs } from '../infra/stack/index.ts';
import { goodbyeMs, within } from './drain.ts';
import { membership } from './membership.ts';
import { workerOptions } from './options.ts';
import { Worker } from './worker.ts';

const options = { ...workerOptions(process.argv.slice(2)), predecessorEnded: process.env[predecessorVariable] };
const { instance, target, keep, ...ofStack } = membership(petrelHome());
const identity = { instance, worker: options.name, incarnation: randomBytes(6).toString('hex') };
const nc = await connectNats(target, identityText(identity));
const roundTrip = await RoundTrip.of(nc);
const gpus = await gpusHere();
const worker = new Worker(options, {
  ...ofStack,
  nc,
  identity,
  timing: timingAt(timings.loopback, roundTrip.ms),
  home: petrelHome(),
  machine: () => ({ pool: options.pool, gpus, roundTripMs: roundTrip.ms }),
  die: (error) => {
    console.error(error);
    process.exit(1);
  },
  renew: () => void leave(),
});
await worker.start();
announceReady();

const leaving = new AbortController();
/** A second of it is kept back, because signals and clocks are not exact. */
const graceMs =
  options.graceSeconds === undefined ? workerGraceMs : Math.max(500, 1_000 * options.graceSeconds - 1_000);
keep(nc, leaving.signal, (code, reason) => void leave({ reason, graceMs }, code));

async function leave(notice?: Notice, code = 0): Promise<void> {
  leaving.abort();
  await worker.stop(notice);
  await within(goodbyeMs, nc.drain()); // also sends back messages that have come meanwhile
  process.exit(code);
}
const notices = [signalNotice(graceMs)];
if (options.notice === 'ec2')
  notices.push(
    ec2Notice({
      endpoint: process.env[metadataVariable],
      onRebalance: () => worker.expectLoss(),
      log: (line) => console.log(line),
    }),
  );
firstNotice(notices)((notice) => void leave(notice));
