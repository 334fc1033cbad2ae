/** Messages from NATS are untrusted: a process of another version or a person with a shell may have sent them. */
import type { z } from 'zod';

/**
 * undefined for a message that is not JSON or does not match the schema. The subscriber ignores it and keeps listening.
 */
export function readMessage<S extends z.ZodType>(message: { string(): string }, schema: S): z.infer<S> | undefined {
  try {
    return schema.safeParse(JSON.parse(message.string())).data;
  } catch {
    return undefined;
  }
}

export function sayDropped(subject: string): void {
  console.error(`${subject}: dropped a message that does not match this version's schema`);
}
