/** The findings of a soak as tables, and which of them are failures. */
import { ages, growthOf, judge } from './growth.ts';
import type { Growth, Slope } from './growth.ts';
import { diskGroups } from './disk.ts';
import { victims } from './blows.ts';
import type { Rest, SoakResult } from './soak.ts';

export interface Check {
  readonly name: string;
  /** Undefined: the soak was too short to decide. */
  readonly ok: boolean | undefined;
  readonly why: string;
}

/** The memory of garbage-collected processes varies by more than this between rounds; a leak grows in every round. */
const mostMiBPerRound = 1;
/** A socket that is never closed counts as one per round. */
const mostHandlesPerRound = 0.25;
const mostProcessLogBytes = 64 * 1024 * 1024;

export function checksOf(result: SoakResult): Check[] {
  const growth = growthOf(result.rests.flatMap(({ census }) => census.samples));
  const orphans = result.rests.flatMap(({ round, census }) =>
    census.orphans.map((orphan) => `after round ${round}: ${orphan}`),
  );
  const last = result.rests.at(-1);
  return [
    ...growth.map((one) => growthCheck(`memory of ${one.kind}`, one.memory, mostMiBPerRound, 'MiB')),
    ...growth.map((one) => growthCheck(`handles of ${one.kind}`, one.handles, mostHandlesPerRound, 'handles')),
    countsCheck(
      'processes',
      result.rests,
      ({ census }) => census.samples.filter(({ kind }) => kind !== 'scorer').length,
    ),
    countsCheck('listening ports', result.rests, ({ census }) => census.ports.length),
    { name: 'to its end', ok: result.broken.length === 0, why: result.broken.join('; ') || 'yes' },
    { name: 'orphans', ok: orphans.length === 0, why: orphans.join('; ') || 'none' },
    {
      name: 'left after the stack was stopped',
      ok: result.left.length === 0,
      why: result.left.join('; ') || 'nothing',
    },
    {
      name: 'temporary files',
      ok: result.temporary.length === 0,
      why: result.temporary.slice(0, 5).join(', ') || `none after the janitor took ${result.leftovers}`,
    },
    {
      name: 'process logs',
      ok: (last?.disk.bytes['process logs'] ?? 0) < mostProcessLogBytes,
      why: `${mebibytes(last?.disk.bytes['process logs'] ?? 0)} MiB`,
    },
  ];
}

function growthCheck(name: string, found: Slope | undefined, most: number, unit: string): Check {
  if (found === undefined) return { name, ok: undefined, why: 'no process lived long enough to tell' };
  return { name, ok: judge(found, most), why: `${rate(found)} ${unit} a round, at most ${most}` };
}

const rate = (slope: Slope | undefined): string =>
  slope === undefined ? '–' : `${slope.perRound.toFixed(3)} ± ${(2 * slope.error).toFixed(3)}`;

/** Passes when the number is the same after every round. */
function countsCheck(name: string, rests: readonly Rest[], count: (rest: Rest) => number): Check {
  const counts = [...new Set(rests.map(count))];
  return { name, ok: counts.length <= 1, why: counts.join(', ') };
}

export function renderSoak(result: SoakResult, checks: readonly Check[]): string {
  const growth = growthOf(result.rests.flatMap(({ census }) => census.samples));
  return [
    trainingRows(result),
    faultRows(result),
    growthRows(growth),
    ageRows(growth),
    diskRows(result.rests),
    checkRows(checks),
  ].join('\n\n');
}

function trainingRows({ trainings }: SoakResult): string {
  const names = [...new Set(trainings.map(({ training }) => training))].sort();
  const rows = names.map((name) => {
    const own = trainings.filter(({ training }) => training === name);
    const seconds = own.map((one) => one.seconds).sort((a, b) => a - b);
    const good = own.filter(({ problems }) => problems.length === 0).length;
    return [
      name,
      own.length,
      own.reduce((sum, { blows }) => sum + blows.length, 0),
      good,
      (seconds[Math.floor((seconds.length - 1) / 2)] ?? 0).toFixed(1),
    ];
  });
  return table(['training', 'runs', 'faults', 'complete, proven, equal to the undisturbed', 'median s'], rows);
}

/** Survived: faults in runs that ended like the undisturbed ones. */
function faultRows({ trainings }: SoakResult): string {
  const rows = victims.map((victim) => {
    const of = (results: typeof trainings): number =>
      results.reduce((sum, { blows }) => sum + blows.filter((blow) => blow.victim === victim).length, 0);
    return [victim, of(trainings), of(trainings.filter(({ problems }) => problems.length === 0))];
  });
  return table(
    ['killed', 'times', 'survived'],
    rows.filter(([, times]) => times !== 0),
  );
}

function growthRows(growth: readonly Growth[]): string {
  const rows = growth.map((one) => [
    one.kind,
    one.incarnations,
    one.samples,
    one.firstMiB.toFixed(0),
    one.lastMiB.toFixed(0),
    rate(one.memory),
    one.firstHandles,
    one.lastHandles,
    rate(one.handles),
  ]);
  return table(
    [
      'processes',
      'lives',
      'samples',
      'first MiB',
      'last MiB',
      'MiB a round',
      'first handles',
      'last handles',
      'handles a round',
    ],
    rows,
  );
}

function ageRows(growth: readonly Growth[]): string {
  const rows = growth.map(({ kind, atAge }) => [kind, ...ages.map((age) => atAge.get(age)?.toFixed(0) ?? '–')]);
  return table(['MiB in the round of its life', ...ages.map(String)], rows);
}

function diskRows(rests: readonly Rest[]): string {
  const [first, last] = [rests[0], rests.at(-1)];
  if (first === undefined || last === undefined) return 'no round';
  const runs = last.runs - first.runs;
  const rows = diskGroups.map((group) => {
    const growth = last.disk.bytes[group] - first.disk.bytes[group];
    return [
      group,
      mebibytes(first.disk.bytes[group]),
      mebibytes(last.disk.bytes[group]),
      runs === 0 ? '–' : (growth / runs / 1024).toFixed(1),
      last.disk.files[group],
    ];
  });
  return table(['on disk', 'first MiB', 'last MiB', 'KiB a run', 'files'], rows);
}

function checkRows(checks: readonly Check[]): string {
  return table(
    ['check', 'verdict', 'found'],
    checks.map(({ name, ok, why }) => [name, ok === undefined ? 'cannot tell' : ok ? 'ok' : 'FAILED', why]),
  );
}

const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(2);

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
