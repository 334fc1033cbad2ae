/** The Dockerfiles, which nothing here can build: what they pin, copy and run. `npm run lint` checks their form. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../infra/home.ts';

const folder = join(packageRoot(), 'setup/docker');
const files = readdirSync(folder).filter((name) => name.endsWith('.Dockerfile'));

interface Instruction {
  readonly name: string;
  readonly text: string;
}

/** Instructions with their continued lines. */
const read = (file: string): Instruction[] =>
  readFileSync(join(folder, file), 'utf8')
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => ({ name: line.split(' ')[0] ?? '', text: line.slice(line.indexOf(' ') + 1) }));

it('are there for CUDA and for ROCm', () => {
  expect(files.toSorted()).toEqual(['cuda.Dockerfile', 'rocm.Dockerfile']);
});

describe.each(files)('%s', (file) => {
  const instructions = read(file);
  const textsOf = (name: string) => instructions.filter((one) => one.name === name).map(({ text }) => text);
  const stages = textsOf('FROM').flatMap((text) => / AS (\w+)$/.exec(text)?.[1] ?? []);

  it('begins from images of a version, or of a digest', () => {
    const bases = textsOf('FROM').map((text) => text.split(' ')[0] ?? '');
    const outside = bases.filter((base) => !stages.includes(base));
    expect(outside.length).toBeGreaterThan(0);
    for (const base of outside) expect(base).toMatch(/:v?\d+\.\d+\.\d+[\w.-]*(@sha256:[0-9a-f]{64})?$/);
  });

  it('runs as a user who is not root', () => {
    const last = instructions.findLast(({ name }) => name === 'USER' || name === 'FROM');
    expect(last).toEqual({ name: 'USER', text: '1001' });
  });

  it('installs packages of Python by their hashes only', () => {
    const pip = textsOf('RUN').filter((text) => /pip"? install/.test(text));
    expect(pip.length).toBeGreaterThan(0);
    for (const text of pip) expect(text).toContain('--require-hashes');
  });

  it('copies what is there', () => {
    const sources = textsOf('COPY').flatMap((text) => (text.startsWith('--from=') ? [] : text.split(' ').slice(0, -1)));
    expect(sources.filter((source) => !existsSync(join(packageRoot(), source)))).toEqual([]);
    const from = textsOf('COPY').flatMap((text) => /^--from=(\w+)/.exec(text)?.[1] ?? []);
    expect(from.filter((stage) => !stages.includes(stage))).toEqual([]);
  });

  it('names its engines at the start for its device', () => {
    const device = file.replace('.Dockerfile', '');
    expect(textsOf('ENTRYPOINT')).toEqual([expect.stringContaining(`"/usr/local/bin/start.sh", "${device}"`)]);
  });
});
