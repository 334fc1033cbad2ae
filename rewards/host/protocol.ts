/**
 * The line protocol between petrel and a scorer process, over stdin and stdout (docs/scorers.md): one JSON value per
 * line. A reply of the scorer starts with the mark from its environment; every other line was printed by the scorer's
 * own code.
 */
import type { CallLimits, ScoreColumns, ScorerInput, ScorerSettings } from '../types.ts';

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
  | { readonly type: 'score'; readonly id: number; readonly input: ScorerInput };

/** From the scorer process: `ready` or `unloadable` once, then a `result` or `failed` for each `score`, in order. */
export type Reply =
  | { readonly type: 'ready' }
  | { readonly type: 'unloadable'; readonly reason: string }
  | { readonly type: 'result'; readonly id: number; readonly score: number; readonly columns: ScoreColumns }
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
      return typeof reply['id'] === 'number' && Number.isFinite(reply['score']) && typeof reply['columns'] === 'object';
    case 'failed':
      return (
        typeof reply['id'] === 'number' && typeof reply['code'] === 'string' && typeof reply['reason'] === 'string'
      );
    default:
      return false;
  }
}
