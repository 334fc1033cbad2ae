/** Three NATS servers as one cluster on loopback, with accounts, as a team would run them for a stack. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fmtCreds } from '@nats-io/jwt';
import { createUser } from '@nats-io/nkeys';
import { petrelHome, readTools } from '../infra/home.ts';
import { issueUser, newAuthority } from '../infra/nats/access/authority.ts';
import { serverEnvironment } from '../infra/environment.ts';
import { isNatsReady } from '../infra/nats/health.ts';
import { readCredentials } from '../infra/nats/nkey.ts';
import { freePorts, loopback } from '../infra/ports.ts';
import { startServer } from './servers.ts';
import type { TestServer } from './servers.ts';

export interface NatsCluster {
  readonly urls: readonly string[];
  readonly servers: readonly TestServer[];
  /** Files of `nsc`'s form: of the stack's account, and of the system account. */
  readonly credentials: string;
  readonly systemCredentials: string;
  stop(): Promise<void>;
}

export async function startNatsCluster(): Promise<NatsCluster> {
  // Of its own, because the servers write until they have ended, which a stack's home must outlast.
  const folder = mkdtempSync(join(tmpdir(), 'petrel-cluster-'));
  const authority = await newAuthority();
  const [credentials, systemCredentials] = await Promise.all([
    credentialsFile(join(folder, 'stack.creds'), authority.control),
    credentialsFile(join(folder, 'system.creds'), authority.system),
  ]);
  const ports = await freePorts(6);
  const clients = ports.slice(0, 3);
  const routes = ports.slice(3).map((port) => `"nats://${loopback}:${port}"`);
  const system = readCredentials(systemCredentials.text);
  const servers = await Promise.all(
    clients.map(async (port, i) => {
      const own = join(folder, `nats-${i + 1}`);
      mkdirSync(own);
      const config = join(own, 'nats.conf');
      writeFileSync(
        config,
        `server_name: nats-${i + 1}
listen: "${loopback}:${port}"
cluster { name: team, listen: "${loopback}:${ports[i + 3]}", routes: [${routes.join(', ')}] }
jetstream { store_dir: ${JSON.stringify(join(own, 'data'))}, max_file_store: 10GB }
operator: ${authority.operatorJwt}
system_account: ${authority.system.id}
resolver: MEMORY
resolver_preload { ${[authority.control, authority.workers, authority.system].map(({ id, jwt }) => `${id}: ${jwt}`).join(', ')} }
`,
      );
      const { path } = readTools(petrelHome())['nats-server'];
      return startServer(`nats-${i + 1}`, own, path, ['--config', config], serverEnvironment(own), () =>
        system === undefined ? Promise.resolve(false) : isNatsReady({ url: `nats://${loopback}:${port}`, system }),
      );
    }),
  );
  return {
    urls: clients.map((port) => `nats://${loopback}:${port}`),
    servers,
    credentials: credentials.path,
    systemCredentials: systemCredentials.path,
    stop: async () => {
      await Promise.all(servers.map((server) => server.stop()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function credentialsFile(path: string, account: { readonly seed: string }) {
  const key = createUser();
  const jwt = await issueUser(account, { name: 'stack', key: key.getPublicKey() });
  const text = new TextDecoder().decode(fmtCreds(jwt, key));
  writeFileSync(path, text, { mode: 0o600 });
  return { path, text };
}
