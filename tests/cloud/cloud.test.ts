/** The machines of the test cloud: real processes that begin with their user data and end all at once. */
import { existsSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Provider } from '../../core/ports/provider.ts';
import { ec2Notice } from '../../infra/fleet/ec2-notice.ts';
import { ec2Provider } from '../../infra/fleet/ec2/provider.ts';
import { packageRoot } from '../../infra/home.ts';
import { poll } from '../../infra/poll.ts';
import { processesWith } from '../../infra/stack/process.ts';
import { launchOf } from '../contracts/provider.ts';
import type { TestCloud } from './cloud.ts';
import type { TestInstance } from './instance.ts';
import { startTestCloud } from './server.ts';
import type { ServedCloud } from './server.ts';
import { machineOf, useTestCredentials } from './use.ts';
import { patienceMs } from '../patience.ts';

useTestCredentials();
const soon = { everyMs: 20, timeoutMs: patienceMs };

let served: ServedCloud;
let cloud: TestCloud;
let provider: Provider;
beforeAll(async () => {
  served = await startTestCloud({
    account: {
      profiles: { worker: { AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:1' } },
      credentials: { worker: { accessKey: 'of-the-role', secretKey: 'secret' } },
    },
    env: { FROM_THE_TEST: 'yes' },
  });
  cloud = served.cloud;
  provider = ec2Provider({ endpoint: served.endpoint });
});
afterAll(() => served.close());

/** An instance of this script. It has printed `line`, or has ended, when this resolves. */
async function started(userData: string, line: string): Promise<TestInstance> {
  const machine = { ...machineOf(cloud), instanceProfile: 'worker' };
  const place = { market: 'spot' } as const;
  const launch = launchOf({ machine, type: 'c7i.2xlarge' }, 'machines', { userData, machine, place });
  const instance = cloud.instance((await provider.launch(launch)).instances[0]?.id ?? '');
  await poll(() => instance.state === 'terminated' || printed(instance).includes(line), soon);
  expect(printed(instance)).toContain(line);
  return instance;
}

const printed = ({ consoleFile }: TestInstance) => (existsSync(consoleFile) ? readFileSync(consoleFile, 'utf8') : '');

/** Processes of an instance, of whatever session. */
const processesOf = (marked: string) => processesWith('MARK', marked);

describe('a machine of the test cloud', () => {
  it('begins in an empty home, with a clean environment and Node', async () => {
    const instance = await started(
      '#!/bin/bash\npwd; ls -A "$HOME" | wc -l; env | cut -d= -f1 | sort | tr "\\n" " "; node --version; id -u; echo done\nexec sleep infinity\n',
      'done',
    );
    const lines = printed(instance).split('\n');
    expect(lines[0]).toBe(`${instance.folder}/home`);
    expect(lines[1]?.trim()).toBe('0');
    expect(lines[2]?.replace(/ (_|SHLVL|OLDPWD)\b/g, '')).toContain('AWS_EC2_METADATA_SERVICE_ENDPOINT');
    expect(lines[2]).toContain('AWS_ENDPOINT_URL_S3');
    expect(lines[2]).toContain('FROM_THE_TEST');
    expect(lines[2]).not.toMatch(/npm_|VITEST|PETREL/);
    expect(printed(instance)).toContain(process.version);
  });

  it('ends with all of its processes, whatever session they have made', async () => {
    const instance = await started(
      `#!/bin/bash\nexport MARK=${process.pid}-all\nsetsid sleep infinity &\n(setsid setsid sleep infinity &)\necho up\nwait\n`,
      'up',
    );
    // bash itself began without the mark
    expect(await poll(() => processesOf(`${process.pid}-all`).length === 2, soon)).toBe(true);
    await provider.terminate('us-east-1', [instance.id]);
    expect(await instance.terminated).toBe('Client.UserInitiatedShutdown');
    expect(processesOf(`${process.pid}-all`)).toEqual([]);
    expect(existsSync(`${instance.folder}/home`)).toBe(false);
    expect(cloud.bills()).toContainEqual(expect.objectContaining({ id: instance.id, ended: expect.any(String) }));
  });

  it('is terminated when its script ends, and when it shuts itself down', async () => {
    const byEnd = await started('#!/bin/bash\necho bye\n', 'bye');
    expect(await byEnd.terminated).toBe('Client.InstanceInitiatedShutdown');
    const mark = `${process.pid}-shutdown`;
    const byShutdown = await started(
      `#!/bin/bash\nexport MARK=${mark}\necho bye\nsetsid sleep infinity &\nshutdown -h now\nsleep infinity\n`,
      'bye',
    );
    expect(await byShutdown.terminated).toBe('Client.InstanceInitiatedShutdown');
    expect(processesOf(mark)).toEqual([]);
  });

  it('knows its id, its place and its tags, with a token only', async () => {
    const script = `#!/bin/bash
node -e '
const at = process.env.AWS_EC2_METADATA_SERVICE_ENDPOINT + "/latest/";
const main = async () => {
  console.log("without", (await fetch(at + "meta-data/instance-id")).status);
  const put = { method: "PUT", headers: { "X-aws-ec2-metadata-token-ttl-seconds": "60" } };
  const token = await (await fetch(at + "api/token", put)).text();
  const get = async (path) => (await fetch(at + path, { headers: { "X-aws-ec2-metadata-token": token } })).text();
  for (const path of ["instance-id", "placement/availability-zone", "instance-life-cycle", "tags/instance", "tags/instance/petrel:pool"])
    console.log(path, JSON.stringify(await get("meta-data/" + path)));
  console.log("end");
};
main();
'
sleep infinity
`;
    const instance = await started(script, 'end');
    expect(printed(instance).split('\n')).toEqual(
      expect.arrayContaining([
        'without 401',
        `instance-id "${instance.id}"`,
        'placement/availability-zone "us-east-1a"',
        'instance-life-cycle "spot"',
        'tags/instance/petrel:pool "rollout"',
      ]),
    );
    expect(printed(instance)).toContain('petrel:expires');
  });

  it('gets the credentials of its role from the metadata service, as the SDK asks for them', async () => {
    const sdk = pathToFileURL(join(packageRoot(), 'node_modules/@aws-sdk/client-s3/dist-cjs/index.js')).href;
    const ask = `import sdk from ${JSON.stringify(sdk)};
const { accessKeyId, sessionToken } = await new sdk.S3Client({ region: 'us-east-1' }).config.credentials();
console.log('I am', accessKeyId, sessionToken === '' ? 'without a session.' : 'with a session.');`;
    const script = `#!/bin/bash\ncat > ask.mjs <<'END'\n${ask}\nEND\nnode ask.mjs; echo asked; sleep infinity\n`;
    expect(printed(await started(script, 'asked'))).toContain('I am of-the-role without a session.');
  });

  it('learns of its interruption as on EC2, and is killed after the notice', async () => {
    const instance = await started(
      '#!/bin/bash\ntrap "" TERM\necho at $AWS_EC2_METADATA_SERVICE_ENDPOINT.\nsleep infinity\n',
      'at ',
    );
    const endpoint = /at (\S+)\./.exec(printed(instance))?.[1];
    const noticed = new Promise<{ readonly graceMs: number }>((resolve) =>
      ec2Notice({ endpoint, pollMs: 10 })((notice) => resolve(notice)),
    );
    cloud.interrupt(instance.id, 2_000);
    expect((await noticed).graceMs).toBeLessThanOrEqual(2_000);
    expect(await instance.terminated).toBe('Server.SpotInstanceTermination');
    expect(await provider.list('us-east-1', 'machines')).toContainEqual(
      expect.objectContaining({ id: instance.id, state: 'ended' }),
    );
  });

  it('is told that it may be interrupted soon', async () => {
    const script = `#!/bin/bash
node -e '
const at = process.env.AWS_EC2_METADATA_SERVICE_ENDPOINT + "/latest/";
const main = async () => {
  const put = { method: "PUT", headers: { "X-aws-ec2-metadata-token-ttl-seconds": "60" } };
  const headers = { "X-aws-ec2-metadata-token": await (await fetch(at + "api/token", put)).text() };
  console.log("watching");
  for (;;) {
    const answer = await fetch(at + "meta-data/events/recommendations/rebalance", { headers });
    if (answer.ok) return console.log("recommended", await answer.text());
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};
main();
'
`;
    const instance = await started(script, 'watching');
    cloud.recommendRebalance(instance.id);
    await instance.terminated;
    expect(printed(instance)).toMatch(/recommended \{"noticeTime":"20/);
  });

  it('may never boot: it runs, costs, and does nothing', async () => {
    cloud.faults.failBoots(1);
    const launch = launchOf({ machine: machineOf(cloud), type: 'c7i.2xlarge' }, 'silent', {
      userData: '#!/bin/bash\n',
    });
    const instance = cloud.instance((await provider.launch(launch)).instances[0]?.id ?? '');
    expect([instance.state, instance.pid]).toEqual(['running', undefined]);
    await provider.terminate('us-east-1', [instance.id]);
    expect(await instance.terminated).toBe('Client.UserInitiatedShutdown');
  });

  it('can be lost without a notice', async () => {
    const instance = await started('#!/bin/bash\necho up\nsleep infinity\n', 'up');
    await cloud.lose(instance.id);
    expect(await instance.terminated).toBe('Server.SpotInstanceTermination');
  });
});
