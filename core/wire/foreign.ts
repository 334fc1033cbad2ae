/**
 * Every user of the machine can send messages to the local Temporal server. petrel's payloads are encrypted, and a
 * payload that was not encrypted with this stack's key cannot be decoded. The codec must not throw for it, because the
 * workflow's task would then fail repeatedly. So the codec returns this mark, and the reader of the value refuses it.
 */
export const foreignPayload = { petrel: 'foreign payload' } as const;

/** True for the mark of a payload that was not encrypted with this stack's key. */
export function isForeign(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'petrel' in value && value.petrel === foreignPayload.petrel;
}
