/** Runs one measurement. Turns of petrel and of the peer alternate, so that a machine that slows down affects both. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { builtFile, packageRoot } from '../infra/home.ts';
import { median } from './clock.ts';
import { startLineProcess } from './line-process.ts';
import type { BenchSettings, Measurement, RowResult, Values } from './measurement.ts';

/** Threads of both sides may spin for a while after their work. */
const pauseMs = 300;

/** `python`: the interpreter that runs the peer, if the peer is measured. */
export async function measure(
  measurement: Measurement,
  settings: BenchSettings,
  python: string | undefined,
): Promise<RowResult[]> {
  const work = python === undefined ? undefined : measurement.peer?.(settings);
  const ours = await startLineProcess(process.execPath, [
    '--enable-source-maps',
    builtFile('bench/child.js'),
    measurement.name,
    JSON.stringify(settings),
  ]);
  const peer =
    work === undefined || python === undefined
      ? undefined
      : await startPeer(python, { ...settings, ...work }).catch((error: unknown) =>
          ours.close().then(() => Promise.reject(error)),
        );
  const turns = settings.quick ? 1 : measurement.turns;
  const values: Values[] = [];
  const peerValues: number[] = [];
  try {
    for (let turn = 0; turn < turns; turn++) {
      values.push((await ours.ask()) as Values);
      if (peer === undefined) continue;
      await delay(pauseMs);
      peerValues.push(Number((await peer.ask())['value']));
      await delay(pauseMs);
    }
  } finally {
    await Promise.all([ours.close(), peer?.close()]);
  }
  return resultRows(measurement, values, peer && { name: String(peer.greeting['about']), value: median(peerValues) });
}

function startPeer(python: string, work: object) {
  return startLineProcess(python, [join(packageRoot(), 'bench/peer/torch_peer.py'), JSON.stringify(work)], {
    ...process.env,
    HF_HUB_OFFLINE: '1',
  });
}

function resultRows(
  measurement: Measurement,
  values: readonly Values[],
  peer: { readonly name: string; readonly value: number } | undefined,
): RowResult[] {
  const valueOf = (name: string) => median(values.map((turn) => turn[name] ?? Number.NaN));
  return measurement.rows.map(({ name, unit }) => {
    const value = valueOf(name);
    const beside = measurement.compare?.[name];
    const other = beside === undefined ? peer : { name: beside, value: valueOf(beside) };
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
