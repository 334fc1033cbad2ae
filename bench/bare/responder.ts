/**
 * The bare loop's worker, a separate process like petrel's workers: pulls a job, reports that it is done, acks. Its
 * parent passes the address of NATS.
 */
import { AckPolicy, jetstream, jetstreamManager, RetentionPolicy, StorageType } from '@nats-io/jetstream';
import { connectNats } from '../../infra/nats/connection.ts';
import type { HasNats } from '../../infra/nats/connection.ts';
import { bareConsumer, bareStream, bareSubject, doneSubject } from './names.ts';

process.once('disconnect', () => process.exit(0));
process.once('message', (target) => void respond(target as HasNats));

async function respond(target: HasNats): Promise<void> {
  const nc = await connectNats(target, bareConsumer);
  const jsm = await jetstreamManager(nc);
  await jsm.streams.add({
    name: bareStream,
    subjects: [bareSubject],
    retention: RetentionPolicy.Workqueue,
    storage: StorageType.File,
  });
  await jsm.consumers.add(bareStream, { durable_name: bareConsumer, ack_policy: AckPolicy.Explicit });
  const consumer = await jetstream(nc).consumers.get(bareStream, bareConsumer);
  process.send?.('ready');
  for (;;) {
    const message = await consumer.next({ expires: 2_000 });
    if (message === null) continue;
    nc.publish(doneSubject(message.string()));
    message.ack();
  }
}
