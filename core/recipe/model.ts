import { z } from 'zod';
import { countOrZero, key, requiredKey, section, text } from './key.ts';

/** `model`: the base that is trained. */
export const modelSection = section('The base model: its weights, tokenizer and arithmetic.', {
  path: requiredKey(text, {
    doc: 'Folder in the Hugging Face layout (begins with ".", "/" or "~"), or a name on the Hugging Face hub (org/name) or on ModelScope (modelscope:org/name).',
    change: 'fixed',
    pointsTo: 'model',
  }),
  revision: key(text, 'main', { doc: 'Branch, tag or commit on the hub; main: its default branch.', change: 'fixed' }),
  tokenizer_path: key(text.nullable(), null, {
    doc: 'Folder or hub name of the tokenizer; null: the one beside the model.',
    change: 'fixed',
    pointsTo: 'model',
  }),
  custom_chat_template: key(text.nullable(), null, {
    doc: 'A Jinja chat template to use instead of the tokenizer’s own.',
    change: 'fixed',
  }),
  compute_dtype: key(z.enum(['auto', 'fp32', 'bf16']), 'auto', {
    doc: 'Arithmetic of the engine; auto: bf16 where every worker has it when the run opens, else fp32. auto in deterministic runs: fp32.',
    change: 'fixed',
    verl: 'actor.fsdp_config.dtype',
  }),
  dtype: key(z.enum(['auto', 'fp32', 'bf16', 'fp16']), 'auto', {
    doc: 'Type of the tensors in exported folders; auto: as in the base. Masters are always fp32.',
    change: 'free',
  }),
  lora_rank: key(countOrZero, 0, {
    doc: 'Rank of a low-rank adapter; 0: all weights are trained. Needs trainer.engine=torch and rollout.name=hf or vllm.',
    change: 'fixed',
  }),
  lora_alpha: key(z.number().positive(), 16, { doc: 'Scale of the adapter: alpha / rank.', change: 'fixed' }),
  target_modules: key(z.union([text, z.array(text)]), 'all-linear', {
    doc: 'Which linear layers get an adapter: all-linear, names, or a regular expression for whole paths.',
    change: 'fixed',
  }),
  lora_adapter_path: key(text.nullable(), null, {
    doc: 'Folder of an adapter to go on with, as peft saves it; its rank, alpha and layers count. null: a new one.',
    change: 'fixed',
    pointsTo: 'file',
  }),
});
