import { describe, expect, it } from 'vitest';
import { FencedError, InvalidInputError, RetryableError, TerminalError } from '../core/errors.ts';
import type { CommandInput, CommandSpec } from './command.ts';
import { COMMANDS } from './commands.ts';
import { EXIT, exitCodeOf, exitCodeOfState } from './exit-codes.ts';
import { createPrinter } from './printer/printer.ts';
import { commandContext } from './context.ts';
import { runProgram } from './program.ts';

function fixture() {
  const received: CommandInput[] = [];
  const load = async () => ({
    run: async (input: CommandInput) => {
      received.push(input);
      return EXIT.runPaused;
    },
  });
  const specs: readonly CommandSpec[] = [
    {
      name: 'run',
      arguments: '<recipe> [overrides...]',
      doc: 'Run.',
      group: 'Runs',
      options: [{ flags: '--name <name>', doc: 'n' }],
      load,
    },
    { name: 'ckpt ls', arguments: '<run>', doc: 'List.', group: 'Checkpoints', load },
    {
      name: 'broken',
      doc: 'Fails.',
      group: 'Runs',
      load: async () => ({ run: async () => Promise.reject(new FencedError('owned')) }),
    },
  ];
  const texts = { out: '' };
  const stdout = { write: (text: string) => void (texts.out += text) };
  const start = (...words: string[]) =>
    runProgram(specs, words, {
      version: '1.2.3',
      nouns: { ckpt: 'Checkpoints.' },
      stdout,
      context: (json) => commandContext(createPrinter({ json, stdout, stderr: stdout, env: {} }), {}, '/'),
    });
  return { received, texts, start };
}

describe('the program', () => {
  it('hands words and options to the command and gives back its exit code', async () => {
    const { received, start } = fixture();
    expect(await start('run', 'r.yaml', 'a.b=1', '~c', '--name', 'x', '--json', '+d=-1')).toBe(EXIT.runPaused);
    expect(received).toEqual([{ words: ['r.yaml', 'a.b=1', '~c', '+d=-1'], options: { name: 'x', json: true } }]);
  });

  it('finds commands of two words', async () => {
    const { received, start } = fixture();
    await start('ckpt', 'ls', 'toy');
    expect(received[0]?.words).toEqual(['toy']);
  });

  it('prints help on stdout and ends with 0, also without words', async () => {
    for (const words of [[], ['--help'], ['ckpt'], ['run', '--help']]) {
      const { texts, start } = fixture();
      expect(await start(...words)).toBe(EXIT.ok);
      expect(texts.out).toContain('Usage: petrel');
    }
  });

  it('answers a wrong word with the nearest one', async () => {
    const { start } = fixture();
    await expect(start('rnu')).rejects.toMatchObject({ code: 'InvalidInput', hint: 'did you mean run?' });
    await expect(start('ckpt', 'lss')).rejects.toMatchObject({ hint: 'did you mean ls?' });
    await expect(start('run', 'r.yaml', '--nam', 'x')).rejects.toMatchObject({ hint: 'did you mean --name?' });
    await expect(start('run')).rejects.toMatchObject({ hint: 'petrel run --help' });
  });

  it('lets a command’s own error through', async () => {
    await expect(fixture().start('broken')).rejects.toBeInstanceOf(FencedError);
  });
});

describe('the table of commands', () => {
  it('has every command once, in words of small letters, with a one-line doc', () => {
    expect(new Set(COMMANDS.map(({ name }) => name)).size).toBe(COMMANDS.length);
    for (const { name, doc } of COMMANDS) {
      expect(name).toMatch(/^[a-z]+( [a-z]+)?$/);
      expect(doc).toMatch(/^[A-Z][^\n]*\.$/);
    }
  });

  it('loads a module with `run` for each', async () => {
    for (const { load, name } of COMMANDS) expect(await load(), name).toHaveProperty('run', expect.any(Function));
  });
});

describe('exit codes', () => {
  it('say what kind of error it was', () => {
    expect(exitCodeOf(new InvalidInputError('x'))).toBe(2);
    expect(exitCodeOf(new TerminalError('NotFound', 'x'))).toBe(3);
    expect(exitCodeOf(new FencedError('x'))).toBe(5);
    expect(exitCodeOf(new RetryableError('NatsUnreachable', 'x'))).toBe(6);
    expect(exitCodeOf(Object.assign(new Error('x'), { code: 'ECONNREFUSED' }))).toBe(6);
    expect(exitCodeOf(new Error('x'))).toBe(1);
  });

  it('say how a run ended that was waited for', () => {
    expect(['completed', 'failed', 'cancelled', 'paused', 'running'].map(exitCodeOfState)).toEqual([
      0, 100, 103, 104, 101,
    ]);
  });
});
