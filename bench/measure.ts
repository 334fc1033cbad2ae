/** Runs one measurement. Turns of petrel and of the peer alternate, so that a machine that slows down affects both. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { builtFile, packageRoot } from '../infra/home.ts';
import { median } from './clock.ts';
import { startLineProcess } from './line-process.ts';
import type { BenchSettings, Measurement, PeerWork, RowResult, Values } from './measurement.ts';
import type { Peer } from './options.ts';

/** Threads of both sides may spin for a while after their work. */
const pauseMs = 300;

export async function measure(
  measurement: Measurement,
  settings: BenchSettings,
  wanted: Peer | undefined,
): Promise<RowResult[]> {
  const isPeer = wanted !== undefined && wanted.name === (measurement.peerName ?? 'torch');
  const work = isPeer ? measurement.peer?.(settings) : undefined;
  const ours = await startLineProcess(process.execPath, [
    '--enable-source-maps',
    builtFile('bench/child.js'),
    measurement.name,
    JSON.stringify(settings),
  ]);
  const peer =
    work === undefined || wanted === undefined
      ? undefined
      : await startPeer(wanted, { ...settings, ...work }).catch((error: unknown) =>
          ours.close().then(() => Promise.reject(error)),
        );
  const turns = settings.quick ? 1 : measurement.turns;
  const values: Values[] = [];
  const peerTurns: Values[] = [];
  try {
    for (let turn = 0; turn < turns; turn++) {
      values.push((await ours.ask()) as Values);
      if (peer === undefined) continue;
      await delay(pauseMs);
      peerTurns.push(peerValues(measurement, work?.values, await peer.ask()));
      await delay(pauseMs);
    }
  } finally {
    await Promise.all([ours.close(), peer?.close()]);
  }
  return resultRows(measurement, values, peer && { name: String(peer.greeting['about']), turns: peerTurns });
}

/** The answer `{"value"}`, or `{"values"}` by names that `places` gives to rows. */
function peerValues(
  { rows }: Measurement,
  places: PeerWork['values'],
  answer: Readonly<Record<string, unknown>>,
): Values {
  const values = answer['values'] as Values | undefined;
  const valueOf = (row: string) => (places === undefined ? answer['value'] : values?.[places[row] ?? '']);
  return Object.fromEntries(rows.map(({ name }) => [name, Number(valueOf(name))]));
}

function startPeer({ name, python }: Peer, work: object) {
  return startLineProcess(python, [join(packageRoot(), `bench/peer/${name}_peer.py`), JSON.stringify(work)], {
    ...process.env,
    HF_HUB_OFFLINE: '1',
  });
}

function resultRows(
  measurement: Measurement,
  values: readonly Values[],
  peer: { readonly name: string; readonly turns: readonly Values[] } | undefined,
): RowResult[] {
  const medianOf = (turns: readonly Values[], name: string) => median(turns.map((turn) => turn[name] ?? Number.NaN));
  return measurement.rows.map(({ name, unit }) => {
    const value = medianOf(values, name);
    const beside = measurement.compare?.[name];
    const ofPeer = peer && { name: peer.name, value: medianOf(peer.turns, name) };
    const other = beside === undefined ? ofPeer : { name: beside, value: medianOf(values, beside) };
    const compared = other && {
      peer: other.name,
      peerValue: rounded(other.value),
      ratio: rounded(value / other.value),
    };
    return { name, value: rounded(value), unit, ...compared };
  });
}

/** Four digits are as precise as a measurement; bytes stay whole. */
export function rounded(value: number): number {
  return Math.abs(value) >= 1000 ? Math.round(value) : Number(value.toPrecision(4));
}
