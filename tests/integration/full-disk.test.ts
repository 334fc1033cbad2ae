// @module-tag long
/**
 * Full disks, on a small separate file system. This file runs itself again inside a user namespace, where it may mount
 * one. It is skipped where the machine forbids such namespaces.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstream } from '@nats-io/jetstream';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { packageRoot } from '../../infra/home.ts';
import { faultsVariable } from '../../log/faults/index.ts';
import { NatsHealth } from '../../infra/nats/health.ts';
import { isAlive, signalProcess } from '../../infra/stack/process.ts';
import type { ProcessIdentity } from '../../infra/stack/process.ts';
import { natsFolder } from '../../infra/stack/state.ts';
import { ballastName } from '../../infra/store/ballast.ts';
import { floorVariable } from '../../log/objects/free-space.ts';
import { ensureStack } from '../../infra/stack/index.ts';
import { poll } from '../../infra/poll.ts';
import { jobSubject } from '../../core/wire/messages.ts';
import { desiredStateSignal } from '../../core/wire/workflow.ts';
import { runWords } from '../cli.ts';
import { openStore } from '../../infra/store/open.ts';
import { Injector } from '../inject.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { patienceMs } from '../patience.ts';

/** Enough for two stacks and their runs on a loaded machine: each step inside has a limit of its own. */
const wholeMs = 600_000;

/** Folder of the small file system; set inside the namespace only. */
const diskVariable = 'PETREL_SMALL_DISK';
const disk = process.env[diskVariable];
const namespaces = spawnSync('unshare', ['-Urm', 'true']).status === 0;

if (disk === undefined) {
  describe('in a user namespace', () => {
    it.skipIf(!namespaces)(
      'everything below holds (skipped where user namespaces are forbidden)',
      async () => {
        const folder = mkdtempSync(join(tmpdir(), 'petrel-disk-'));
        const script =
          'mount -t tmpfs -o size=64m none "$PETREL_SMALL_DISK" && exec "$0" node_modules/vitest/vitest.mjs run tests/integration/full-disk.test.ts';
        const inside = spawn('unshare', ['-Urm', 'sh', '-c', script, process.execPath], {
          cwd: packageRoot(),
          env: { ...process.env, [diskVariable]: folder, VITEST: undefined, [floorVariable]: '8' },
        });
        const said: Buffer[] = [];
        inside.stdout.on('data', (chunk: Buffer) => said.push(chunk));
        inside.stderr.on('data', (chunk: Buffer) => said.push(chunk));
        onTestFinished(() => void inside.kill('SIGTERM'));
        const [code] = (await once(inside, 'exit')) as [number | null];
        rmSync(folder, { recursive: true });
        expect(code, Buffer.concat(said).toString()).toBe(0);
        expect(Buffer.concat(said).toString()).toMatch(/Tests.*\d+ passed/);
      },
      wholeMs,
    );
  });
} else {
  inside(disk);
}

function inside(folder: string): void {
  const filler = join(folder, 'filler');
  const recipe = {
    actor: { ppo_mini_batch_size: 2, ppo_epochs: 60 },
    trainer: { total_training_steps: 6, save_freq: 2 },
  };
  afterEach(() => rmSync(filler, { force: true }));

  /** Fills the disk until less is free than new work needs. */
  function leave(bytes: number): void {
    rmSync(filler);
    const { bavail, bsize } = statfsSync(folder);
    expect(spawnSync('fallocate', ['-l', String(bavail * bsize - bytes), filler]).status).toBe(0);
  }

  /** Fills the disk completely. */
  function fill(path = filler): void {
    const file = openSync(path, 'a');
    for (const size of [2 ** 20, 4096, 1]) {
      const block = Buffer.alloc(size, 'x');
      try {
        while (writeSync(file, block) === size);
      } catch (error) {
        expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC');
      }
    }
    closeSync(file);
  }

  /** Resumes a run that a full disk has paused, after space was freed. */
  async function completes(loop: LoopUnderTest, run: StartedRun): Promise<void> {
    await loop.until(run, 'its end', async () => {
      const status = await run.log.status.newest();
      if (status?.state === 'paused') {
        expect(status.reason).toMatchObject({ code: 'DiskFull' });
        await loop.resume(run);
      }
      return status?.state === 'completed';
    });
  }

  describe('a full folder store', () => {
    it('keeps its objects, deletes its ballast for a small record, and leaves no partial file', async () => {
      const store = await openStore(join(folder, 'alone'));
      const { keepBallast } = await import('../../infra/store/ballast.ts');
      await store.put('runs/a', new Uint8Array(10));
      expect(await keepBallast(join(folder, 'alone'))).toBe(true);
      fill();
      await expect(store.put('runs/b', new Uint8Array(1 << 20))).rejects.toMatchObject({
        kind: 'pause',
        code: 'DiskFull',
        message: expect.stringMatching(/is full: 0.00 MiB are free, 9 MiB are needed/),
      });
      await expect(
        store.put(
          'runs/c',
          (async function* () {
            yield new Uint8Array(1 << 20);
          })(),
        ),
      ).rejects.toMatchObject({ code: 'DiskFull' });
      expect(await store.create('runs/status', new Uint8Array(500))).toBe('created');
      expect(readdirSync(join(folder, 'alone')).sort()).toEqual(['.petrel-store', 'runs']);
      fill();
      await expect(store.create('runs/more', new Uint8Array(500_000))).rejects.toMatchObject({ code: 'DiskFull' });
      expect(await store.list('')).toEqual(['runs/a', 'runs/status']);
      expect(readdirSync(join(folder, 'alone', 'runs')).sort()).toEqual(['a', 'status']);
      rmSync(join(folder, 'alone'), { recursive: true });
    });
  });

  describe.each(['the store', "petrel's home"])('a run (seed 42) with %s on a disk that fills up', (place) => {
    let loop: LoopUnderTest;
    let undisturbed: string[];
    const before = process.env['TMPDIR'];
    beforeAll(async () => {
      if (place !== 'the store') process.env['TMPDIR'] = folder;
      loop = new LoopUnderTest();
      if (place === 'the store') symlinkSync(folder, join(loop.home, 'store'));
      await loop.up();
      const run = await loop.start(recipe);
      await loop.reaches(run, 'completed');
      undisturbed = await loop.states(run);
    });
    afterAll(async () => {
      await loop.remove();
      if (before === undefined) delete process.env['TMPDIR'];
      else process.env['TMPDIR'] = before;
    });

    it('pauses with the reason, and continues to the same weights when there is space', async () => {
      const run = await loop.start(recipe);
      await loop.passes(run, 2);
      // Its worker is stopped until the disk is full, because a fast worker might finish before that.
      const worker = loop.process('local-1');
      signalProcess(worker, 'SIGSTOP');
      fill();
      // When the disk also holds the servers' files, no record can be written until a little space is free.
      if (place !== 'the store') leave(6 * 2 ** 20);
      expect(signalProcess(worker, 'SIGCONT')).toBe(true);
      const { reason } = await loop.reaches(run, 'paused');
      expect(reason).toMatchObject({
        code: 'DiskFull',
        message: expect.stringContaining('is full: '),
        hint: expect.stringContaining('petrel resume'),
      });
      rmSync(filler);
      await loop.resume(run);
      await loop.reaches(run, 'completed');
      expect(await loop.states(run)).toEqual(undisturbed);
      expect(readdirSync(place === 'the store' ? folder : loop.home)).toContain(ballastName);
    });

    it.runIf(place !== 'the store')(
      'for so long that no server can write: all of them come back, and the run with them',
      async () => {
        const run = await loop.start(recipe);
        await loop.passes(run, 2);
        const control = loop.process('control');
        const refused = await poll(
          async () => {
            fill(); // the space of the ballast, and space that servers free
            return await loop.client.workflow
              .getHandle(run.runId)
              .signal(desiredStateSignal, 'run')
              .then(() => undefined, String);
          },
          { everyMs: 50, timeoutMs: patienceMs },
        );
        expect(refused).toBeDefined();
        // The command may end without the Temporal server, or wait for it: both get enough time.
        await poll(
          () => {
            fill();
            return !isAlive(control);
          },
          { everyMs: 50, timeoutMs: 5_000 },
        );
        const full = `petrel's home ${loop.home} is full: `;
        expect((await runWords(loop.home, ['doctor', '--json'])).json()).toContainEqual(
          expect.objectContaining({ name: 'room', status: 'red', detail: expect.stringContaining(full) }),
        );
        expect((await runWords(loop.home, ['status'])).err).toContain(full);
        rmSync(filler);
        await completes(loop, run);
        expect(await loop.states(run)).toEqual(undisturbed);
        expect((await ensureStack({ home: loop.home })).children.map(({ state }) => state)).toEqual([
          'ready',
          'ready',
          'ready',
          'ready',
        ]);
      },
    );
  });

  describe('a run (seed 42) with the NATS store on a disk that fills up', () => {
    let loop: LoopUnderTest;
    let undisturbed: string[];
    let injector: Injector;
    let store: string;
    beforeAll(async () => {
      loop = new LoopUnderTest();
      store = natsFolder(loop.home);
      mkdirSync(store, { recursive: true });
      expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'none', store]).status).toBe(0);
      const faults = join(loop.home, 'faults');
      process.env[faultsVariable] = faults;
      injector = new Injector(loop.home, faults);
      await loop.up();
      const run = await loop.start(recipe);
      await loop.reaches(run, 'completed');
      undisturbed = await loop.states(run);
    });
    afterAll(async () => {
      delete process.env[faultsVariable];
      injector.close();
      spawnSync('umount', ['-l', store]);
      await loop.remove();
    });

    it.each([{ room: 'later' }, { room: 'at-once' }])(
      'continues to the same weights, and the server writes again (room: $room)',
      async ({ room }) => {
        const before = loop.process('nats');
        injector.arm({ id: room, point: 'publish.before', facts: { iteration: 3, stage: 'rollout' }, action: 'stand' });
        const run = await loop.start(recipe);
        const { identity } = await injector.stands(room, AbortSignal.timeout(patienceMs));
        fill(join(store, 'filler'));
        await refusesMessages();
        if (room === 'at-once') rmSync(join(store, 'filler'));
        injector.thaw(identity as ProcessIdentity);
        if (room === 'later') {
          const { reason } = await loop.reaches(run, 'paused');
          expect(reason).toMatchObject({
            code: 'DiskFull',
            message: expect.stringMatching(/^the NATS store .* is full: /),
          });
          expect(isAlive(before)).toBe(true);
          rmSync(join(store, 'filler'));
        }
        await completes(loop, run);
        expect(await loop.states(run)).toEqual(undisturbed);
        expect(isAlive(before)).toBe(false);
        expect((await loop.statuses(run)).includes('paused')).toBe(room === 'later');
      },
    );

    async function writeError(): Promise<string | undefined> {
      const { url, system } = loop.supervisor().nats;
      if (system === undefined) throw new Error('the stack has no system account');
      const health = new NatsHealth({ url, system });
      return health.writeError().finally(() => health.close());
    }

    /** A few more messages fill the last block of the file. */
    async function refusesMessages(): Promise<void> {
      const subject = jobSubject('rollout', 'nobody', 'filler', 'filler');
      const refused = () =>
        jetstream(loop.nc)
          .publish(subject, 'x'.repeat(5_000), { timeout: 500, retries: 0 })
          .then(
            () => false,
            () => true,
          );
      expect(await poll(refused, { everyMs: 10, timeoutMs: patienceMs })).toBe(true);
      expect(await writeError()).toMatch(/no space left on device/);
    }
  });
}
