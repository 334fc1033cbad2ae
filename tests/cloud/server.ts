/** The HTTP side of the test cloud: EC2's API at `/`, and at `/_test/<name>` what a test orders (control.ts). */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loopback } from '../../infra/ports.ts';
import { authorize } from './access.ts';
import { actions } from './actions.ts';
import { TestCloud } from './cloud.ts';
import type { CloudOptions } from './cloud.ts';
import { controlled } from './control.ts';
import { answerXml, bodyOf, Ec2Error, errorXml, Form } from './protocol.ts';

export interface ServedCloud {
  readonly cloud: TestCloud;
  /** The value for AWS_ENDPOINT_URL_EC2. */
  readonly endpoint: string;
  /** Ends all machines. */
  close(): Promise<void>;
}

/** `port` 0: any free one. */
export async function startTestCloud({
  port = 0,
  ...options
}: CloudOptions & { readonly port?: number } = {}): Promise<ServedCloud> {
  const cloud = new TestCloud(options);
  const server = createServer((request, response) => {
    const isControl = request.url?.startsWith('/_test/') === true;
    (isControl ? controlled(cloud, request, response) : answer(cloud, request, response)).catch((error: unknown) =>
      response.writeHead(500, { 'Content-Type': 'text/plain' }).end(String(error)),
    );
  });
  server.listen(port, loopback);
  await once(server, 'listening');
  return {
    cloud,
    endpoint: `http://${loopback}:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
      await cloud.close();
    },
  };
}

async function answer(cloud: TestCloud, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const form = Form.of(await bodyOf(request));
  const action = form.text('Action') ?? '';
  const fault = cloud.faults.take(action);
  try {
    if (request.headers.authorization === undefined)
      throw new Ec2Error('AuthFailure', 'AWS was not able to validate the provided access credentials', 401);
    if (fault !== undefined && fault.code !== 'lostAnswer')
      throw new Ec2Error(fault.code, fault.message ?? `The test ordered ${fault.code}`, fault.status);
    const run = actions[action];
    if (run === undefined) throw new Ec2Error('InvalidAction', `The test cloud does not know the action ${action}`);
    if (cloud.policy !== undefined) authorize(cloud.policy, cloud, action, form);
    const body = await run(cloud, form);
    if (fault?.code === 'lostAnswer') return void request.socket.destroy();
    response.writeHead(200, { 'Content-Type': 'text/xml' }).end(answerXml(action, body));
  } catch (error) {
    if (!(error instanceof Ec2Error)) throw error;
    response.writeHead(error.status, { 'Content-Type': 'text/xml' }).end(errorXml(error));
  }
}
