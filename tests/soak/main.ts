/**
 * `npm run soak -- --minutes N [--seed S] [--store <folder or s3://…>] [--calm]`: exit code 1 when anything leaked or
 * failed. `--calm`: no faults, so that every process lives from the first round to the last.
 */
import { parseArgs } from 'node:util';
import { errorToJson, InvalidInputError } from '../../core/errors.ts';
import { checksOf, renderSoak } from './report.ts';
import { soak } from './soak.ts';

const usage = 'usage: npm run soak -- --minutes N [--seed S] [--store <folder or s3://…>] [--calm]';

async function main(args: readonly string[]): Promise<number> {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    args: [...args],
    options: { minutes: text, seed: text, store: text, calm: { type: 'boolean' } },
  });
  const minutes = numberOf('minutes', values.minutes ?? '3', /^\d+(\.\d+)?$/);
  const seed = numberOf('seed', values.seed ?? '1', /^\d+$/);
  console.log(`a soak of ${minutes} minutes, seed ${seed}`);
  const result = await soak({
    minutes,
    seed,
    calm: values.calm === true,
    ...(values.store === undefined ? {} : { store: values.store }),
    say: (line) => console.log(line),
  });
  const checks = checksOf(result);
  console.log(`\n${renderSoak(result, checks)}`);
  const bad = result.trainings.filter(({ problems }) => problems.length > 0).length;
  const failed = bad + checks.filter(({ ok }) => ok === false).length;
  console.log(
    `\n${result.trainings.length - bad + checks.filter(({ ok }) => ok === true).length} passed, ${failed} failed`,
  );
  return failed === 0 ? 0 : 1;
}

function numberOf(name: string, value: string, pattern: RegExp): number {
  if (!pattern.test(value)) throw new InvalidInputError(`--${name} is a number, got ${value}`, { hint: usage });
  return Number(value);
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    const { message, hint } = errorToJson(error);
    console.error(`soak: ${message}${hint === undefined ? '' : `\n  ${hint}`}`);
    process.exit(error instanceof InvalidInputError ? 2 : 1);
  },
);
