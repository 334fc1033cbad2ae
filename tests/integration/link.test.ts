import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { connectNats } from '../../infra/nats/connection.ts';
import { linkOf } from '../../infra/nats/link.ts';
import { startNats } from '../servers.ts';
import { patienceMs } from '../patience.ts';

it('a request to a server that is killed fails at once, and the link reports when the server is back', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'petrel-link-'));
  const server = await startNats(folder);
  const nc = await connectNats(server, 'link');
  try {
    const link = linkOf(nc);
    nc.subscribe('silence'); // a server that accepts connections and never answers
    const back = new Promise<void>((resolve) => link.onBack(resolve));
    const lost = expect(link.orLost(nc.request('silence', '', { timeout: patienceMs }))).rejects.toMatchObject({
      code: 'NatsLost',
    });
    await nc.flush();
    await server.kill();
    await lost;
    await server.restart();
    await back;
    await link.connected();
    expect(await link.orLost(nc.rtt())).toBeGreaterThanOrEqual(0);
  } finally {
    await nc.close();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
