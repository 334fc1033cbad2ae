/** Conditional creates over bare sockets, so that the test decides when each byte is sent. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import type { S3Connection } from '../../infra/store/s3/client.ts';
import { parseS3Url } from '../../infra/store/s3/location.ts';

interface SignedRequest {
  readonly hostname: string;
  readonly port?: number;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
}

/** Sends `count` creates of one object, all but their last bytes, then all the last bytes. Returns the statuses. */
export async function raceRawCreates(connection: S3Connection, url: string, count: number): Promise<number[]> {
  const { bucket, prefix } = parseS3Url(url);
  const bodies = Array.from({ length: count }, (_, i) => `writer ${i}`);
  const writers = await Promise.all(
    bodies.map(async (body) => ({
      body,
      request: await signed(
        connection,
        new PutObjectCommand({ Bucket: bucket, Key: prefix.slice(0, -1), Body: body, IfNoneMatch: '*' }),
      ),
    })),
  );
  const sockets = await Promise.all(writers.map(({ request, body }) => sendAllButTheLastByte(request, body)));
  for (const [i, socket] of sockets.entries()) socket.write(bodies[i]?.slice(-1) ?? '');
  return Promise.all(sockets.map(statusOf));
}

/** The request that the SDK would send, captured just before it is sent. */
async function signed({ client }: S3Connection, command: PutObjectCommand): Promise<SignedRequest> {
  let request: unknown;
  command.middlewareStack.add(
    () => (args) => {
      request = args.request;
      return Promise.reject(new Error('signed'));
    },
    { step: 'deserialize', name: 'stop', priority: 'low' },
  );
  await client.send(command).catch((error: unknown) => {
    if (request === undefined) throw error;
  });
  return request as SignedRequest;
}

async function sendAllButTheLastByte(
  { hostname, port, path, query, headers }: SignedRequest,
  body: string,
): Promise<Socket> {
  const socket = connect(port ?? 80, hostname).setNoDelay();
  await once(socket, 'connect');
  const search = new URLSearchParams(query).toString();
  const head = [
    `PUT ${path}${search === '' ? '' : `?${search}`} HTTP/1.1`,
    ...Object.entries({ ...headers, connection: 'close' }).map(([name, value]) => `${name}: ${value}`),
    '',
    '',
  ].join('\r\n');
  await new Promise<void>((resolve, reject) =>
    socket.write(head + body.slice(0, -1), (error) => (error ? reject(error) : resolve())),
  );
  return socket;
}

async function statusOf(socket: Socket): Promise<number> {
  let reply = '';
  for await (const chunk of socket.setEncoding('utf8')) reply += String(chunk);
  return Number(/^HTTP\/1\.1 (\d+)/.exec(reply)?.[1]);
}
