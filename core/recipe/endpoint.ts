import { z } from 'zod';
import { count, countOrZero, key, section, text } from './key.ts';

const template = `Question:
{prompt}

Reference answer:
{ground_truth}

Answer to judge:
{response}

How good is the answer to judge? Think briefly, then end with one line "Score: x", where x is a number from 0 (wrong) to 1 (right).`;

/** `reward.endpoint`: an HTTP service that a scorer asks. */
export const endpointSection = section(
  'An HTTP service that the scorer asks: a chat model behind OpenAI’s interface, or a scorer of your own. Its limits hold for the whole run, over all reward workers.',
  {
    url: key(text.nullable(), null, {
      doc: 'Address of the service; null: none. A chat model: up to /v1, as clients of OpenAI’s interface take it; scorer remote: where samples are posted.',
      change: 'free',
    }),
    model: key(text.nullable(), null, { doc: 'Name of the chat model, as the service knows it.', change: 'ask' }),
    api_key: key(text.nullable(), null, {
      doc: 'The key, as env:NAME: the value of the variable NAME of the reward workers.',
      change: 'free',
    }),
    max_concurrent: key(count.nullable(), null, {
      doc: 'Maximum number of requests at a time; null: 8, and 1 with the manager rate_limited, as in verl.',
      unit: 'requests',
      change: 'free',
      verl: 'reward.max_concurrent',
    }),
    max_rpm: key(count.nullable(), null, {
      doc: 'Maximum number of requests in any minute; null: no limit.',
      unit: 'requests',
      change: 'free',
      verl: 'reward.max_rpm',
    }),
    max_tpm: key(count.nullable(), null, {
      doc: 'Maximum number of tokens in any minute, as the service counts them; null: no limit.',
      unit: 'tokens',
      change: 'free',
      verl: 'reward.max_tpm',
    }),
    estimated_tokens_per_request: key(countOrZero, 2000, {
      doc: 'Tokens that a request counts until its answer says how many it had (max_tpm).',
      unit: 'tokens',
      change: 'free',
      verl: 'reward.estimated_tokens_per_request',
    }),
    max_retries: key(countOrZero, 8, {
      doc: 'How often a request is sent again when the service is down or busy; then the run pauses.',
      change: 'free',
    }),
    timeout: key(z.number().positive(), 300, {
      doc: 'Time limit of one request. It is not part of reward.timeout.',
      unit: 's',
      change: 'free',
    }),
    system: key(text.nullable(), null, { doc: 'System message of the scorer judge; null: none.', change: 'ask' }),
    template: key(text, template, {
      doc: 'What the scorer judge asks: a text with {prompt}, {response} and {ground_truth}.',
      change: 'ask',
    }),
    temperature: key(z.number().nonnegative(), 0, { doc: 'Temperature of the judge.', change: 'ask' }),
    top_p: key(z.number().positive().max(1).nullable(), null, {
      doc: 'Nucleus sampling of the judge; null: as the service does.',
      change: 'ask',
    }),
    max_tokens: key(count.nullable(), 1024, {
      doc: 'Longest answer of the judge; null: as the service does.',
      unit: 'tokens',
      change: 'ask',
    }),
    extra_body: key(
      z.record(z.string(), z.json()),
      {},
      {
        doc: 'More fields of the request to the judge, such as {reasoning_effort: low}; null leaves a field out.',
        change: 'ask',
      },
    ),
    score_pattern: key(text, '[Ss]core:\\s*\\**\\s*([-+]?[0-9.]+)', {
      doc: 'Regular expression for the score in the judge’s answer: the first group of the last match.',
      change: 'ask',
    }),
    score_field: key(text.nullable(), null, {
      doc: 'Instead of score_pattern: the field of a JSON object in the answer, as score or result.score.',
      change: 'ask',
    }),
    score_range: key(z.tuple([z.number(), z.number()]).nullable(), null, {
      doc: 'Lowest and highest score; a sample with another one counts as failed. null: 0 to 1 for judge, none for remote.',
      change: 'ask',
    }),
  },
);
