/** Samples for people: a prompt once, its responses below, each with its reward. */
import type { Printer } from '../printer/printer.ts';
import { showNumber } from '../../core/quantities.ts';
import { wrapText } from '../printer/wrap.ts';
import type { SampleView } from '../../api/index.ts';

export function samplesText(samples: readonly SampleView[], printer: Printer): string {
  const groups = new Map<string, SampleView[]>();
  for (const sample of samples) {
    const key = `${sample.draw} ${sample.row}`;
    groups.set(key, [...(groups.get(key) ?? []), sample]);
  }
  return [...groups.values()].map((group) => groupText(group, printer)).join('\n\n');
}

function groupText(group: readonly SampleView[], printer: Printer): string {
  const [first] = group;
  if (first === undefined) return '';
  const expected = first.groundTruth === undefined ? '' : ` · expected ${oneLine(first.groundTruth)}`;
  const outcome = first.fate === undefined || first.fate === 'trained' ? '' : ` · ${first.fate}`;
  const head = printer.style('bold', `draw ${first.draw} · row ${first.row}${expected}${outcome}`);
  return [
    head,
    wrapText(first.prompt.trimEnd(), printer.stdout.columns, '  │ '),
    ...group.map((sample) => sampleText(sample, printer)),
  ].join('\n');
}

function sampleText(sample: SampleView, printer: Printer): string {
  const head = printer.style(styleOf(sample), wrapText(headOf(sample), printer.stdout.columns, '  '));
  const body = sample.response === '' ? '(empty)' : sample.response;
  return `${head}\n${wrapText(body, printer.stdout.columns, '    ')}`;
}

function headOf({ sample, reward, reason, columns, advantage, stopReason, responseTokens }: SampleView): string {
  const parts = [
    `#${sample}`,
    reward === null
      ? reason === undefined
        ? undefined
        : `failed: ${oneLine(reason)}`
      : `reward ${showNumber(reward)}`,
    advantage === undefined ? undefined : `advantage ${advantage > 0 ? '+' : ''}${showNumber(advantage)}`,
    `${responseTokens} ${responseTokens === 1 ? 'token' : 'tokens'}`,
    stopReason === 'length' ? 'cut at the limit' : undefined,
    ...Object.entries(columns).map(([name, value]) =>
      value === null ? undefined : `${oneLine(name)} ${typeof value === 'number' ? showNumber(value) : oneLine(value)}`,
    ),
  ];
  return parts.filter((part) => part !== undefined).join(' · ');
}

/** The advantage says what training made of it; without one the reward does. */
function styleOf({ advantage, reward }: SampleView): 'green' | 'yellow' | 'dim' {
  const good = advantage ?? reward ?? 0;
  return good > 0 ? 'green' : reward === null ? 'yellow' : 'dim';
}

function oneLine(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const line = wrapText(text.replaceAll('\n', ' '), Number.MAX_SAFE_INTEGER);
  return line.length > 120 ? `${line.slice(0, 119)}…` : line;
}
