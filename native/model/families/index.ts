/** The families that petrel knows. A new one is a file beside these and a line here. */
import type { Family } from './family.ts';
import { gemma2 } from './gemma2.ts';
import { llama } from './llama.ts';
import { mistral } from './mistral.ts';
import { phi3 } from './phi3.ts';
import { qwen2, qwen3 } from './qwen.ts';

export const families: readonly Family[] = [llama, qwen2, qwen3, mistral, gemma2, phi3];
