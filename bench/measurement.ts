/** The type of a measurement. To add one, write a file under measurements/ and a line in registry.ts. */
import type { ComputeType } from '../core/parameters.ts';

/** Figures by row name. */
export type Values = Readonly<Record<string, number>>;

export interface RowInfo {
  /** `group.size.what`, as `--only` names it. */
  readonly name: string;
  readonly unit: 'tokens/s' | 'GFLOP/s' | 'bytes/s' | 'MiB/s' | 'records/s' | 'requests' | 'bytes' | 'ms' | 's';
  /** What the machine allows this row at most. Absent where nothing simple bounds it. */
  readonly limits?: (settings: BenchSettings) => readonly Limit[];
}

/** A row of the machine's own peak, and how much of it one unit of the bounded row needs. */
export interface Limit {
  readonly peak: string;
  readonly need: number;
}

export interface BenchSettings {
  readonly precision: ComputeType;
  readonly threads: number;
  /** Tiny shapes and few repetitions: tests that everything works, and says nothing about speed. */
  readonly quick: boolean;
}

/** A measurement that is set up and warm, in a separate process. */
export interface Session {
  /** A text about the measured setting, for the reader. */
  readonly about: string;
  /** Measures once. */
  turn(): Promise<Values>;
  close(): Promise<void>;
}

/** `vllm` and `fsdp`: what petrel's engines are made of, without petrel. */
export const peerNames = ['torch', 'trl', 'vllm', 'fsdp'] as const;
export type PeerName = (typeof peerNames)[number];

/**
 * What the peer does for the same row, as one object in the form that its program in peer/ reads. It contains the
 * shapes, so both sides use the same ones.
 */
export interface PeerWork {
  readonly [setting: string]: unknown;
  /** Maps a row to the answer's value that belongs to it. Absent: all rows have the answer's one value. */
  readonly values?: Readonly<Record<string, string>>;
}

export interface Measurement {
  readonly name: string;
  readonly rows: readonly RowInfo[];
  /** Number of measured turns; the figure is their median. */
  readonly turns: number;
  open(settings: BenchSettings): Promise<Session>;
  /** Absent: torch. */
  readonly peerName?: PeerName;
  /** Absent when the peer has nothing to compare with. */
  peer?(settings: BenchSettings): PeerWork;
  /** Pairs of rows that were timed together: the first is compared with the second, with or without a peer. */
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
  /** The peak row that bounds this row most, the value that it allows, and value / bound. */
  readonly limit?: string;
  readonly bound?: number;
  readonly share?: number;
}
