/** What `plan --machine` says of a machine: what each device holds, how models are to be divided, and seconds. */
import { counted, showBytes, showDuration } from '../../core/quantities.ts';
import type { PlanReport } from '../../api/index.ts';
import { partsText } from './parts-text.ts';

type Field = readonly [name: string, value: string | undefined];
type Machine = NonNullable<PlanReport['machine']>;

export function machineTitle({ machine }: PlanReport): string {
  if (machine === undefined) return '';
  const { card, cards } = machine.machine;
  return `Memory on ${cards} x ${card.name} of ${showBytes(card.bytes)}, estimated`;
}

export function machineFields({ machine }: PlanReport): Field[] {
  return machine === undefined ? [] : [...machine.devices.map(deviceField), ...shardingFields(machine)];
}

function deviceField({ device, count, processes, bytes, room, fits }: Machine['devices'][number]): Field {
  const verdict =
    room === null
      ? ' (what the machine has of its own is not stated)'
      : ` of ${showBytes(room)}: ${fits ? 'it fits' : `it does not fit, ${showBytes(bytes - room)} are missing`}`;
  const each = processes.map(({ pool, role, workers, parts, bytes: own }) => {
    const many = workers === 1 ? '' : `${workers} x `;
    return `${pool} (${role}) ${many}${showBytes(own)}: ${partsText(parts)}`;
  });
  return [nameOf(device, count), [`${showBytes(bytes)}${verdict}`, ...each].join('\n')];
}

/** `card 0`, `cards 1 to 7`. */
function nameOf(device: string, count: number): string {
  if (count === 1) return device;
  const first = Number(device.replace(/^card /, ''));
  return `cards ${first} to ${first + count - 1}`;
}

function shardingFields({ sharding, machine: { card } }: Machine): Field[] {
  if (sharding === undefined) return [];
  const { fsdpSize, cardsOfState, undividedBytes, cardsOfSampler } = sharding;
  const divided =
    fsdpSize === null
      ? `none is enough: ${showBytes(undividedBytes)} of a card are not divided`
      : `${fsdpSize} or more for cards of ${showBytes(card.bytes)}`;
  return [
    ['trainer.fsdp_size', divided],
    ['state alone', `weights, gradients and moments fill ${counted(cardsOfState, 'card')}`],
    ['sampler', cardsOfSampler === undefined ? undefined : `its weights fill ${counted(cardsOfSampler, 'card')}`],
  ];
}

export function secondsFields({ machine }: PlanReport): Field[] {
  const stages = machine?.seconds ?? [];
  const all = stages.reduce((sum, { fewest, most }) => ({ fewest: sum.fewest + fewest, most: sum.most + most }), {
    fewest: 0,
    most: 0,
  });
  const rows = stages.length > 1 ? [...stages, { stage: 'iteration', ...all }] : stages;
  return rows.map(({ stage, fewest, most }) => {
    const [least, longest] = [showDuration(fewest), showDuration(most)];
    return [stage, least === longest ? least : `${least} to ${longest}`];
  });
}
