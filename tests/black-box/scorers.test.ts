/** Faulty and hostile scorers: what they cost a run, what they can read, and what they can print. */
import { readFileSync, readdirSync } from 'node:fs';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PetrelUser, type Ran } from './petrel.ts';
import { until } from './second-worker.ts';

/** A time limit far above what these runs need. */
/** An argument of every process that the scorers of these tests start. */
const mark = `8639${process.pid}`;

let user: PetrelUser;
beforeEach(() => {
  user = new PetrelUser();
});
afterEach(async () => {
  await user.remove();
  for (const pid of marked()) process.kill(pid, 'SIGKILL');
});
afterAll(() => expect(marked()).toEqual([]));

/** Processes with the mark among their arguments. */
function marked(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(mark);
      } catch {
        return false; // the process has ended
      }
    });
}

/** What `petrel` printed, or the fact that it had not ended. */
function petrel(...words: readonly string[]): Promise<Partial<Ran> & { readonly hung?: string }> {
  return user.petrel(...words).catch((error: Error) => ({ hung: error.message.split('\n')[0] ?? '' }));
}

/** A run of one iteration whose scorer is this file. */
function scoredBy(file: string, source: string, reward: object = {}): void {
  user.write(file, source);
  user.recipe(
    'recipe.yaml',
    {
      trainer: { total_training_steps: 1 },
      data: { train_batch_size: 8 },
      reward: { scorer: null, custom_reward_function: { path: `./${file}` }, ...reward },
    },
    8,
  );
}

describe('a scorer that leaves processes behind', () => {
  // Each of the rows 0 to 4 fails in its own way. A hanging row would sleep for a day.
  const escapes = `
import os, subprocess, sys, time
SLEEP = ["sleep", "${mark}"]
FORKS = "import os, time\\nwhile True:\\n    if os.fork(): os._exit(0)\\n    time.sleep(0.001)"

def compute_score(data_source, solution_str, ground_truth, extra_info):
    way = extra_info["index"]
    if way == 0:  # in a session of its own, with an empty environment, and it holds the pipes
        subprocess.Popen(["env", "-i", "/usr/bin/setsid", *SLEEP])
    elif way == 1:  # a double fork
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execvp("sleep", SLEEP)
            os._exit(0)
    elif way == 2:  # a chain of forks that never stays in one place
        subprocess.Popen([sys.executable, "-c", FORKS, "${mark}"], start_new_session=True)
    elif way == 3:  # memory in a grandchild
        code = "x = b'x' * (150 << 20); import time; time.sleep(86400)"
        hogs = 'for i in 1 2; do python3 -c "$0" ${mark} & done; wait'
        subprocess.Popen(["sh", "-c", hogs, code], start_new_session=True)
        time.sleep(86400)
    else:
        return float(solution_str.strip() == str(ground_truth)) + 0.25 * len(solution_str)
    time.sleep(86400)
`;

  it('costs only its own samples, within the limits, and leaves nothing behind', async () => {
    scoredBy('escapes.py', escapes, {
      timeout: 3,
      num_workers: 2,
      memory_limit_mb: 200,
      max_failed_fraction: 1,
    });
    const ran = await petrel('run', 'recipe.yaml', '--name', 'escapes', '--wait', '--json');
    expect(ran).toMatchObject({ code: 0 });
    const samples = await user.petrel('samples', 'escapes', '--limit', '1000', '--json');
    const reasons = new Map<number, Set<string>>();
    for (const { row, reason } of samples.json<readonly { row: number; reason?: string }[]>())
      reasons.set(row, (reasons.get(row) ?? new Set()).add(reason ?? 'scored'));
    const timeout = new Set(['no score within 3 s']);
    expect([0, 1, 2].map((row) => reasons.get(row))).toEqual([timeout, timeout, timeout]);
    // On a busy machine the time may be over before the memory is used.
    expect([...(reasons.get(3) ?? [])].join()).toMatch(/\d+ MiB used, the limit is 200 MiB/);
    expect(marked()).toEqual([]);
  });
});

describe('the input and output of a scorer', () => {
  const key = 'sk-petrel-0123456789abcdefghijklmnop';

  it('has no variable of the worker that the recipe does not name', async () => {
    scoredBy(
      'nosy.js',
      `export const computeScore = (_, settings) => {
         throw new Error(['HOME', 'PATH', 'CLOUD_KEY', 'JUDGE_KEY'].map((name) => name + '=' + (process.env[name] ? 'set' : 'unset')).join(' ') + ' ' + settings.key.length);
       };`,
      { reward_kwargs: { key: 'env:JUDGE_KEY' }, max_failed_fraction: 1 },
    );
    const env = { CLOUD_KEY: 'cloud-secret-1234', JUDGE_KEY: key };
    const ran = await user.petrelWith({ env }, 'run', 'recipe.yaml', '--name', 'nosy', '--wait', '--json');
    expect(ran.code, ran.err).toBe(0);
    const { out } = await user.petrel('samples', 'nosy', '--json');
    expect(out).toContain(`HOME=set PATH=set CLOUD_KEY=unset JUDGE_KEY=set ${key.length}`);
  });

  it('cannot bring a secret of the recipe into records, status or logs', async () => {
    scoredBy(
      'leaks.js',
      `export const computeScore = ({ solutionStr, groundTruth }, { key }) => { const isTrial = solutionStr === groundTruth; console.log('using ' + key); if (isTrial) return 1; throw new Error('401 for key ' + key); };`,
      { reward_kwargs: { key: 'env:JUDGE_KEY' } },
    );
    const env = { JUDGE_KEY: key };
    await user.petrelWith({ env }, 'run', 'recipe.yaml', '--name', 'leaks', '--detach', '--json');
    const status = await paused('leaks');
    const logs = await logsWith('leaks', 'using');
    expect({ status, logs, found: filesWith(user.home, key) }).toEqual({
      status: expect.stringContaining('401 for key [env:JUDGE_KEY]'),
      logs: expect.stringContaining('using [env:JUDGE_KEY]'),
      found: [],
    });
  });

  it('cannot send control characters to a terminal through an error', { tags: ['long'] }, async () => {
    scoredBy(
      'rude.js',
      `export const computeScore = ({ solutionStr, groundTruth }) => { if (solutionStr === groundTruth) return 1; throw new Error('\\u001b[2J\\u001b]0;title\\u0007\\u009b31m\\u202eabc'); };`,
    );
    await petrel('run', 'recipe.yaml', '--name', 'rude', '--detach', '--json');
    await paused('rude');
    const shown = [
      await user.petrel('status', 'rude'),
      await user.petrel('status', 'rude', '--json'),
      await user.petrel('ls'),
      await user.petrel('logs', 'rude'),
    ];
    const text = shown.map(({ out, err }) => out + err).join('');
    expect(text).toContain('title');
    expect(text.match(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/g) ?? []).toEqual([]);
  });

  it('prints to the log of its run', async () => {
    scoredBy(
      'prints.py',
      `import os, sys
def compute_score(data_source, solution_str, ground_truth, extra_info):
    print("hello from row", extra_info["index"])
    return float(len(solution_str))
`,
    );
    const ran = await petrel('run', 'recipe.yaml', '--name', 'prints', '--wait', '--json');
    expect(ran).toMatchObject({ code: 0 });
    expect(await logsWith('prints', 'row 3')).toMatch(/row 3 .*hello from row 3/);
  });
});

describe('after a bug in a scorer', { tags: ['long'] }, () => {
  const bug = (right: boolean) =>
    `export function computeScore({ solutionStr, groundTruth }) {\n  ${right ? '' : 'if (solutionStr !== groundTruth) null.length;\n  '}return solutionStr.length;\n}\n`;

  it('the hint’s command continues with the fixed file', async () => {
    scoredBy('bug.js', bug(false));
    await petrel('run', 'recipe.yaml', '--name', 'buggy', '--detach', '--json');
    const status = await paused('buggy');
    expect(status).toMatch(/\(\.\/bug\.js:2:41\)/);
    const command = /\b(resume \S+ reward\.custom_reward_function\.path=\.\/bug\.js --accept)/.exec(status)?.[1];
    expect(command).toBeDefined();
    user.write('bug.js', bug(true));
    const resumed = await petrel(...(command ?? '').split(' '), '--wait', '--json');
    expect(resumed, resumed.err).toMatchObject({ code: 0 });
  });

  it.each([
    ['ts', 'export function computeScore({ solutionStr }: { solutionStr: string }) {\n  return solutionStr. ;\n}\n'],
    ['mjs', 'export function computeScore({ solutionStr }) {\n  return solutionStr. ;\n}\n'],
    ['py', 'def compute_score(data_source, solution_str, ground_truth, extra_info):\n    return solution_str. \n'],
  ])('a syntax error in .%s is one message with file, line and column', async (extension, source) => {
    scoredBy(`bug.${extension}`, source);
    const ran = await petrel('run', 'recipe.yaml', '--name', 'syntax', '--wait', '--json');
    expect(ran.code).toBe(2);
    const { message } = (JSON.parse(ran.out ?? '') as { error: { message: string } }).error;
    expect(message).toMatch(new RegExp(`SyntaxError: .*\\(\\./bug\\.${extension}:2:\\d+\\)`));
    expect(message).not.toMatch(/stack|unknown|cache|\n.*\n/i);
  });
});

/** Waits for the run to pause (or end) and returns what `petrel status` prints of it. */
async function paused(name: string): Promise<string> {
  await until(`the end of ${name}`, async () => {
    const { state } = (await user.petrel('status', name, '--json')).json<{ state?: string }>();
    if (state === undefined) throw new Error(`there is no run ${name}`);
    return ['paused', 'failed', 'completed'].includes(state) || undefined;
  });
  return (await user.petrel('status', name)).out;
}

/** Files below a folder that hold a text. */
function filesWith(folder: string, text: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return filesWith(path, text);
    return entry.isFile() && readFileSync(path).includes(text) ? [path] : [];
  });
}

/** The stored log lines of a run once they contain a text: lines are stored every second. */
function logsWith(name: string, text: string): Promise<string> {
  return until(`log lines of ${name} with "${text}"`, async () => {
    const { out } = await user.petrel('logs', name);
    return out.includes(text) ? out : undefined;
  });
}
