/** Machines that have joined this stack, and the tokens with which others may. */
import { fleetTokens, joinedMachines } from '../../infra/stack/fleet-register.ts';
import type { FleetToken, JoinedMachine } from '../../infra/stack/fleet-register.ts';
import { fleetStore } from '../../infra/stack/fleet-notes.ts';
import { readEndpoints } from '../../infra/stack/state.ts';
import type { ApiContext } from '../context.ts';
import type { LiveSource } from '../live-source.ts';
import { decodingOf, fleetReport } from './view.ts';
import type { FleetInstance, FleetReport } from './view.ts';

export interface FleetMachine extends Omit<JoinedMachine, 'key'> {
  readonly state: 'present' | 'gone' | 'revoked';
  /** Jobs that its workers have at present. */
  readonly jobs: number;
  /** Rate of its workers together, over their last rollout jobs; absent before the first. */
  readonly tokensPerSecond?: number;
}

export interface FleetList {
  /** Bought by petrel, those that have ended within the last hour too; absent without a fleet. */
  readonly instances?: readonly FleetInstance[];
  readonly asked?: FleetReport['asked'];
  readonly machines: readonly FleetMachine[];
  readonly tokens: readonly (Omit<FleetToken, 'key'> & { readonly revoked: boolean })[];
}

/** Lists the machines whose credential has not expired. */
export async function listFleet({ home }: Pick<ApiContext, 'home'>, live: LiveSource): Promise<FleetList> {
  const revoked = readEndpoints(home)?.nats?.authority.revoked ?? {};
  const workers = await live.workers();
  const report = fleetStore(home) === undefined ? undefined : await fleetReport({ home }, workers);
  const bought = new Set(report?.instances.flatMap(({ instance }) => instance ?? []));
  const joined = joinedMachines(home).filter(({ instance }) => !bought.has(instance));
  return {
    ...(report && { instances: report.instances.filter(isRecent), asked: report.asked }),
    machines: joined.map(({ key, ...machine }) => {
      const own = workers.filter(({ instance }) => instance === machine.instance);
      const state = revoked[key] !== undefined ? 'revoked' : own.length > 0 ? 'present' : 'gone';
      return { ...machine, state, jobs: own.reduce((sum, { jobs }) => sum + jobs.length, 0), ...decodingOf(own) };
    }),
    tokens: fleetTokens(home).map(({ key, ...token }) => ({ ...token, revoked: revoked[key] !== undefined })),
  };
}

const hourMs = 3_600_000;
const isRecent = ({ endedAt }: FleetInstance): boolean =>
  endedAt === undefined || Date.now() - Date.parse(endedAt) < hourMs;
