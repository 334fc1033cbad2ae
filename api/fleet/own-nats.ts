/** Machines join a stack with a credential that the stack signs, so its NATS server must be its own. */
import { InvalidInputError } from '../../core/errors.ts';
import type { StackInfo } from '../../infra/stack/index.ts';

/** Throws InvalidInputError for a stack with the NATS servers of stack.yaml. */
export function requireOwnNats(stack: StackInfo | undefined): void {
  if (stack?.nats.ofOthers !== true) return;
  throw new InvalidInputError(
    `machines can join only a stack with its own NATS server, and stack.yaml names another one (${stack.nats.url})`,
    {
      where: 'stack.yaml: nats',
      hint: 'start petrel up with more workers on the control machines: petrel up --workers 4',
    },
  );
}
