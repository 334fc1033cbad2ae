/** What a recipe says about the fleet, checked when a run starts. */
import { InvalidInputError } from '../../core/errors.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { fleetStore, lastPlan } from '../../infra/stack/fleet-notes.ts';

/** Iterations that a budget keeps back, each on one instance, and the shortest time that an instance is billed. */
const leastHours = 2 / 60;

/** Returns notes for the user. Throws InvalidInputError that names the key, and what would fit. */
export function admitToFleet({ fleet }: Recipe, home: string, now = new Date()): string[] {
  const { budget_usd: budget, deadline } = fleet;
  if (deadline !== null && Date.parse(deadline) <= now.getTime())
    throw new InvalidInputError(`expected a time that is still to come, got ${deadline}; it is ${now.toISOString()}`, {
      where: 'fleet.deadline',
      hint: 'set a later one, or null',
    });
  if (fleetStore(home) === undefined)
    return Object.entries({ budget_usd: budget, deadline })
      .filter(([, value]) => value !== null)
      .map(([key]) => `fleet.${key} has no effect: this stack has no fleet (petrel fleet apply)`);
  const prices = (lastPlan(home)?.prices ?? []).map(({ usdPerHour }) => usdPerHour);
  const least = Math.min(...prices) * leastHours;
  if (budget === null || prices.length === 0 || budget >= least) return [];
  throw new InvalidInputError(
    `expected at least $${least.toFixed(4)}, what two iterations on one instance cost, got $${budget}`,
    {
      where: 'fleet.budget_usd',
      hint: `fleet.budget_usd=${(10 * least).toFixed(3)} or more`,
    },
  );
}
