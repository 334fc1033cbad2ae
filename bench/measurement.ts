/** What a measurement is. Adding one: a file under measurements/ and a line in registry.ts. */
import type { ComputeType } from '../core/ports.ts';

/** Figures by row name. */
export type Values = Readonly<Record<string, number>>;

export interface RowInfo {
  /** `group.size.what`, as `--only` names it. */
  readonly name: string;
  readonly unit: 'tokens/s' | 'MiB/s' | 'records/s' | 'requests' | 'bytes' | 'ms' | 's';
}

export interface BenchSettings {
  readonly precision: ComputeType;
  readonly threads: number;
  /** Tiny shapes and few repetitions: shows that everything works, says nothing about speed. */
  readonly quick: boolean;
}

/** A measurement that is set up and warm, in a process of its own. */
export interface Session {
  /** What it was measured on, for the reader. */
  readonly about: string;
  /** Measures once. */
  turn(): Promise<Values>;
  close(): Promise<void>;
}

/** What the peer does for the same row: one object as torch_peer.py takes it. Shapes come from here, so both sides have the same. */
export type PeerWork = Readonly<Record<string, unknown>>;

export interface Measurement {
  readonly name: string;
  readonly rows: readonly RowInfo[];
  /** Turns measured; the figure is their median. */
  readonly turns: number;
  open(settings: BenchSettings): Promise<Session>;
  /** Absent: there is nothing to compare with in torch. */
  peer?(settings: BenchSettings): PeerWork;
  /** Pairs of rows that were timed together: the first is compared with the second, peer or not. */
  readonly compare?: Readonly<Record<string, string>>;
}

/** A finished row, as printed. */
export interface RowResult {
  readonly name: string;
  readonly value: number;
  readonly unit: RowInfo['unit'];
  readonly peer?: string;
  readonly peerValue?: number;
  /** value / peerValue. */
  readonly ratio?: number;
}
