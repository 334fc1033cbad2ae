/** All metrics as a Markdown page: docs/look-up/metrics.md. */
import { METRICS, type MetricInfo } from './metrics.ts';

const INTRO = `# All metrics

Made by \`npm run docs\` from the table of metrics, as \`petrel reference metrics\` prints it; a test keeps it up to date.
What to look at first: [watch a run](../do/watch.md).

*Better* says which way is better, if one is. *Reproducible*: two deterministic runs with one recipe agree on the metric
to the bit; the others depend on the machine and the hour. \`{…}\` stands for a part of the name without a slash; only
\`{source}\`, a data source, may contain slashes. \`petrel metrics <run> --list\` puts \`val_\` before the metrics of the
jobs of a validation.

Older records have \`timing_s/rollout\`, \`timing_s/advantage\` and \`timing_s/update\` (the seconds of jobs, added up) and
\`val/accuracy\`. These names still work; \`--list\` shows what took their place.

| metric | unit | better | reproducible | what it is |
|---|---|---|---|---|
`;

/** The whole page; ends with a line break. */
export function metricReference(): string {
  return `${INTRO}${METRICS.map(row).join('\n')}\n`;
}

function row({ name, unit, direction, kind, doc }: MetricInfo): string {
  const better = direction === 'none' ? '' : direction;
  return `| \`${name}\` | ${unit} | ${better} | ${kind === 'reproducible' ? 'yes' : ''} | ${doc} |`;
}
