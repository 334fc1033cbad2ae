/** Checks of `rollout.url`: a vLLM or SGLang server that somebody runs and that samples. */
import { shownUrl } from '../endpoint.ts';
import { samplesResponses } from '../run-kinds.ts';
import { isOnThisMachine, samplingApis } from '../sampling-server.ts';
import type { RecipeIssue } from './issues.ts';
import { trainsAdapter } from './lora-issues.ts';
import type { Recipe } from './schema.ts';

export function serverIssues(recipe: Recipe): RecipeIssue[] {
  if (!samplesResponses(recipe.kind)) return [];
  if (recipe.rollout.url === null) return withoutServer(recipe);
  return [...urlIssues(recipe), ...kindIssues(recipe), ...folderIssues(recipe), ...promiseIssues(recipe)];
}

function withoutServer({ rollout }: Recipe): RecipeIssue[] {
  const unused = (['api_key', 'weights_dir'] as const).filter((name) => rollout[name] !== null);
  return [
    ...(rollout.name === 'sglang'
      ? [
          {
            path: 'rollout.url',
            message: 'SGLang samples as a server that you start',
            expected: 'the address of one: http://host:30000',
            received: 'null',
            hint: 'start one (python -m sglang.launch_server --model-path MODEL), then set rollout.url=http://HOST:30000',
          },
        ]
      : []),
    ...unused.map((name) => ({
      path: `rollout.${name}`,
      message: 'it is for a vLLM or SGLang server that you run, and none is named',
      expected: 'null, or the server’s address beside it: rollout.url',
    })),
  ];
}

function urlIssues({ rollout }: Recipe): RecipeIssue[] {
  const url = rollout.url ?? '';
  const [received, expected] = [shownUrl(url), 'http://… or https://…: http://host:8000'];
  if (isUrl(url) && hasLogin(url))
    return [
      {
        path: 'rollout.url',
        message: 'it has a user name or a password, which records and texts would show',
        expected: `the address alone: ${received}`,
        received: 'an address with a login',
        hint: 'put the server’s key into a variable of the workers, and set rollout.api_key=env:NAME: it is sent as a bearer token',
      },
    ];
  if (isUrl(url)) return [];
  const message = 'this is no address of a server';
  return [{ path: 'rollout.url', message, expected, received }];
}

function hasLogin(url: string): boolean {
  const { username, password } = new URL(url);
  return username !== '' || password !== '';
}

function isUrl(text: string): boolean {
  if (!URL.canParse(text) || /\s/.test(text)) return false;
  const { protocol, hostname, search } = new URL(text);
  return (protocol === 'http:' || protocol === 'https:') && hostname !== '' && search === '';
}

function kindIssues({ rollout }: Recipe): RecipeIssue[] {
  if (samplingApis.some((name) => name === rollout.name)) return [];
  return [
    {
      path: 'rollout.name',
      message: 'with rollout.url it says what kind of server there is',
      expected: samplingApis.join(' or '),
      received: rollout.name,
      hint: 'set rollout.name=vllm or rollout.name=sglang, or rollout.url=null to sample in the workers',
    },
  ];
}

function folderIssues({ rollout }: Recipe): RecipeIssue[] {
  const { url, weights_dir: folder } = rollout;
  if (folder !== null && !folder.startsWith('/'))
    return [
      {
        path: 'rollout.weights_dir',
        message: 'the server and the workers need the whole path',
        expected: 'a path that begins with /',
        received: folder,
      },
    ];
  if (folder !== null || url === null || !isUrl(url) || isOnThisMachine(url)) return [];
  return [
    {
      path: 'rollout.weights_dir',
      message: 'the server is another machine, and must get the new weights of each iteration',
      expected: 'a folder that both see under the same path, such as one of NFS',
      received: 'null',
      hint: 'set rollout.weights_dir=/shared/folder, or run the server on the machine of the workers',
    },
  ];
}

function promiseIssues(recipe: Recipe): RecipeIssue[] {
  const issues: RecipeIssue[] = [];
  if (recipe.deterministic === true)
    issues.push({
      path: 'rollout.url',
      message: 'the samples of a server cannot be had again to the bit, and deterministic is true',
      expected: 'null',
      hint: 'write deterministic: replay, or sample with rollout.name=native',
    });
  if (trainsAdapter(recipe))
    issues.push({
      path: 'rollout.url',
      message: 'servers at rollout.url get whole models, and the run trains a low-rank adapter',
      expected: 'null',
      hint: 'set rollout.url=null rollout.name=vllm, or model.lora_rank=0',
    });
  return issues;
}
