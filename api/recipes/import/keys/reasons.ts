/** Why a key of verl has no counterpart in petrel. Only data. */

export const REASONS = {
  kernels: 'It chooses kernels. petrel’s engine decides; results do not depend on it.',
  activations:
    'It computes activations again in the backward pass to save memory. petrel’s engines decide that by the memory that is free; results do not depend on it.',
  offload:
    'It moves activations, or the weights of one model of several, to host memory. trainer.fsdp_size divides them, and trainer.cpu_offload=true keeps weights, gradients and moments of all models in the machine’s own memory.',
  parallel:
    'It splits a model or a sequence over devices. petrel divides by trainer.fsdp_size, and with --engine torch by Ulysses, tensors and experts; it has no pipeline or context parallelism.',
  samplerLayout:
    'It divides the sampler’s model by layers or experts. petrel’s vLLM divides it by rollout.tensor_model_parallel_size only.',
  sharding:
    'It configures FSDP, Megatron, VeOmni or another training engine. petrel has trainer.engine and trainer.fsdp_size for this.',
  server:
    'It configures the server that generates (vLLM, SGLang, TensorRT-LLM). rollout.name names what petrel sets up, and rollout.max_num_seqs bounds its memory; with rollout.url it is a server that you run.',
  colocation:
    'It gives the sampler’s memory back while the trainer computes. petrel’s sampler keeps it; rollout.max_num_seqs bounds it.',
  machines:
    'It trains on several machines. petrel trains on the GPUs of one; other machines can sample: docs/learn/second-machine.md.',
  ray: 'It configures Ray, its processes or their devices. petrel’s processes are described by fleet.pools.',
  internal: 'It selects or tunes verl’s own machinery: trainer versions, queues, loading.',
  profiling: 'It profiles verl’s processes. petrel metrics shows the time of each stage.',
  resume: 'It says how verl finds a checkpoint. petrel resumes a run by its id: petrel resume <run>.',
  vision: 'It is for images, video or audio. petrel trains language models only.',
  moe: 'It is a detail of mixtures of experts. trainer.engine=torch trains them as transformers has them; actor.router_aux_loss_coef is the weight of its auxiliary loss.',
  lora: 'It is a detail of low-rank adapters that petrel does not have.',
  tools: 'It is for tools, agents and several turns, which petrel does not have yet.',
  turns:
    'Its rows are conversations, of which every answer is learned. petrel learns one response of each row: data.response_key.',
  rewardModel:
    'It configures the server of a reward model or its engine. petrel’s reward model scores in the process that trains; a generative one is asked over HTTP: reward.endpoint.',
  rewardManager:
    'It names a reward manager of the script’s own. petrel has naive, batch, prime, dapo, gdpo, rate_limited and remote, and scorers of your own.',
  algorithm: 'The algorithm, or this detail of it, is not built yet.',
  trackers: 'It is for scores from before the run. petrel’s trackers of prompts begin at one half.',
  distillation: 'A teacher has no server of its own: it is loaded beside the policy.',
  async: 'Asynchronous training is not built yet.',
  optimizer: 'petrel has AdamW in fp32 only.',
  architecture:
    'It changes the model’s configuration. petrel reads the config.json of the model’s folder; change it there.',
  code: 'It loads code that belongs to verl or to the model. petrel executes neither.',
  data: 'It replaces verl’s own data classes. petrel’s rows, columns and formats: docs/do/recipes.md.',
  sampler:
    'It names a Python class. petrel’s data.sampler is a module in TypeScript or JavaScript: docs/do/own-sampler.md.',
  critic: 'The critic is the policy’s model with a value head, and takes the policy’s mini-batches.',
} as const satisfies Readonly<Record<string, string>>;

export type Reason = keyof typeof REASONS;
