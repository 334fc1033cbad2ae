import { execFileSync } from 'node:child_process';
import { fstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { readShared, SharedMemory } from './shared-memory.ts';

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

  it('takes the memory of what is written alone, stays for the last user, and says when there is no room', () => {
    const memory = new SharedMemory();
    const last = memory.share();
    expect(memory.reserve(1 << 30)).toBe(true);
    memory.write((1 << 30) - 4, Buffer.from('abcd'));
    expect(fstatSync(memory.fd).blocks * 512).toBeLessThan(1 << 20);
    expect(memory.reserve(2 ** 50)).toBe(false);
    memory.close();
    const found = Buffer.alloc(8);
    readShared(memory.fd, (1 << 30) - 8, found);
    expect(found.toString()).toBe('\0\0\0\0abcd');
    last();
    expect(() => fstatSync(memory.fd)).toThrow('EBADF');
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
