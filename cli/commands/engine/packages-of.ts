import type { EngineTrial } from '../../../api/index.ts';

/** The packages of an engine's environment that decide what it does, with their versions, and torch's kind of GPU. */
export const packagesOf = ({ versions }: EngineTrial['environment']): string =>
  [
    ...(['vllm', 'torch', 'transformers'] as const).flatMap((name) =>
      versions[name] === undefined ? [] : [`${name} ${versions[name]}`],
    ),
    ...(versions.gpus === undefined ? [] : [versions.gpus]),
  ].join(', ');
