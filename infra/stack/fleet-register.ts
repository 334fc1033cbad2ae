/**
 * The tokens that this stack has made and the machines that have joined it, in files of the stack. Commands write the
 * tokens, the control process the machines. Entries that can no longer be used are left out.
 */
import { join } from 'node:path';
import { z } from 'zod';
import { roles } from '../../core/roles.ts';
import { poolName } from '../../core/wire/join.ts';
import { readHomeJson, writeHomeJson } from '../home-json.ts';
import { stackFolder } from './state.ts';

const entry = {
  pool: poolName,
  roles: z.array(z.enum(roles)),
  /** Public key of its credential. */
  key: z.string(),
  /** ISO time: when its credential expires. */
  until: z.string(),
};
const token = z.object({ ...entry, id: z.string() });
const machine = z.object({ ...entry, instance: z.string(), host: z.string(), joinedAt: z.string() });
export type FleetToken = Readonly<z.infer<typeof token>>;
export type JoinedMachine = Readonly<z.infer<typeof machine>>;

const tokensFile = (home: string): string => join(stackFolder(home), 'tokens.json');
const machinesFile = (home: string): string => join(stackFolder(home), 'joined-machines.json');

export const fleetTokens = (home: string, now = Date.now()): FleetToken[] => read(tokensFile(home), token, now);
export const joinedMachines = (home: string, now = Date.now()): JoinedMachine[] =>
  read(machinesFile(home), machine, now);

export function noteToken(home: string, made: FleetToken): void {
  writeHomeJson(tokensFile(home), [...fleetTokens(home), made]);
}

/** A machine joins again every time that its credential is renewed. */
export function noteJoined(home: string, joined: Omit<JoinedMachine, 'joinedAt'>, now = new Date()): void {
  const machines = joinedMachines(home);
  const before = machines.find(({ instance }) => instance === joined.instance);
  const others = machines.filter((one) => one !== before);
  writeHomeJson(machinesFile(home), [...others, { ...joined, joinedAt: before?.joinedAt ?? now.toISOString() }]);
}

function read<T extends { readonly until: string }>(path: string, shape: z.ZodType<T>, now: number): T[] {
  const all = z.array(shape).safeParse(readHomeJson(path)).data ?? [];
  return all.filter(({ until }) => Date.parse(until) > now);
}
