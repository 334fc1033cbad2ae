/** Tests the model of a disk, and that the folder store keeps its guarantees where several processes work. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { builtFile } from '../../infra/home.ts';
import { parseRecording } from './calls.ts';
import { cutsOf } from './cuts.ts';
import { Disk } from './disk.ts';
import type { Spared } from './disk.ts';
import { Recorder } from './recorder.ts';

/** Calls that each end before the next one starts, with their results. */
function recordingOf(...calls: readonly (readonly [request: string, result?: number])[]) {
  const lines = calls.flatMap(([request, result = 0], i) => [
    `B\t${i}\t${request.replaceAll(' ', '\t')}`,
    `E\t${i}\t${result}`,
  ]);
  return parseRecording(`${lines.join('\n')}\n`);
}

/** The files that may exist after a cut behind the last call; each state as a text. */
function leftBy(...calls: readonly (readonly [request: string, result?: number])[]): string[] {
  const recording = recordingOf(...calls);
  const last = recording.lines - 1;
  const states = cutsOf(new Disk('/d', recording), recording, 1, 8).filter(({ line }) => line === last);
  return states
    .map(({ state }) => state.files.map(({ path, written, zeros }) => `${path} ${written}+${zeros}`).join(', '))
    .sort();
}

describe('after a power cut', () => {
  it('a file that was synced, but whose name was not, exists whole or not at all', () => {
    expect(leftBy(['open /d/a create', 7], ['write 7', 10], ['sync 7'])).toEqual(['', '/d/a 10+0']);
  });

  it('a name that was synced may belong to a file that is empty, full of zeros, or incomplete', () => {
    expect(leftBy(['open /d/a create', 7], ['write 7', 10], ['sync-folder /d'])).toEqual([
      '/d/a 0+0',
      '/d/a 0+10',
      '/d/a 10+0',
      '/d/a 5+0',
    ]);
  });

  it('a file that was synced, and its folder after it, always survives unchanged', () => {
    const calls = [
      ['open /d/t create', 7],
      ['write 7', 10],
      ['sync 7'],
      ['rename /d/t /d/a'],
      ['sync-folder /d'],
    ] as const;
    expect(leftBy(...calls)).toEqual(['/d/a 10+0']);
  });

  it('the files of a folder are lost with its name', () => {
    const inside = [['open /d/f/a create', 7], ['write 7', 10], ['sync 7'], ['sync-folder /d/f']] as const;
    expect(leftBy(['mkdir /d/f'], ...inside)).toEqual(['', '/d/f/a 10+0']);
    expect(leftBy(['mkdir /d/f'], ...inside, ['sync-folder /d'])).toEqual(['/d/f/a 10+0']);
  });

  it('a sync that began before a write had ended does not protect that write', () => {
    const text =
      'B\t1\topen\t/d/a\tcreate\nE\t1\t7\nB\t2\tsync-folder\t/d\nE\t2\t0\nB\t3\twrite\t7\nB\t4\tsync\t7\nE\t3\t10\nE\t4\t0\n';
    const recording = parseRecording(text);
    const lost: Spared = { name: '', change: () => false, bytes: () => 'none' };
    expect(new Disk('/d', recording).after(recording.lines - 1, lost).files).toMatchObject([{ written: 0 }]);
  });
});

describe('a folder store, when another process has written what it reads and has synced no name', () => {
  const temporary = realpathSync(mkdtempSync(join(tmpdir(), 'petrel-power-cut-')));
  afterEach(() => rmSync(temporary, { recursive: true, force: true }));

  it.each([
    ['creates a record', `await store.create('records/1', bytes)`],
    ['finds a record that exists', `await store.create('runs/a', bytes); await store.create('records/1', bytes)`],
    [
      'removes an object',
      `await store.settle(); await store.remove('blobs/x'); await store.create('records/1', bytes)`,
    ],
  ])('%s that no cut keeps without it', (_, work) => {
    const disk = join(temporary, 'disk');
    mkdirSync(disk, { recursive: true });
    const recorder = new Recorder(disk, join(temporary, 'recording'));
    const script = `
      import { mkdirSync, writeFileSync } from 'node:fs';
      import { openFolderStore } from ${JSON.stringify(builtFile('infra/store/folder.js'))};
      const folder = ${JSON.stringify(join(disk, 'store'))};
      const bytes = Buffer.from('x');
      const store = await openFolderStore(folder);
      await store.put('blobs/x', bytes);
      mkdirSync(folder + '/runs');
      writeFileSync(folder + '/runs/a', bytes, { flush: true });
      await store.get('runs/a');
      ${work};`;
    execFileSync(process.execPath, ['--input-type=module', '-e', script], { env: { ...process.env, ...recorder.env } });
    const recording = recorder.read();
    const cuts = cutsOf(new Disk(disk, recording), recording, 1, 8);
    const left = cuts.map(({ state }) => new Set(state.files.map(({ path }) => path.slice(disk.length))));
    const recorded = left.filter((paths) => paths.has('/store/records/1'));
    expect(recorded.length).toBeGreaterThan(0);
    for (const paths of recorded) {
      expect(paths).toContain('/store/runs/a');
      if (work.includes('remove')) expect(paths).not.toContain('/store/blobs/x');
    }
  });
});
