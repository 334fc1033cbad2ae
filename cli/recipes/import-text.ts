/** The report of `recipe import` for people. */
import { importLossText, importLossTitle, importPlaceText, importReasonText } from '../../api/index.ts';
import type { ImportedKey, ImportedRecipe, ImportMeasure, KeyOutcome } from '../../api/index.ts';
import { counted } from '../../core/quantities.ts';
import { issueHint, issueLine, showValue } from '../../core/recipe/index.ts';
import { renderTable } from '../printer/table.ts';

export function importText(imported: ImportedRecipe): string {
  const { keys, engines, defaults, notes, problems, losses, source } = imported;
  const of = (...outcomes: readonly KeyOutcome[]) => keys.filter(({ outcome }) => outcomes.includes(outcome));
  return [
    losses.length === 0 ? '' : section(importLossTitle(losses, source), losses.map(importLossText)),
    section('Engines', [`${enginesText(imported)}; ${engines.why}`]),
    section(
      'Mapped to the same key',
      of('same').map((key) => `${key.petrel}: ${showValue(key.written)}`),
    ),
    section(
      'Mapped to another key',
      of('moved').map((key) => `${key.verl} -> ${key.petrel}: ${showValue(key.written)}`),
    ),
    section('With a difference', of('differs').map(differenceLine)),
    section(
      'Nothing to set, petrel does so',
      of('met').map((key) => `${key.verl}: ${showValue(key.value)}`),
    ),
    section(
      'Not built yet',
      of('later').map((key) => `${key.petrel}: ${showValue(key.written)}; ${key.note}`),
    ),
    byReason('Without a counterpart', of('none')),
    section('Values that petrel does not take', of('refused').map(placed)),
    section('Values that are not known', of('unreadable').map(placed)),
    section('Keys that petrel does not know', of('unknown').map(placed)),
    section(
      'Not set in the file, with other defaults',
      defaults.map(
        (one) =>
          `${one.petrel}: verl ${showValue(one.verlDefault)}, petrel ${showValue(one.petrelDefault)}; ${one.note}`,
      ),
    ),
    section(
      'Not read',
      notes.filter(({ decides }) => decides !== true).map((note) => `${importPlaceText(note)}${note.text}`),
    ),
    section(
      'Before the recipe can be run',
      problems.map((issue) => [issueLine(issue), issueHint(issue)].filter((text) => text !== undefined).join('; ')),
    ),
    summary(imported),
  ]
    .filter((text) => text !== '')
    .join('\n\n');
}

function enginesText({ engines, tree }: ImportedRecipe): string {
  const samples = tree['kind'] !== 'sft';
  return `trainer.engine: ${engines.trainer}${samples ? `, rollout.name: ${engines.sampler}` : ''}`;
}

function summary({ counts, source }: ImportedRecipe): string {
  const written = counts.same + counts.moved + counts.differs;
  return `${source}: ${counted(counts.keys, 'key')}, ${counts.mapped} mapped (${share(counts.mapped, counts.keys)}): ${written} to keys, of which ${counts.differs} with a difference, and ${counts.met} with nothing to set`;
}

const section = (title: string, lines: readonly string[]): string =>
  lines.length === 0 ? '' : [title, ...lines.map((line) => `  ${line}`)].join('\n');

const differenceLine = (key: ImportedKey): string =>
  `${key.verl}: ${'value' in key ? showValue(key.value) : 'not known'}${key.petrel === undefined ? '' : ` -> ${key.petrel}`}${'written' in key ? `: ${showValue(key.written)}` : ''}; ${key.note}`;

const placed = (key: ImportedKey): string =>
  `${importPlaceText(key)}${key.verl}${key.note === undefined ? '' : `; ${key.note}`}`;

function byReason(title: string, keys: readonly ImportedKey[]): string {
  const reasons = new Map<string, string[]>();
  for (const key of keys) reasons.set(importReasonText(key), [...(reasons.get(importReasonText(key)) ?? []), key.verl]);
  return section(
    title,
    [...reasons].flatMap(([reason, names]) => [reason, ...names.map((name) => `  ${name}`)]),
  );
}

export function measureText({ files, totals, left }: ImportMeasure, width: number | undefined): string {
  const rows = files.map((one) => ({ one, counts: 'counts' in one ? one.counts : undefined }));
  const table = renderTable(
    rows,
    [
      { head: 'file', value: ({ one }) => one.file, shrink: true },
      { head: 'keys', value: ({ counts }) => counts?.keys },
      { head: 'mapped', value: ({ counts }) => counts?.mapped },
      {
        head: 'share',
        value: ({ counts }) => (counts === undefined ? undefined : share(counts.mapped, counts.keys)),
        right: true,
      },
    ],
    width,
  );
  const leftTable = renderTable(
    left,
    [
      { head: 'files', value: (key) => key.files },
      { head: 'not mapped', value: (key) => key.verl },
      { head: 'why', value: (key) => key.why, shrink: true },
    ],
    width,
  );
  const errors = files.flatMap((one) => ('error' in one ? [`${one.file}: ${one.error}`] : []));
  const { keys, mapped, same, moved, differs, met, none, later, refused, unreadable, unknown } = totals;
  const parts = `same ${same}, moved ${moved}, differs ${differs}, met ${met}; not built yet ${later}, none ${none}, refused ${refused}, not readable ${unreadable}, unknown ${unknown}`;
  return [
    table,
    ...(left.length === 0 ? [] : [leftTable]),
    ...(errors.length === 0 ? [] : [errors.join('\n')]),
    `${counted(files.length - errors.length, 'file')}, ${counted(keys, 'key')}: ${mapped} mapped (${share(mapped, keys)})\n${parts}`,
  ].join('\n\n');
}

const share = (part: number, whole: number): string => (whole === 0 ? '-' : `${((100 * part) / whole).toFixed(1)} %`);
