/**
 * The line protocol between petrel and a scorer process, over stdin and stdout (docs/do/scorers.md): one JSON value per
 * line. A reply of the scorer starts with the mark from its environment; every other line was printed by the scorer's
 * own code.
 */
import type { CallLimits, Scored, ScorerInput, ScorerSettings } from '../types.ts';

/** Environment variable with the mark. */
export const MARK_VARIABLE = 'PETREL_SCORER_MARK';

/** Messages to the scorer process. `load` is the first, and is sent once. */
export type Request =
  | {
      readonly type: 'load';
      readonly builtin: string | null;
      readonly settings: ScorerSettings;
      readonly limits: CallLimits;
    }
  | {
      readonly type: 'load';
      readonly module: string;
      readonly name: string;
      readonly settings: ScorerSettings;
      readonly memoryMb: number;
    }
  | ({ readonly id: number } & ScoreCall);

/** One call of the scorer: for one sample, or for a list of them. */
export type ScoreCall =
  | { readonly type: 'score'; readonly input: ScorerInput }
  | { readonly type: 'scoreAll'; readonly inputs: readonly ScorerInput[] };

/**
 * A reply of the scorer process: `ready` or `unloadable` once, then for each call, in order, `failed` or a `result`;
 * for a list `results`, one per sample.
 */
export type Reply =
  | { readonly type: 'ready' }
  | { readonly type: 'unloadable'; readonly reason: string }
  | ({ readonly type: 'result'; readonly id: number } & Scored)
  | { readonly type: 'results'; readonly id: number; readonly results: readonly Scored[] }
  | {
      readonly type: 'failed';
      readonly id: number;
      readonly code: 'threw' | 'bad-result' | 'memory';
      readonly reason: string;
    };

/** A reply; undefined for other lines. */
export function parseReply(line: string, mark: string): Reply | undefined {
  if (!line.startsWith(mark)) return undefined;
  try {
    const value: unknown = JSON.parse(line.slice(mark.length));
    return isReply(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isReply(value: unknown): value is Reply {
  if (typeof value !== 'object' || value === null || !('type' in value)) return false;
  const reply = value as Record<string, unknown>;
  switch (reply['type']) {
    case 'ready':
      return true;
    case 'unloadable':
      return typeof reply['reason'] === 'string';
    case 'result':
      return typeof reply['id'] === 'number' && isScored(reply);
    case 'results':
      return typeof reply['id'] === 'number' && Array.isArray(reply['results']) && reply['results'].every(isScored);
    case 'failed':
      return (
        typeof reply['id'] === 'number' && typeof reply['code'] === 'string' && typeof reply['reason'] === 'string'
      );
    default:
      return false;
  }
}

function isScored(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { score, columns } = value as Record<string, unknown>;
  return Number.isFinite(score) && typeof columns === 'object' && columns !== null;
}
