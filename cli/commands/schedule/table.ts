/** Commands about schedules. */
import { overlapDocs, overlapPolicies } from '../../../core/records/overlap-policies.ts';
import type { CommandSpec } from '../../command.ts';

const NAME_WORD = '<name>';
const group = 'Runs';

export const SCHEDULE_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'schedule add',
    arguments: '<recipe> [overrides...]',
    doc: 'Start runs of a recipe by the clock. Model, rows and scorer are stored now; later changes of the files have no effect.',
    group,
    options: [
      { flags: '--every <duration>', doc: 'at multiples of this since midnight 1970 UTC: 90s, 10m, 6h, 1d' },
      { flags: '--cron <fields>', doc: 'minute, hour, day of month, month, day of week' },
      { flags: '--timezone <name>', doc: 'time zone of --cron; default: UTC' },
      {
        flags: '--overlap <policy>',
        doc: `when a run of it has not ended: ${overlapPolicies.map((policy) => `${policy} (${overlapDocs[policy]})`).join(', ')}`,
        default: 'skip',
      },
      { flags: '--jitter <duration>', doc: 'start up to this much later, at random' },
      { flags: '--until <when>', doc: 'a time, or a duration from now' },
      { flags: '--backfill <range>', doc: 'FROM..TO: also start runs for these times of the past, one after another' },
      {
        flags: '--catch-up <duration>',
        doc: 'how late a run may still start after an outage; default: one interval',
      },
      { flags: '--name <name>', doc: 'name of the schedule and of its runs; default: the name of the recipe' },
      { flags: '--replace', doc: 'replace the schedule of that name: new data, recipe or times' },
    ],
    examples: [
      "petrel schedule add recipe.yaml --cron '0 3 * * *' --name nightly",
      'petrel schedule add recipe.yaml rollout.n=16 --every 6h --overlap buffer --until 30d',
      "petrel schedule add recipe.yaml --name nightly --cron '0 3 * * *' --replace",
    ],
    load: () => import('./add.ts'),
  },
  { name: 'schedule ls', doc: 'List schedules, their next times and last runs.', group, load: () => import('./ls.ts') },
  {
    name: 'schedule show',
    arguments: NAME_WORD,
    doc: 'Show a schedule: next times, the run that blocks it, skipped times with reasons, the last runs.',
    group,
    options: [{ flags: '-n, --limit <n>', doc: 'newest past times', default: '10' }],
    load: () => import('./show.ts'),
  },
  {
    name: 'schedule pause',
    arguments: NAME_WORD,
    doc: 'Start no more runs. Runs that were started continue.',
    group,
    options: [{ flags: '--note <text>', doc: 'why' }],
    load: () => import('./pause.ts'),
  },
  {
    name: 'schedule unpause',
    arguments: NAME_WORD,
    doc: 'Start runs again, from this stack.',
    group,
    load: () => import('./unpause.ts'),
  },
  {
    name: 'schedule trigger',
    arguments: NAME_WORD,
    doc: 'Start a run now, under the overlap policy, also while the schedule is paused.',
    group,
    load: () => import('./trigger.ts'),
  },
  {
    name: 'schedule rm',
    arguments: NAME_WORD,
    doc: 'Remove a schedule. Its runs stay.',
    group,
    options: [{ flags: '-y, --yes', doc: 'do not ask' }],
    load: () => import('./rm.ts'),
  },
];
