/** The behaviour of servers that do not fence: they check whether the object exists, and then write it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { HeadObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import type { S3Connection } from '../../infra/store/s3/client.ts';
import { answer } from '../fault-proxy.ts';

/** Handles conditional creates in the proxy. When creates race, the first two find no object, and both write. */
export function carelessCreate({ client }: S3Connection) {
  let looked = 0;
  let go = (): void => {};
  const bothLooked = new Promise<void>((resolve) => (go = resolve));
  return async (request: IncomingMessage, reply: ServerResponse): Promise<'answered'> => {
    const { pathname } = new URL(request.url ?? '', 'http://proxy');
    const [Bucket = '', ...names] = decodeURIComponent(pathname).slice(1).split('/');
    const object = { Bucket, Key: names.join('/') };
    const Body = Buffer.concat((await request.toArray()) as Buffer[]);
    const there = await client.send(new HeadObjectCommand(object)).then(
      () => true,
      () => false,
    );
    looked += 1;
    if (looked >= 2) go();
    await bothLooked;
    if (there) answer(reply, 412, 'PreconditionFailed');
    else {
      const { ETag = '' } = await client.send(new PutObjectCommand({ ...object, Body }));
      reply.writeHead(200, { etag: ETag, 'content-length': 0 }).end();
    }
    return 'answered';
  };
}
