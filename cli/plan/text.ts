/** The report of `plan` for people. */
import { showValue } from '../../core/recipe/index.ts';
import { showBytes, showCount, showDuration, showNumber } from '../../core/quantities.ts';
import { renderFields } from '../printer/table.ts';
import type { PlanReport } from '../../api/plan/report.ts';

type Field = readonly [name: string, value: string | undefined];

export function planText(report: PlanReport, all: readonly Field[] | undefined): string {
  const keys = all ?? report.set.map(({ path, value }): Field => [path, showValue(value)]);
  const parts = [
    `${report.name} (${report.kind}) from ${report.file}`,
    heading(all === undefined ? 'Keys that differ from their default' : 'All keys', renderFields(keys)),
    heading('Arithmetic', renderFields(arithmeticFields(report))),
    heading('Memory and disk, estimated', renderFields(resourceFields(report))),
    heading('Measured', renderFields(measuredFields(report))),
    heading('Promises', renderFields(promiseFields(report))),
    heading(
      'Checks',
      renderFields(
        report.checks.map(
          ({ name, status, detail, hint }): Field => [
            name,
            `${status}  ${detail}${hint === undefined ? '' : `\n${hint}`}`,
          ],
        ),
      ),
    ),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function heading(title: string, body: string): string {
  return body === '' ? '' : `${title}\n${body.replace(/^/gm, '  ')}`;
}

function arithmeticFields({ batch, run, kind }: PlanReport): Field[] {
  const mini = `${batch.miniBatchPrompts} prompts${kind === 'rl' ? ` = ${batch.miniBatchResponses} responses` : ''}`;
  return [
    [
      'iteration',
      kind === 'rl'
        ? `${batch.prompts} prompts x ${batch.responsesPerPrompt} responses = ${batch.responses} responses`
        : `${batch.prompts} rows`,
    ],
    ['mini-batches', `${batch.miniBatches} of ${mini}`],
    [
      'optimiser steps',
      `${batch.miniBatches} mini-batches x ${batch.epochs} epochs = ${batch.optimizerSteps} per iteration`,
    ],
    ['tokens', `at most ${showCount(batch.mostTokens)} per iteration (${batch.longestSequence} per sequence)`],
    ['run', run.iterations === null ? 'its length depends on the number of rows' : lengthText(run)],
  ];
}

function lengthText(run: PlanReport['run']): string {
  return [
    `${run.iterations} iterations`,
    `${showCount(run.responses ?? 0)} responses`,
    `${run.optimizerSteps} optimiser steps`,
    `${run.checkpoints} checkpoints`,
    `${run.validations} validations`,
  ].join(', ');
}

function promiseFields({ promises }: PlanReport): Field[] {
  return [
    ['replay', 'yes: the same records give the same weights'],
    [
      'end to end',
      `${promises.endToEnd ? 'yes: killed or undisturbed, the same weights' : 'no'} (${promises.because})`,
    ],
  ];
}

function resourceFields({ memory, disk }: PlanReport): Field[] {
  if (memory === undefined || disk === undefined) return [];
  const processes = memory.processes.map(({ pool, workers, role, parts, bytes }): Field => {
    const largest = Object.entries(parts)
      .filter(([, size]) => size > 0)
      .map(([name, size]) => `${partNames[name] ?? name} ${showBytes(size)}`);
    const many = workers === 1 ? '' : `${workers} x `;
    return [`${pool} (${role})`, `${many}${showBytes(bytes)}: ${largest.join(', ')}`];
  });
  return [
    ...processes,
    ['memory', `${showBytes(memory.bytes)} of the machine's ${showBytes(memory.machineBytes)}`],
    [
      'checkpoint',
      `${showBytes(disk.checkpointBytes)}, ${disk.checkpoints === null ? 'all' : `at most ${disk.checkpoints}`} kept`,
    ],
    ['store', storeText(disk)],
  ];
}

function storeText({ bytes, freeBytes, modelBytes }: NonNullable<PlanReport['disk']>): string {
  const needed =
    bytes === null ? 'depends on the number of rows' : `${showBytes(bytes)} with the base of ${showBytes(modelBytes)}`;
  return freeBytes === null ? needed : `${needed}; ${showBytes(freeBytes)} are free`;
}

const partNames: Readonly<Record<string, string>> = { kvCache: 'KV cache' };

function measuredFields({ measured, run, batch }: PlanReport): Field[] {
  if (measured === undefined) return [];
  const { responses, seconds, tokensPerSecond, iterationSeconds, runSeconds } = measured;
  const whole =
    responses === batch.responses ? '' : `; ${batch.responses} take about ${showDuration(iterationSeconds)}`;
  return [
    ['iteration', `${responses} responses in ${showNumber(seconds)} s${whole}`],
    ['throughput', `${showCount(tokensPerSecond)} tokens/s`],
    [
      'whole run',
      runSeconds === null
        ? 'its length depends on the number of rows'
        : `about ${showDuration(runSeconds)} for ${run.iterations} iterations, without checkpoints and validations`,
    ],
  ];
}
