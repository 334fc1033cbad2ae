/** The report of `plan` for people. */
import { showValue } from '../../core/recipe/index.ts';
import { counted, showBytes, showCount, showDuration } from '../../core/quantities.ts';
import { renderFields } from '../printer/table.ts';
import type { Terminal } from '../printer/terminal.ts';
import type { PlanReport } from '../../api/index.ts';
import { machineFields, machineTitle, secondsFields } from './machine-text.ts';
import { partsText } from './parts-text.ts';

type Field = readonly [name: string, value: string | undefined];

/** `terminal`: long lines are wrapped to its width. */
export function planText(report: PlanReport, all: readonly Field[] | undefined, terminal: Terminal): string {
  const section = (title: string, fields: readonly Field[]) => {
    const body = renderFields(fields, terminal, '  ');
    return body === '' ? '' : `${title}\n${body}`;
  };
  const keys = all ?? report.set.map(({ path, value }): Field => [path, showValue(value)]);
  const parts = [
    `${report.name} (${report.kind}) from ${report.file}`,
    section(all === undefined ? 'Keys that differ from their default' : 'All keys', keys),
    section('Arithmetic', arithmeticFields(report)),
    section(machineTitle(report), machineFields(report)),
    section('Seconds of an iteration at its longest, estimated', secondsFields(report)),
    section('Memory and disk, estimated', resourceFields(report)),
    section('Measured', measuredFields(report)),
    section('Promises', promiseFields(report)),
    section('Checks', checkFields(report)),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function checkFields({ checks }: PlanReport): Field[] {
  const widest = Math.max(0, ...checks.map(({ status }) => status.length));
  return checks.map(({ name, status, detail, hint }) => [
    name,
    `${status.padEnd(widest)}  ${detail}${hint === undefined ? '' : `\n${hint}`}`,
  ]);
}

function arithmeticFields({ batch, run, kind }: PlanReport): Field[] {
  const mini = [
    counted(batch.miniBatchPrompts, kind === 'rl' ? 'prompt' : 'row'),
    ...(kind === 'rl' ? [counted(batch.miniBatchResponses, 'response')] : []),
  ].join(' = ');
  return [
    [
      'iteration',
      kind === 'rl'
        ? `${counted(batch.prompts, 'prompt')} x ${counted(batch.responsesPerPrompt, 'response')} = ${counted(batch.responses, 'response')}`
        : counted(batch.prompts, 'row'),
    ],
    ['mini-batches', `${batch.miniBatches} of ${mini}`],
    [
      'optimiser steps',
      `${counted(batch.miniBatches, 'mini-batch', 'mini-batches')} x ${counted(batch.epochs, 'epoch')} = ${batch.optimizerSteps} per iteration`,
    ],
    ['tokens', `at most ${showCount(batch.mostTokens)} per iteration (${batch.longestSequence} per sequence)`],
    ['run', run.iterations === null ? 'its length depends on the number of rows' : lengthText(run)],
  ];
}

function lengthText(run: PlanReport['run']): string {
  return [
    counted(run.iterations ?? 0, 'iteration'),
    `${showCount(run.responses ?? 0)} ${run.responses === 1 ? 'response' : 'responses'}`,
    counted(run.optimizerSteps ?? 0, 'optimiser step'),
    counted(run.checkpoints ?? 0, 'checkpoint'),
    counted(run.validations ?? 0, 'validation'),
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
  if (disk === undefined) return [];
  return [
    ...(memory === undefined ? [] : memoryFields(memory)),
    [
      'checkpoint',
      `${showBytes(disk.checkpointBytes)}, ${disk.checkpoints === null ? 'all' : `at most ${disk.checkpoints}`} kept`,
    ],
    ['store', storeText(disk)],
  ];
}

function memoryFields({ processes, bytes, machineBytes, hasCards }: NonNullable<PlanReport['memory']>): Field[] {
  const each = processes.map(({ pool, workers, role, parts, bytes: own }): Field => {
    const many = workers === 1 ? '' : `${workers} x `;
    return [`${pool} (${role})`, `${many}${showBytes(own)}: ${partsText(parts)}`];
  });
  const cards = 'petrel plan <recipe> --machine 8xH100 says what each card holds';
  return [
    ...each,
    ['memory', `${showBytes(bytes)} of the machine's ${showBytes(machineBytes)}`],
    ['cards', hasCards ? cards : undefined],
  ];
}

function storeText({ bytes, freeBytes, modelBytes }: NonNullable<PlanReport['disk']>): string {
  const needed =
    bytes === null ? 'depends on the number of rows' : `${showBytes(bytes)} with the base of ${showBytes(modelBytes)}`;
  return freeBytes === null ? needed : `${needed}; ${showBytes(freeBytes)} are free`;
}

function measuredFields({ measured, run, batch }: PlanReport): Field[] {
  if (measured === undefined) return [];
  const { responses, seconds, tokensPerSecond, iterationSeconds, runSeconds } = measured;
  const whole =
    responses === batch.responses ? '' : `; ${batch.responses} take about ${showDuration(iterationSeconds)}`;
  return [
    ['iteration', `${counted(responses, 'response')} in ${showDuration(seconds)}${whole}`],
    ['throughput', `${showCount(tokensPerSecond)} tokens/s`],
    [
      'whole run',
      runSeconds === null
        ? 'its length depends on the number of rows'
        : `about ${showDuration(runSeconds)} for ${counted(run.iterations ?? 0, 'iteration')}, without checkpoints and validations`,
    ],
  ];
}
