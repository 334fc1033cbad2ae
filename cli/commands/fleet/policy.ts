/** `petrel fleet policy`. */
import { controllerMachinePolicy, workerStorePolicy } from '../../../api/index.ts';
import type { PolicyDocument } from '../../../api/index.ts';
import { InvalidInputError } from '../../../core/errors.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { flag, textOption } from '../../options.ts';

const ofController = ['role', 'stack', 'region'];
const ofWorkers = ['principal', 'roles'];

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const policy = policyOf(input, context);
  context.printer.data(policy, () => JSON.stringify(policy, null, 2));
  return undefined;
}

function policyOf(input: CommandInput, context: CommandContext): PolicyDocument {
  const isController = flag(input, 'controller');
  const other = (isController ? ofWorkers : ofController).find((name) => textOption(input, name) !== undefined);
  if (other !== undefined)
    throw new InvalidInputError(`--${other} belongs to the policy ${isController ? 'of workers' : 'of --controller'}`, {
      hint: isController ? 'leave --controller out, or this option' : `petrel fleet policy --controller --${other} …`,
    });
  const store = textOption(input, 'store');
  if (!isController)
    return workerStorePolicy(context, {
      ...{ store, principal: textOption(input, 'principal') },
      roles: textOption(input, 'roles')?.split(','),
    });
  const [role, stack, region] = ofController.map((name) => textOption(input, name));
  return controllerMachinePolicy(context, { store, role, stack, region });
}
