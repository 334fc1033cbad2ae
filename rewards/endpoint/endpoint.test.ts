import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EndpointSettings } from '../../core/endpoint.ts';
import type { Permits } from '../../core/ports/permits.ts';
import type { ScorerInput } from '../types.ts';
import { ChatServer, says } from './chat-server.test-support.ts';
import type { Answering, SeenBody } from './chat-server.test-support.ts';
import { EndpointClient } from './client.ts';
import { EndpointHost, LimitedHost } from './host.ts';
import { probeEndpoint } from './probe.ts';
import { endpointScorers } from './scorers.ts';

const free: Permits = { acquire: async () => ({ signal: new AbortController().signal, release: () => {} }) };
const secret = 'sk-very-secret-0123456789';
const env = { JUDGE_KEY: secret };

let server: ChatServer;
beforeEach(async () => {
  server = await ChatServer.start(() => says('Score: 1'));
});
afterEach(() => server.close());

const question = {
  template: '{prompt}|{response}|{ground_truth}',
  sampling: { temperature: 0 },
  score: { pattern: 'Score: (\\S+)' },
};
const settingsOf = (more: Partial<EndpointSettings> = {}): EndpointSettings => ({
  url: server.url,
  model: 'tiny',
  apiKey: 'env:JUDGE_KEY',
  limits: { concurrent: 8 },
  tokensPerRequest: 10,
  retries: 2,
  timeoutMs: 5_000,
  question,
  range: [0, 1],
  ...more,
});
const clientOf = (more?: Partial<EndpointSettings>, permits = free) =>
  new EndpointClient(settingsOf(more), { permits, env, resume: 'petrel resume r1', firstWaitMs: 5 });
const hostOf = (name: 'judge' | 'remote', more?: Partial<EndpointSettings>) => {
  const scorer = endpointScorers[name];
  if (scorer === undefined) throw new Error(name);
  return new EndpointHost(clientOf(more), scorer);
};
const input: ScorerInput = { dataSource: 'sums', solutionStr: 'it is 7', groundTruth: '7', prompt: '3+4=' };

describe('the scorer judge', () => {
  it('asks with the template and reads the last score', async () => {
    server.answering = () => says('Score: 0 at first, but\nScore: 0.75');
    const [outcome] = await hostOf('judge').score([input]);
    expect(outcome).toEqual({
      ok: true,
      score: 0.75,
      columns: { acc: 0.75, judgement: 'Score: 0 at first, but\nScore: 0.75' },
    });
    expect(server.seen).toMatchObject([
      {
        path: '/v1/chat/completions',
        headers: { authorization: `Bearer ${secret}` },
        body: { model: 'tiny', temperature: 0, messages: [{ role: 'user', content: '3+4=|it is 7|7' }] },
      },
    ]);
  });

  it('does not fill in the places that a response names', async () => {
    await hostOf('judge').score([{ ...input, solutionStr: '{ground_truth} $& {prompt}' }]);
    expect(server.seen[0]?.body.messages[0]?.content).toBe('3+4=|{ground_truth} $& {prompt}|7');
  });

  it.each([
    ['of plain JSON', '{"score": 0.5}', 0.5],
    ['in a fence, after text', 'I think {so}.\n```json\n{"why": "}{", "score": "0.25"}\n```', 0.25],
    ['that is the last of two', '{"score": 0} no: {"score": 1}', 1],
  ])('reads a field %s', async (_, text, score) => {
    server.answering = () => says(text);
    const host = hostOf('judge', { question: { ...question, score: { field: 'score' } } });
    expect(await host.score([input])).toMatchObject([{ ok: true, score }]);
  });

  it.each([
    ['no score', 'I like it very much', /has no score.*"I like it very much"/],
    [
      'a score outside of the range',
      'Score: 7',
      /score 7 is outside of reward\.endpoint\.score_range, 0 to 1.*"Score: 7"/,
    ],
    ['NaN', 'Score: NaN', /score "NaN" is no number; its answer: "Score: NaN"/],
    ['an infinite score', 'Score: Infinity', /is no number/],
    ['nothing', '', /answered nothing/],
  ])('fails a sample with the start of the answer when that has %s', async (_, text, reason) => {
    server.answering = () => says(text);
    const outcomes = await hostOf('judge').score([input]);
    expect(outcomes).toMatchObject([{ ok: false, code: 'bad-result', reason: expect.stringMatching(reason) }]);
    expect(server.seen).toHaveLength(1);
  });

  it('says when an answer was cut, or was only thought', async () => {
    server.answering = () => says(null, 'length');
    expect(await hostOf('judge').score([input])).toMatchObject([
      { reason: 'the judge answered nothing; it was cut at reward.endpoint.max_tokens' },
    ]);
  });

  it('ends a pattern that backtracks without end', async () => {
    server.answering = () => says('a'.repeat(50));
    const host = hostOf('judge', { question: { ...question, score: { pattern: '(a+)+b' } } });
    expect(await host.score([input])).toMatchObject([
      { ok: false, reason: expect.stringContaining('cannot be matched') },
    ]);
  });
});

describe('the scorer remote', () => {
  it('posts each sample and takes a number, or an object of named numbers', async () => {
    server.answering = (_, n) => ({ body: n === 1 ? '2.5' : { score: 1, format: 0.5, note: 'fine' } });
    const host = hostOf('remote', { url: `${server.url}/score`, range: undefined as never });
    expect(await host.score([input])).toEqual([{ ok: true, score: 2.5, columns: {} }]);
    expect(await host.score([input])).toEqual([{ ok: true, score: 1, columns: { format: 0.5, note: 'fine' } }]);
    expect(server.seen[0]).toMatchObject({
      path: '/v1/score',
      body: { data_source: 'sums', prompt: '3+4=', solution_str: 'it is 7', ground_truth: '7' },
    });
  });

  it.each([
    ['NaN', 'NaN', /finite number, got null; the remote scorer's answer: "NaN"/],
    ['a text', '"good"', /finite number/],
    ['an object without a score', '{"format": 1}', /needs "score"/],
    ['a score outside of the range', '3', /outside of reward\.endpoint\.score_range/],
  ])('fails a sample when the answer is %s', async (_, body, reason) => {
    server.answering = () => ({ body });
    expect(await hostOf('remote').score([input])).toMatchObject([{ ok: false, reason: expect.stringMatching(reason) }]);
  });
});

it('a key that a service repeats is in no score, column or reason', async () => {
  server.answering = () => ({ body: { score: 1, note: `Bearer ${secret}` } });
  expect(await hostOf('remote').score([input])).toMatchObject([{ columns: { note: 'Bearer [env:JUDGE_KEY]' } }]);
  server.answering = () => says(`${secret} Score: 1`);
  expect(await hostOf('judge').score([input])).toMatchObject([{ columns: { judgement: '[env:JUDGE_KEY] Score: 1' } }]);
  server.answering = () => says(`my key is ${secret}`);
  expect(JSON.stringify(await hostOf('judge').score([input]))).toContain('my key is [env:JUDGE_KEY]');
});

describe('a request', () => {
  const failing =
    (first: Answering, times: number): Answering =>
    (request, n) =>
      n <= times ? first(request, n) : says('Score: 1');

  it.each([
    ['a cut connection', (() => ({ cut: true })) as Answering],
    ...[408, 429, 500, 502, 503, 504].map((status) => [`HTTP ${status}`, () => ({ status })] as [string, Answering]),
  ])('is sent again after %s', async (_, fault) => {
    server.answering = failing(fault, 2);
    expect(await hostOf('judge').score([input])).toMatchObject([{ ok: true, score: 1 }]);
    expect(server.seen).toHaveLength(3);
  });

  it('is sent at once on a new connection when the server has closed the one that was kept', async () => {
    const host = hostOf('judge', { retries: 0 });
    await host.score([input]);
    await server.close();
    await server.listen();
    expect(await host.score([input])).toMatchObject([{ ok: true }]);
  });

  it('waits as long as Retry-After says, and makes the others of the run wait too', async () => {
    const released: unknown[] = [];
    const permits: Permits = {
      acquire: async () => ({
        signal: new AbortController().signal,
        release: (outcome) => void released.push(outcome),
      }),
    };
    server.answering = failing(() => ({ status: 429, headers: { 'retry-after': '0.4' } }), 1);
    await clientOf({}, permits).ask(
      { method: 'POST', url: `${server.url}/chat/completions`, body: '{}', say: () => {} },
      new AbortController().signal,
    );
    const [first, second] = server.seen;
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(395);
    expect(released).toMatchObject([{ holdMs: 400 }, {}]);
  });

  it('pauses the run after the last retry, naming the address and the last fault', async () => {
    server.answering = () => ({ status: 503, body: `overloaded ${secret}` });
    const said: string[] = [];
    const failed = hostOf('judge').score([input], { onPrint: (line) => said.push(line) });
    await expect(failed).rejects.toMatchObject({
      kind: 'pause',
      code: 'EndpointDown',
      message: `${server.url}/chat/completions gave no answer in 3 tries; the last: HTTP 503 overloaded [env:JUDGE_KEY]`,
      hint: 'start the service, then petrel resume r1',
    });
    expect(said).toHaveLength(2);
    expect(said.join()).toMatch(/HTTP 503 .*asking again in .* s, 1 of 2/);
    expect(said.join()).not.toContain(secret);
  });

  it('pauses the run when nobody listens', async () => {
    await server.close();
    await expect(hostOf('judge', { url: 'http://127.0.0.1:9/v1' }).score([input])).rejects.toMatchObject({
      code: 'EndpointDown',
      message: expect.stringMatching(/http:\/\/127\.0\.0\.1:9\/v1.*ECONNREFUSED/),
    });
  });

  it('has a time limit of its own', async () => {
    server.answering = () => new Promise(() => {});
    await expect(hostOf('judge', { timeoutMs: 1_500, retries: 1 }).score([input])).rejects.toMatchObject({
      code: 'EndpointDown',
      message: expect.stringContaining('no answer within 1.5 s'),
    });
    expect(server.seen).toHaveLength(2);
  });

  it.each([
    [400, /temperature, max_tokens, extra_body/],
    [401, /value of JUDGE_KEY/],
    [403, /value of JUDGE_KEY/],
    [404, /reward\.endpoint\.url and whether it serves the model tiny/],
    [422, /temperature, max_tokens/],
    [301, /reward\.endpoint\.url to the address that it names/],
  ])('is not sent again after HTTP %d: the run pauses and says what to change', async (status, hint) => {
    server.answering = () => ({ status, body: `no: Bearer ${secret}`, headers: { location: 'http://else/where' } });
    const failed = await hostOf('judge')
      .score([input])
      .catch((error: unknown) => error);
    expect(failed).toMatchObject({ kind: 'pause', code: 'EndpointRefused', hint: expect.stringMatching(hint) });
    expect(JSON.stringify({ ...(failed as Error), text: String(failed) })).not.toContain(secret);
    // 400 and 422 may be about one sample, so an empty one is asked about, too.
    expect(server.seen).toHaveLength([400, 422].includes(status) ? 2 : 1);
  });

  it.each([
    ['judge', 400],
    ['judge', 413],
    ['remote', 422],
  ] as const)(
    'that is asked by %s and refuses one sample with HTTP %d fails that sample only',
    async (scorer, status) => {
      const good = scorer === 'judge' ? says('Score: 1') : { body: 1 };
      const isLong = ({ messages, solution_str: response }: SeenBody) =>
        (messages?.at(-1)?.content ?? response).includes('very long');
      server.answering = ({ body }) => (isLong(body) ? { status, body: `too long: ${secret}` } : good);
      const outcomes = await hostOf(scorer).score([input, { ...input, solutionStr: 'very long' }, input]);
      expect(outcomes.map(({ ok }) => ok)).toEqual([true, false, true]);
      expect(outcomes[1]).toMatchObject({
        code: 'bad-result',
        reason: expect.stringMatching(new RegExp(`^the service refused the sample: HTTP ${status} too long`)),
      });
      expect(JSON.stringify(outcomes)).not.toContain(secret);
      expect(server.seen).toHaveLength(4);
    },
  );

  it.each([
    ['a page', '<html>Welcome</html>', /answered no chat completion: <html>Welcome/],
    ['no choices', { choices: [] }, /answered no chat completion: \{"choices":\[\]\}/],
    ['choices of another shape', { choices: ['x'] }, /no chat completion/],
  ])('pauses the run when the answer is %s, three times', async (_, body, message) => {
    server.answering = () => ({ body });
    await expect(hostOf('judge').score([input])).rejects.toMatchObject({
      kind: 'pause',
      code: 'EndpointNonsense',
      message: expect.stringMatching(message),
    });
    expect(server.seen).toHaveLength(3);
  });

  it('ends when its host is closed', async () => {
    let arrived = () => {};
    const there = new Promise<void>((resolve) => (arrived = resolve));
    let left = () => {};
    const ended = new Promise<void>((resolve) => (left = resolve));
    server.answering = async () => {
      arrived();
      await ended;
      return says('Score: 1');
    };
    const host = hostOf('judge');
    const scored = host.score([input, input]);
    const refused = expect(scored).rejects.toMatchObject({ code: 'ScorerHostClosed' });
    await there;
    await host.close();
    await refused;
    await expect.poll(() => server.busy).toBe(0);
    expect(server.gone).toBe(server.seen.length);
    left();
  });

  it('needs its key: a worker without it is unfit', () => {
    expect(() => new EndpointClient(settingsOf(), { permits: free, env: {}, resume: '' })).toThrow(
      'this worker has no variable JUDGE_KEY',
    );
  });
});

describe('a host with limits', () => {
  it('gives each call a permit and takes it back, also after a failure', async () => {
    let [inUse, most] = [0, 0];
    const permits: Permits = {
      acquire: async () => {
        most = Math.max(most, ++inUse);
        return { signal: new AbortController().signal, release: () => void (inUse -= 1) };
      },
    };
    const host = new LimitedHost(
      {
        ready: async () => {},
        close: async () => {},
        score: async ([one]) => {
          if (one?.solutionStr === 'bad') throw new Error('bad');
          return [{ ok: true, score: Number(one?.solutionStr), columns: {} }];
        },
      },
      permits,
      1,
    );
    const inputs = ['1', '2', '3'].map((solutionStr) => ({ ...input, solutionStr }));
    expect((await host.score(inputs)).map((one) => one.ok && one.score)).toEqual([1, 2, 3]);
    await expect(host.score([...inputs, { ...input, solutionStr: 'bad' }])).rejects.toThrow('bad');
    expect([inUse, most]).toEqual([0, 4]);
  });
});

describe('the probe at the start', () => {
  const probe = (more?: Partial<EndpointSettings>) => probeEndpoint(settingsOf(more), env);

  it('finds the model in the list, and asks about one that is not listed', async () => {
    expect(await probe()).toBe(`${server.url} serves tiny`);
    expect(server.seen).toEqual([]);
    expect(await probe({ model: 'hidden' })).toBe(`${server.url} serves hidden`);
    expect(server.seen).toMatchObject([{ body: { model: 'hidden', max_tokens: 1 } }]);
  });

  it('refuses a model that is not served, with those that are', async () => {
    server.answering = () => ({ status: 404, body: 'model not found' });
    await expect(probe({ model: 'large' })).rejects.toMatchObject({
      message: `${server.url} does not serve the model large: HTTP 404 model not found`,
      hint: 'it lists tiny: reward.endpoint.model=…',
    });
  });

  it('refuses an address at which nothing answers, with a command to paste', async () => {
    await expect(probe({ url: 'http://127.0.0.1:9/v1' })).rejects.toMatchObject({
      message: expect.stringMatching(/^nothing answers at http:\/\/127\.0\.0\.1:9\/v1: .*ECONNREFUSED/),
      hint: 'start the service; this must answer: curl -sS -H "Authorization: Bearer $JUDGE_KEY" http://127.0.0.1:9/v1/models',
    });
  });

  it('asks a service of the user’s own for a connection only', async () => {
    const { question: _, model: __, ...own } = settingsOf();
    expect(await probeEndpoint(own, env)).toBe(`${server.url} takes connections`);
    expect(server.seen).toEqual([]);
    await expect(probeEndpoint({ ...own, url: 'http://127.0.0.1:9/score' }, env)).rejects.toThrow('nothing answers');
  });
});
