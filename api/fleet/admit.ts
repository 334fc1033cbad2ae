/** What a recipe asks of the stack's fleet and of machines that join, checked when a run starts. */
import { InvalidInputError } from '../../core/errors.ts';
import { meets, needsText } from '../../core/machine-needs.ts';
import type { Gpu, MachineNeeds } from '../../core/machine-needs.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { roles } from '../../core/roles.ts';
import type { Role } from '../../core/roles.ts';
import { samplesResponses } from '../../core/run-kinds.ts';
import { machineOf } from '../../core/wire/join.ts';
import { gpusHere } from '../../infra/engines/gpu-facts.ts';
import { openLiveSource } from '../live-source.ts';
import { fleetTokens } from '../../infra/stack/fleet-register.ts';
import { fleetStore, lastPlan } from '../../infra/stack/fleet-notes.ts';
import { fleetReport } from './view.ts';

/** Returns notes for the user. Throws InvalidInputError that names the key and what would fit. */
export async function admitToFleet(recipe: Recipe, home: string, now = new Date()): Promise<string[]> {
  await requireRoles(recipe, home);
  const { budget_usd: budget, deadline } = recipe.fleet;
  if (deadline !== null && Date.parse(deadline) <= now.getTime())
    throw new InvalidInputError(`expected a time that is still to come, got ${deadline}; it is ${now.toISOString()}`, {
      where: 'fleet.deadline',
      hint: 'set a later one, or null',
    });
  if (fleetStore(home) !== undefined) {
    if (budget !== null) requireBudget(budget, home);
    return [];
  }
  return Object.entries({ budget_usd: budget, deadline })
    .filter(([, value]) => value !== null)
    .map(([key]) => `fleet.${key} has no effect: this stack has no fleet (petrel fleet apply)`);
}

/** A pool whose workers may do jobs of these roles. `gpus`: of its machines; absent: not known yet. */
interface Candidate {
  readonly pool: string;
  readonly roles: readonly Role[];
  readonly gpus?: readonly Gpu[];
  readonly roundTripMs?: number | undefined;
}

/** Local pools, the stack's fleet, workers that are there, and tokens with which others may join. */
async function requireRoles({ kind, reward, fleet: { pools, needs } }: Recipe, home: string): Promise<void> {
  const needed: readonly Role[] = samplesResponses(kind) ? roles : ['trainer'];
  const needsSandbox = reward.custom_reward_function.path !== null && !reward.sandbox;
  const served = new Set<Role>();
  const missing = () => needed.filter((role) => !served.has(role));
  const serve = (candidate: Candidate, but?: Role) => {
    for (const role of candidate.roles) if (role !== but && mayMeet(needs[role], candidate)) served.add(role);
  };
  const asksForGpus = Object.values(needs).some((one) => one?.gpu !== undefined);
  const gpus = asksForGpus ? await gpusHere() : [];
  for (const [pool, { roles: some }] of Object.entries(pools)) serve({ pool, roles: some, gpus });
  if (missing().length === 0) return;
  const fleet = fleetStore(home) === undefined ? undefined : await fleetReport({ home }, []);
  const spec = fleet?.wanted.spec.pools ?? {};
  const ofFleet = Object.entries(spec).map(([pool, { roles: some }]) => ({ pool, roles: some }));
  let anyClosed = false;
  for (const candidate of [...fleetTokens(home), ...ofFleet, ...(await presentWorkers(home))]) {
    const of = spec[candidate.pool];
    const isClosed = of?.provider === 'ec2' && of.own_scorers === 'sandboxed' && needsSandbox;
    anyClosed ||= isClosed && candidate.roles.includes('reward');
    serve(candidate, isClosed ? 'reward' : undefined);
  }
  if (missing().length === 0) return;
  if (anyClosed && missing().join() === 'reward')
    throw new InvalidInputError(
      'the only pools with the role reward are bought, and a scorer of your own needs a sandbox on bought machines',
      { where: 'reward.sandbox', hint: 'reward.sandbox=true, or own_scorers: open in the pool of fleet.yaml' },
    );
  throw new InvalidInputError(
    `no machine ${missing()
      .map((role) => `with the role ${role}${needsText(needs[role])}`)
      .join(', and none ')}: neither in a pool of the recipe, nor in the stack's fleet, nor one that may join`,
    {
      where: missing().some((role) => needs[role] !== undefined) ? 'fleet.needs' : 'fleet.pools',
      hint: `petrel fleet token --pool ${poolOf(needs, missing())} --roles ${missing().join()}, or another pool with that role`,
    },
  );
}

const poolOf = (needs: Recipe['fleet']['needs'], missing: readonly Role[]): string =>
  missing.flatMap((role) => needs[role]?.pools ?? [])[0] ?? 'NAME';

/** Nobody knows the GPUs of machines that are not there yet. */
const mayMeet = (needs: MachineNeeds = {}, { gpus, ...machine }: Candidate): boolean =>
  gpus === undefined
    ? meets({ ...(needs.pools && { pools: needs.pools }) }, { ...machine, gpus: [] })
    : meets(needs, { ...machine, gpus });

async function presentWorkers(home: string): Promise<Candidate[]> {
  const live = await openLiveSource(home);
  try {
    return (await live.workers()).map((worker) => ({ ...machineOf(worker), roles: worker.roles }));
  } finally {
    await live.close();
  }
}

/** Iterations that a budget keeps back, each on one instance for the shortest time that is billed. */
const leastHours = 2 / 60;

function requireBudget(budget: number, home: string): void {
  const prices = (lastPlan(home)?.prices ?? []).map(({ usdPerHour }) => usdPerHour);
  const least = Math.min(...prices) * leastHours;
  if (prices.length === 0 || budget >= least) return;
  throw new InvalidInputError(
    `expected at least $${least.toFixed(4)}, what two iterations on one instance cost, got $${budget}`,
    { where: 'fleet.budget_usd', hint: `fleet.budget_usd=${(10 * least).toFixed(3)} or more` },
  );
}
