import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { SharedMemory } from './shared-memory.ts';

const open: SharedMemory[] = [];
const opened = (...folders: string[]) => {
  const memory = new SharedMemory(...(folders.length > 0 ? [folders] : []));
  open.push(memory);
  return memory;
};
afterEach(() => {
  for (const memory of open.splice(0)) memory.close();
});

describe('shared memory', () => {
  it('gives back what was written, and 0 elsewhere', () => {
    fc.assert(
      fc.property(fc.nat(3_000_000), fc.uint8Array({ minLength: 1, maxLength: 5000 }), (at, bytes) => {
        const memory = opened();
        memory.grow(at + bytes.length + 1);
        memory.write(at, bytes);
        const [found, before] = [new Uint8Array(bytes.length + 1), new Uint8Array(1)];
        memory.read(at, found);
        expect([...found]).toEqual([...bytes, 0]);
        if (at > 0) {
          memory.read(at - 1, before);
          expect(before[0]).toBe(0);
        }
      }),
      { numRuns: 20 },
    );
  });

  it('keeps what it has when it grows, and refuses to be read behind its end', () => {
    const memory = opened();
    memory.grow(8);
    memory.write(0, Float32Array.of(1.5, -2));
    memory.grow(2_000_000);
    const found = new Float32Array(2);
    memory.read(0, found);
    expect([...found]).toEqual([1.5, -2]);
    expect(() => memory.read(1_999_999, found)).toThrow('ends at');
  });

  it('is what a child reads that inherits its descriptor', () => {
    const memory = opened();
    memory.grow(4);
    memory.write(0, Buffer.from('abcd'));
    const child = "process.stdout.write(require('fs').readFileSync(3))";
    const printed = execFileSync(process.execPath, ['-e', child], { stdio: ['ignore', 'pipe', 'inherit', memory.fd] });
    expect(printed.toString()).toBe('abcd');
  });

  it('leaves no file behind, and goes to the next folder where one is missing', () => {
    const folder = mkdtempSync(join(tmpdir(), 'petrel-shared-'));
    opened('/no/such/folder', folder).grow(10);
    expect(readdirSync(folder)).toEqual([]);
    rmSync(folder, { recursive: true });
  });
});
