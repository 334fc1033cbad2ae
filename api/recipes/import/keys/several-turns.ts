/**
 * Trainings in several turns. verl turns them on with `multi_turn.enable`, but also with another agent loop, an
 * environment or a scheduler of chats. A recipe without the key would train on the first answer alone.
 */
import type { ValueOf } from './conversions.ts';
import type { ImportedKey } from './outcome.ts';

const KEY = 'rollout.multi_turn.enable';

/** A value of one of these asks for several turns. */
const TURNED_ON_BY: readonly RegExp[] = [
  /^rollout\.agent\.(?:agent_loop_config_path|custom_async_server\.path)$/,
  /^rollout\.chat_scheduler$/,
  /^rollout\.multi_turn\.(?:tool_config_path|interaction_config_path|function_tool_path|completion_callback)$/,
  /^data\.(?:tool_config_path|function_tool_path)$/,
  /^env\.(?:env_name|train\..*)$/,
];

/** Writes `rollout.multi_turn.enable: true`, which `petrel plan` refuses until several turns are built. */
export function withSeveralTurns(keys: readonly ImportedKey[], valueOf: ValueOf): readonly ImportedKey[] {
  if (keys.some((key) => key.petrel === KEY && 'written' in key)) return keys;
  const cause = keys.find((key) => asksForTurns(key, valueOf(KEY) === false));
  if (cause === undefined) return keys;
  const note = 'it asks for several turns, so the recipe has rollout.multi_turn.enable, which no run can use yet';
  const turned: ImportedKey = { ...withoutReason(cause), outcome: 'differs', petrel: KEY, written: true, note };
  return keys.map((key) => (key === cause ? turned : key));
}

/** With `multi_turn.enable: false`, verl reads no tools; another agent loop runs all the same. */
function asksForTurns({ verl, value }: ImportedKey, isTurnedOff: boolean): boolean {
  const path = verl.replace(/^actor_rollout_ref\./, '');
  if (path === 'rollout.agent.default_agent_loop') return typeof value === 'string' && value !== 'single_turn_agent';
  const isGiven = value !== undefined && value !== null && value !== false && value !== '';
  return isGiven && !isTurnedOff && TURNED_ON_BY.some((pattern) => pattern.test(path));
}

function withoutReason({ reason: _, ...key }: ImportedKey): ImportedKey {
  return key;
}
