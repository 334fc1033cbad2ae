/** Safetensors: the format of every tensor petrel reads or writes. */
export { roundToBf16, widenBf16, widenF16 } from './safetensors/convert.ts';
export { TensorFolder, openSafetensors } from './safetensors/folder.ts';
export type { FolderTensor } from './safetensors/folder.ts';
export { dtypeBytes, layOut } from './safetensors/header.ts';
export type { Dtype, TensorEntry } from './safetensors/header.ts';
export { decodeSafetensors, encodeSafetensors, safetensorsPieces } from './safetensors/memory.ts';
export type { DecodedSafetensors, MemoryTensor, TensorData } from './safetensors/memory.ts';
export { floats, readSafetensorsStream } from './safetensors/stream.ts';
export { writeModelFiles, writeSafetensors } from './safetensors/write.ts';
export type { ShardOptions, StoredDtype } from './safetensors/write.ts';
export { gathered, streamOf } from './safetensors/tensors.ts';
export type { FloatTensor, NamedShape, TensorPiece, Tensors, TensorStream } from './safetensors/tensors.ts';
