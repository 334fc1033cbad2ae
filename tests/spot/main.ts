/**
 * `npm run spot -- [--trace NAME|FILE] [--losses-per-hour X --bulk Y] [--seed N] [--speed 60] [--iterations N |
 * --recipe FILE] [--slow-recovery SECONDS] [--svg FILE] [--json]`: a run on three spot machines that are lost by a
 * trace, beside the same run undisturbed (docs/look-up/spot.md). Exits with 1 when a bound does not hold.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { InvalidInputError } from '../../core/errors.ts';
import { effectiveTime, waitingCaused } from './measure.ts';
import type { MachineSeconds } from './measure.ts';
import { picture } from './picture.ts';
import { machines, SpotBed, tokensPerSecond } from './play.ts';
import type { Played, SpotSettings } from './play.ts';
import { generatedLosses, namedTraces, readTrace } from './trace.ts';
import type { Loss } from './trace.ts';

const usage = `usage: npm run spot -- [--trace ${Object.keys(namedTraces).join('|')}|FILE] [--losses-per-hour X --bulk Y]
  [--seed N] [--speed 60] [--iterations 40 | --recipe FILE] [--slow-recovery SECONDS] [--svg FILE] [--json]`;

/** What a GPU-hour costs on demand beside spot: what the same machine-seconds would have cost. */
const onDemandFactor = 2.5;

interface Options extends SpotSettings {
  readonly name: string;
  readonly losses: readonly Loss[];
  readonly lossesPerHour: number | undefined;
  readonly svg: string | undefined;
  readonly json: boolean;
}

async function main(args: readonly string[]): Promise<number> {
  const options = read(args);
  const say = options.json ? console.error : console.log;
  const bed = new SpotBed();
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void bed.remove().finally(() => process.exit(130)));
  try {
    say(
      `undisturbed: ${options.recipe ?? `${options.iterations} iterations`} on ${machines} machines of ${tokensPerSecond} tokens/s`,
    );
    const calm = await bed.play({ ...options, extraBootMs: 0 }, [], say);
    say(
      `undisturbed: ${calm.seconds.toFixed(0)} s; now with the trace ${options.name}, ${options.speed} times as fast`,
    );
    const played = await bed.play(options, options.losses, say);
    const report = reportOf(options, played, calm);
    if (options.svg !== undefined) writeFileSync(options.svg, picture(played, options.name));
    console.log(options.json ? JSON.stringify(report) : textOf(report));
    const broken = brokenBounds(report, options.lossesPerHour);
    for (const line of broken) say(`not held: ${line}`);
    return broken.length === 0 ? 0 : 1;
  } finally {
    await bed.remove();
  }
}

type Report = ReturnType<typeof reportOf>;

function reportOf({ name, seed, speed }: Options, played: Played, calm: Played) {
  const same = played.states.length === calm.states.length && played.states.every((one, i) => one === calm.states[i]);
  const caused = waitingCaused(played.time, calm.time);
  return {
    trace: name,
    seed,
    speed,
    effectiveTime: effectiveTime(played.time, caused),
    wallClockRatio: played.seconds / calm.seconds,
    losses: played.losses,
    decodedTokensLost: played.decodedTokensLost,
    ledger: played.ledger && calm.ledger ? 'verified' : 'damaged',
    digestsEqual: same,
    usd: played.usd,
    usdOnDemand: played.usd * onDemandFactor,
    load: played.load,
    machineSeconds: { ...totalsOf(played.time), waitingCaused: caused },
    undisturbed: totalsOf(calm.time),
    disturbedIterations: played.time.disturbed.length,
  };
}

const totalsOf = ({ bought, booting, lost, waiting }: MachineSeconds): MachineSeconds => ({
  bought,
  booting,
  lost,
  waiting,
});

function textOf(report: Report): string {
  const { booting, lost, waiting, waitingCaused: caused, bought } = report.machineSeconds;
  return [
    `effective time ${report.effectiveTime.toFixed(3)}, wall clock ${report.wallClockRatio.toFixed(3)} of the undisturbed run's`,
    `${report.losses} losses; ${report.decodedTokensLost} decoded tokens thrown away`,
    `of ${bought.toFixed(0)} machine-seconds: booting ${booting.toFixed(0)}, lost ${lost.toFixed(0)}, waiting ${waiting.toFixed(0)}, ${caused.toFixed(0)} of them caused by losses in ${report.disturbedIterations} iterations (undisturbed: waiting ${report.undisturbed.waiting.toFixed(0)} of ${report.undisturbed.bought.toFixed(0)})`,
    `ledger ${report.ledger}; digests ${report.digestsEqual ? 'equal' : 'DIFFERENT'}; $${report.usd.toFixed(4)}, on demand $${report.usdOnDemand.toFixed(4)}`,
    `processors busy: ${(100 * report.load).toFixed(0)} %`,
  ].join('\n');
}

/** The bounds of docs/look-up/spot.md, for rates that they are about. */
function brokenBounds(report: Report, lossesPerHour: number | undefined): string[] {
  const least = lossesPerHour === undefined || lossesPerHour > 0.05 ? 0.9 : 0.97;
  const held: [boolean, string][] = [
    [report.effectiveTime >= least, `effective time >= ${least}, got ${report.effectiveTime.toFixed(3)}`],
    [report.wallClockRatio <= 1.15, `wall clock <= 1.15, got ${report.wallClockRatio.toFixed(3)}`],
    [
      report.decodedTokensLost <= tokensPerSecond * report.losses,
      `decoded tokens thrown away <= ${tokensPerSecond} a loss, got ${report.decodedTokensLost} in ${report.losses}`,
    ],
    [report.ledger === 'verified', 'the ledger is verified'],
    [report.digestsEqual, 'the digests are those of the undisturbed run'],
  ];
  return held.flatMap(([holds, line]) => (holds ? [] : line));
}

function read(args: readonly string[]): Options {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...{ trace: text, 'losses-per-hour': text, bulk: text, seed: text, speed: text, iterations: text, recipe: text },
      ...{ 'slow-recovery': text, svg: text, json: { type: 'boolean' } },
    },
  });
  const number = (name: keyof typeof values, usual: number, least = 0): number => {
    const given = values[name];
    const value = given === undefined ? usual : Number(given);
    if (value >= least) return value;
    throw new InvalidInputError(`--${name}: expected a number from ${least} on, got ${String(given)}\n${usage}`);
  };
  const trace = values.trace ?? 'stormy';
  const named = namedTraces[trace];
  const settings = {
    recipe: values.recipe,
    iterations: number('iterations', 40, 1),
    speed: number('speed', 60, 1),
    seed: number('seed', 1),
    extraBootMs: 1_000 * number('slow-recovery', 0),
  };
  const common = { ...settings, svg: values.svg, json: values.json ?? false };
  const generated = values['losses-per-hour'] !== undefined;
  if (named === undefined && !generated) return { ...common, ...readTrace(trace), lossesPerHour: undefined };
  const rates = {
    lossesPerHour: number('losses-per-hour', named?.lossesPerHour ?? 0.4),
    bulk: number('bulk', named?.bulk ?? 0.5),
    seed: settings.seed,
  };
  // Longer than any run: what comes after its end does not happen.
  const losses = generatedLosses(rates, machines, 48);
  const name = generated ? `${rates.lossesPerHour} losses per machine-hour, ${rates.bulk} in bulk` : trace;
  return { ...common, name, losses, lossesPerHour: rates.lossesPerHour };
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exit(2);
  },
);
