/** Turns every activity's errors into Temporal failures, in one place. */
import { errorToFailure } from '../../infra/temporal/failures.ts';

/** The same functions; they throw Temporal failures. */
export function mapActivityErrors<T extends Readonly<Record<string, (input: never) => Promise<unknown>>>>(
  activities: T,
): T {
  const wrapped = Object.entries(activities).map(([name, activity]) => [
    name,
    async (input: never) => {
      try {
        return await activity(input);
      } catch (error) {
        throw errorToFailure(error);
      }
    },
  ]);
  return Object.fromEntries(wrapped) as T;
}
