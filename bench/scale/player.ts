/**
 * A process that plays workers: the real worker with a connection of its own each, and an engine that computes nothing.
 */
import { readFileSync } from 'node:fs';
import { timings } from '../../core/wire/messages.ts';
import type { JobMessage } from '../../core/wire/messages.ts';
import { identityText } from '../../core/wire/worker-identity.ts';
import { petrelHome } from '../../infra/home.ts';
import { connectNats } from '../../infra/nats/connection.ts';
import { openStore } from '../../infra/store/open.ts';
import { nativeFacts } from '../../native/facts.ts';
import { membership } from '../../workers/membership.ts';
import { Worker } from '../../workers/worker.ts';
import { randomOf } from '../fleet/random.ts';
import { playedEngine } from './played-engine.ts';
import { PlayedReward } from './played-reward.ts';
import type { FromPlayer, PlayerSettings, ToPlayer } from './protocol.ts';
import { recording } from './recording.ts';
import { slotsOfWorker } from './settings.ts';

const settings = JSON.parse(process.argv[2] ?? '') as PlayerSettings;
const recorded = recording.parse(JSON.parse(readFileSync(settings.recordingFile, 'utf8')));
const { instance, target, ...ofStack } = membership(petrelHome());
const store = await openStore(settings.store);
const facts = [nativeFacts()];
const say = (message: FromPlayer) => process.send?.(message);
const now = () => performance.timeOrigin + performance.now();

const played = await Promise.all(
  Array.from({ length: settings.workers }, async (_, i) => {
    const identity = { instance, worker: `${settings.prefix}-${i}`, incarnation: `${process.pid}x${i}` };
    const nc = await connectNats(target, identityText(identity));
    const { servesOn: _serves, ...membershipPorts } = ofStack;
    const freeSince = Array.from({ length: slotsOfWorker }, now);
    const engine = playedEngine({
      facts,
      store,
      recording: recorded,
      random: randomOf(settings.seed + i),
      started: (message) => {
        const since = isRollout(message) ? (freeSince.shift() ?? now()) : 0;
        say({
          type: 'started',
          job: `${message.runId} ${message.jobId}`,
          worker: identity.worker,
          at: now(),
          freeSince: since,
        });
      },
      ended: (message) => void (isRollout(message) && freeSince.push(now())),
    });
    const worker = new Worker(
      { roles: settings.roles, threads: 1 },
      {
        ...membershipPorts,
        nc,
        identity,
        timing: timings.loopback,
        home: petrelHome(),
        engine,
        rewardRole: new PlayedReward({ store, recording: recorded }),
        die: fail,
        renew: () => fail(new Error(`${identity.worker} would start again`)),
      },
    );
    await worker.start();
    return { nc, worker };
  }),
);
say({ type: 'ready' });

process.on('message', ({ type }: ToPlayer) => {
  if (type === 'count') say({ type: 'received', messages: played.reduce((sum, { nc }) => sum + nc.stats().inMsgs, 0) });
  else process.exit(0);
});
process.once('disconnect', () => process.exit(0));

function isRollout({ stage }: JobMessage): boolean {
  return stage === 'rollout';
}

function fail(error: Error): void {
  console.error(error);
  process.exit(1);
}
