/**
 * Anybody on the machine can send messages to the local Temporal server. Its payloads are encrypted, and what was not
 * encrypted with this stack's key cannot be decoded. The codec must not throw for such a payload, since the workflow's
 * task would then fail again and again: it puts this mark in its place, and whoever reads the value refuses the mark.
 */
export const foreignPayload = { petrel: 'foreign payload' } as const;

/** True for the mark of a payload that was not encrypted with this stack's key. */
export function isForeign(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'petrel' in value && value.petrel === foreignPayload.petrel;
}
