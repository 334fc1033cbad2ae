import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';

import type { BlockHash, EngineParameter, WeightsFormat } from '../core/parameters.ts';
import { InvalidInputError, TerminalError } from '../core/errors.ts';
import { addonFile } from './addon-file.ts';

/** A model inside the addon. Only the thread that created it may use it. */
export type NativeHandle = { readonly __nativeModel: never };

/**
 * The addon's flat functions, as this folder calls them. This folder validates the arguments in the user's words; the
 * addon validates them again, so that no caller can make it touch memory that is not its own.
 */
export interface NativeFunctions {
  engineInfo(): { isa: string; bf16: boolean; build: string; addedFlags: string; threads: number };
  ticks(): number;
  trainerCreate(spec: object, options: object): NativeHandle;
  trainerParameters(handle: NativeHandle): EngineParameter[];
  /** Copies elements from `start` on. */
  trainerRead(handle: NativeHandle, part: string, start: number, into: Float32Array): void;
  /** Replaces bytes from `firstByte` on. */
  trainerWrite(handle: NativeHandle, part: string, firstByte: number, bytes: Uint8Array): void;
  trainerZero(handle: NativeHandle, part: string): void;
  /** SHA-256 of blocks into digests; false, with nothing done, where the processor has no instructions for it. */
  trainerDigests(
    handle: NativeHandle,
    part: string,
    block: number,
    blockBytes: number,
    digests: Uint8Array,
    hash: BlockHash,
  ): boolean;
  /** Copies bytes of the weights as they are published. */
  publishedRead(handle: NativeHandle, format: WeightsFormat, firstByte: number, into: Uint8Array): void;
  publishedWrite(handle: NativeHandle, format: WeightsFormat, firstByte: number, bytes: Uint8Array): void;
  /** BLAKE3 of blocks into digests. */
  publishedDigests(
    handle: NativeHandle,
    format: WeightsFormat,
    block: number,
    blockBytes: number,
    digests: Uint8Array,
  ): void;
  trainerRefresh(handle: NativeHandle): void;
  trainerForward(
    handle: NativeHandle,
    tokens_N: Int32Array,
    cuSeqlens: Int32Array,
    positions_P: Int32Array,
    targets_P: Int32Array | undefined,
    scale: number,
    keep: boolean,
    logProbs: Float32Array | undefined,
    entropy: Float32Array | undefined,
    logits: Float32Array | undefined,
    rows: Float32Array | undefined,
    parents_S: Int32Array | undefined,
    topTokens: Int32Array | undefined,
    topLogProbs: Float32Array | undefined,
    top: number | undefined,
    sumPiSquared: Float32Array | undefined,
  ): number;
  trainerBackward(
    handle: NativeHandle,
    kept: number,
    dLogProbs: Float32Array | undefined,
    dEntropy: Float32Array | undefined,
    dRows: Float32Array | undefined,
  ): void;
  trainerDiscard(handle: NativeHandle, kept: number): void;
  trainerStep(
    handle: NativeHandle,
    lr: number,
    beta1: number,
    beta2: number,
    eps: number,
    weightDecay: number,
    maxGradNorm: number,
    step: number,
  ): [number, boolean];
  trainerMemory(handle: NativeHandle): number;
  trainerClose(handle: NativeHandle): void;
  convertBf16(src: Uint8Array, dst: Float32Array): void;
  roundBf16(src: Float32Array): Uint16Array;
  convertFp16(src: Uint8Array, dst: Float32Array): void;
  roundFp16(src: Float32Array): Uint16Array;
  mapFile(path: string): Uint8Array;
  /** Digests of an array's blocks; false, with nothing done, where the processor has no instructions for SHA-256. */
  blockDigests(bytes: Uint8Array, blockBytes: number, digests: Uint8Array, hash: BlockHash, threads: number): boolean;
  adamw(
    params: Float32Array,
    grads: Float32Array,
    m: Float32Array,
    v: Float32Array,
    lr: number,
    beta1: number,
    beta2: number,
    eps: number,
    weightDecay: number,
    maxGradNorm: number,
    step: number,
    vMax: Float32Array | undefined,
  ): [number, boolean];
  clipGradients(grads: Float32Array, maxNorm: number): number;
}

const handles = new WeakMap<object, NativeHandle>();

export function rememberHandle(trainer: object, handle: NativeHandle): void {
  handles.set(trainer, handle);
}

/** The addon's handle of a trainer created by `createTrainer`, for engines that read the same weights. */
export function trainerHandle(trainer: object): NativeHandle {
  const handle = handles.get(trainer);
  if (handle === undefined)
    throw new InvalidInputError('generation needs a trainer of the native engine (createTrainer), on the same thread');
  return handle;
}

let loaded: unknown;

/** The addon, loaded at the first call. Throws when it was not built or the processor lacks an instruction set. */
export function native<Functions = NativeFunctions>(): Functions {
  loaded ??= load(addonFile());
  return loaded as Functions;
}

function load(path: string): unknown {
  if (!existsSync(path)) {
    throw new TerminalError('EngineMissing', `the native engine is not built: ${path} is missing`, {
      hint: 'npm run setup',
    });
  }
  try {
    return createRequire(import.meta.url)(path);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TerminalError('EngineUnusable', `the native engine cannot run here: ${reason}`, { cause, where: path });
  }
}
