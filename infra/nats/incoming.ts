/** What comes over NATS is anybody's: a process of another version, or a person with a shell. */
import type { z } from 'zod';

/** undefined for what is not JSON, or not of the schema: whoever listens goes on listening. */
export function readMessage<S extends z.ZodType>(message: { string(): string }, schema: S): z.infer<S> | undefined {
  try {
    return schema.safeParse(JSON.parse(message.string())).data;
  } catch {
    return undefined;
  }
}
