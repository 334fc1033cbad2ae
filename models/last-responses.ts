/**
 * The last response to each of some rows, with its log-probs when it was sampled: core/records/FORMAT.md, "Last
 * responses".
 */
import { at } from '../core/at.ts';
import { offsetsOf } from '../core/offsets.ts';
import type { BatchOrigin } from './batch-tensors.ts';
import { decodeSafetensors, encodeSafetensors } from './safetensors.ts';
import { checkLengths, checkOffsets } from './shape-check.ts';
import { f32, f32Of, i32, i32Of, u8, u8Of } from './trajectories.ts';

export interface LastResponse {
  readonly row: number;
  readonly prompt: Int32Array;
  readonly response: Int32Array;
  /** 1: the policy made this token of the response. */
  readonly mask: Uint8Array;
  /** Log-probs under the policy that sampled it. */
  readonly logProbs: Float32Array;
}

export function encodeLastResponses(all: readonly LastResponse[], { iteration, parentState }: BatchOrigin): Uint8Array {
  const tensors = {
    rows: i32(Int32Array.from(all, ({ row }) => row)),
    prompt_tokens: i32(joined(all, ({ prompt }) => prompt)),
    prompt_offsets: i32(offsetsOf(all.map(({ prompt }) => prompt.length))),
    response_tokens: i32(joined(all, ({ response }) => response)),
    response_offsets: i32(offsetsOf(all.map(({ response }) => response.length))),
    mask: u8(Uint8Array.from(all.flatMap(({ mask }) => [...mask]))),
    log_probs: f32(Float32Array.from(all.flatMap(({ logProbs }) => [...logProbs]))),
  };
  return encodeSafetensors(tensors, { iteration: String(iteration), parent_state: parentState });
}

/** Throws PauseError `DamagedRecord`. */
export function decodeLastResponses(bytes: Uint8Array, where: string): LastResponse[] {
  const file = decodeSafetensors(bytes, where);
  const ints = (name: string) => i32Of(file, name, where);
  const [rows, prompts, responses] = [ints('rows'), ints('prompt_tokens'), ints('response_tokens')];
  const [promptOffsets, responseOffsets] = [ints('prompt_offsets'), ints('response_offsets')];
  const [mask, logProbs] = [u8Of(file, 'mask', where), f32Of(file, 'log_probs', where)];
  checkOffsets(where, 'prompt_offsets', promptOffsets, rows.length, prompts.length);
  checkOffsets(where, 'response_offsets', responseOffsets, rows.length, responses.length);
  checkLengths(where, responses.length, { mask, log_probs: logProbs });
  return Array.from(rows, (row, s) => {
    const [start, end] = [at(responseOffsets, s), at(responseOffsets, s + 1)];
    return {
      row,
      prompt: prompts.subarray(at(promptOffsets, s), at(promptOffsets, s + 1)),
      response: responses.subarray(start, end),
      mask: mask.subarray(start, end),
      logProbs: logProbs.subarray(start, end),
    };
  });
}

function joined(all: readonly LastResponse[], of: (one: LastResponse) => Int32Array): Int32Array {
  const parts = all.map(of);
  const whole = new Int32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let start = 0;
  for (const part of parts) {
    whole.set(part, start);
    start += part.length;
  }
  return whole;
}
