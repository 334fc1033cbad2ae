/** Low-rank adapters in peft's layout: a folder with adapter_config.json and adapter_model.safetensors. */
export { adapterConfigName, adapterWeightsName, isAdapterFolder, readLoraConfig } from './lora/config.ts';
export type { LoraConfig } from './lora/config.ts';
export { adapterLayers, createAdapter, matchingLayers } from './lora/create.ts';
export type { AdapterSettings } from './lora/create.ts';
export { checkAdapter, withBase } from './lora/given.ts';
export { mergedTensors } from './lora/merge.ts';
export { saveAdapter } from './lora/save.ts';
export type { SavedAdapter } from './lora/save.ts';
