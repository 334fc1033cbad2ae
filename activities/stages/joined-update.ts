/** The update of a run that is divided, from the updates of its parts. */
import { at } from '../../core/at.ts';
import { someOf } from '../../core/records/components.ts';
import type { Components } from '../../core/records/components.ts';
import type { BatchRecord } from '../../core/records/schema.ts';
import type { UpdatedComponent, UpdateOutput } from '../../core/wire/jobs/index.ts';
import type { JobResult } from '../../core/ports/jobs.ts';
import type { ActivityPorts } from '../ports/index.ts';

type UpdateResult = Pick<JobResult<'update'>, 'output' | 'timings'>;

/**
 * What one trainer of all components would have answered. `results`: of each part, that of the policy first. Each has
 * the metrics of its components; those of the whole update are of the policy, but for iterations that train only the
 * critic.
 */
export function joinedUpdate(
  { runStateOf }: Pick<ActivityPorts, 'runStateOf'>,
  { components: trained, before, after }: Pick<BatchRecord, 'components' | 'before' | 'after'>,
  results: readonly UpdateResult[],
): UpdateResult {
  const outputs = results.map(({ output }) => output);
  const found: Components<UpdatedComponent> = Object.assign({}, ...outputs.map((output) => output.components));
  const components = someOf(found, Object.keys(trained));
  const isTaken = outputs.some(({ outcome }) => outcome === 'applied');
  const [first, ...others] = [...outputs].sort((a, b) => Number(tookPart(b)) - Number(tookPart(a)));
  const { reason } = at(outputs.filter(tookPart).concat(outputs), 0);
  return {
    output: {
      outcome: isTaken ? 'applied' : 'skipped',
      ...(isTaken || reason === undefined ? {} : { reason }),
      stateDigest: runStateOf(components),
      components,
      after: { ...after, badSteps: isTaken ? 0 : before.badSteps + 1 },
      metrics: Object.assign({}, ...others.map(({ metrics }) => metrics).reverse(), first?.metrics),
    },
    timings: longest(results.map(({ timings }) => timings)),
  };
}

/** Were steps planned for a component of this part? */
const tookPart = ({ components }: UpdateOutput): boolean =>
  Object.values(components).some(({ steps }) => steps.length > 0);

/** The parts are trained at the same time. */
function longest(all: readonly UpdateResult['timings'][]): Record<string, number> {
  const found: Record<string, number> = {};
  for (const [name, value] of all.flatMap((timings) => Object.entries(timings)))
    found[name] = Math.max(found[name] ?? 0, Number(value));
  return found;
}
