/** Settings of the scorer `code` (`reward.reward_kwargs`), and the limits that follow from them. */
import { InvalidInputError } from '../../core/errors.ts';
import type { CallLimits, ScorerSettings } from '../types.ts';

export interface CodeSettings {
  /** 5 s: one test while all are run together. */
  readonly timeout: number;
  /** 10 s: one test that is run alone. */
  readonly timeoutEach: number;
  /** Three quarters of reward.memory_limit_mb, which is for the scorer and its programs together. */
  readonly memoryMb: number;
  /** 64 processes and threads at a time. */
  readonly tasks: number;
  /** 4096 KiB: what one test may print. */
  readonly outputBytes: number;
  /** 64 MiB in /tmp, in /dev/shm, and in one file. */
  readonly diskMb: number;
  /**
   * Functions are called again in the second stage. In verl the second stage takes every program as one that reads
   * stdin.
   */
  readonly partialCalls: boolean;
  /** A Sandbox Fusion service that runs the programs instead. */
  readonly fusion: FusionSettings | undefined;
}

export interface FusionSettings {
  readonly url: string;
  /** Requests at a time of one scorer process. */
  readonly maxConcurrent: number;
  readonly memoryMb: number;
}

/** The usual limits: the defaults of reward.timeout and reward.memory_limit_mb. */
export const usualLimits: CallLimits = { timeoutMs: 10_000, memoryMb: 1024 };

/** Throws InvalidInputError for a value of the wrong type, and for more memory than the scorer's process may have. */
export function codeSettings(settings: ScorerSettings, limits: CallLimits): CodeSettings {
  const memoryMb = number(settings, 'memory_limit_mb', Math.floor(limits.memoryMb * 0.75));
  if (memoryMb >= limits.memoryMb) {
    throw new InvalidInputError(
      `reward_kwargs.memory_limit_mb is ${memoryMb}, but reward.memory_limit_mb, which is for the scorer and its programs together, is ${limits.memoryMb}`,
      { hint: `reward.memory_limit_mb=${Math.ceil((memoryMb * 4) / 3)}` },
    );
  }
  return {
    timeout: number(settings, 'timeout', 5),
    timeoutEach: number(settings, 'timeout_each', 10),
    memoryMb,
    tasks: number(settings, 'max_processes', 64),
    outputBytes: number(settings, 'max_output_kb', 4096) * 1024,
    diskMb: number(settings, 'max_disk_mb', 64),
    partialCalls: settings['partial_calls'] === true,
    fusion: fusionSettings(settings['sandbox_fusion']),
  };
}

function number(settings: ScorerSettings, name: string, usual: number): number {
  const value = settings[name] ?? usual;
  if (typeof value === 'number' && value > 0 && Number.isFinite(value)) return value;
  throw new InvalidInputError(`reward_kwargs.${name} must be a number above 0, got ${JSON.stringify(value)}`);
}

/** petrel itself fills this in from reward.sandbox_fusion. */
function fusionSettings(value: unknown): FusionSettings | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { url, max_concurrent: maxConcurrent, memory_limit_mb: memoryMb } = value as Record<string, unknown>;
  if (typeof url !== 'string') return undefined;
  return { url, maxConcurrent: Number(maxConcurrent ?? 64), memoryMb: Number(memoryMb ?? 1024) };
}
