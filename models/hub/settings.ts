/** Settings of the hubs' own Python clients, read as they read them: where people have set them already. */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

type Env = Readonly<Record<string, string | undefined>>;

export interface HubSettings {
  /** The address has no slash at its end. */
  readonly hubUrl: string;
  readonly token: string | undefined;
  /** Folder in which the Python client keeps models; absent: it is not looked into. */
  readonly sharedCache?: string;
  /** No request may be made. */
  readonly offline?: boolean;
  /** The `fetch` of the requests; default: Node's. */
  readonly fetch?: typeof fetch;
}

/**
 * Reads HF_ENDPOINT; the token from HF_TOKEN, HUGGING_FACE_HUB_TOKEN or the file that `hf auth login` writes; the cache
 * from HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE or HF_HOME; HF_HUB_OFFLINE and TRANSFORMERS_OFFLINE.
 */
export function hubSettings(env: Env): HubSettings {
  return {
    hubUrl: (env['HF_ENDPOINT'] || 'https://huggingface.co').replace(/\/+$/, ''),
    token: tokenOf(env),
    sharedCache: expanded(env['HF_HUB_CACHE'] ?? env['HUGGINGFACE_HUB_CACHE'] ?? join(homeOf(env), 'hub'), env),
    offline: isTrue(env['HF_HUB_OFFLINE'] || env['TRANSFORMERS_OFFLINE']),
  };
}

/**
 * Reads MODELSCOPE_ENDPOINT or MODELSCOPE_DOMAIN, MODELSCOPE_API_TOKEN and MODELSCOPE_CACHE. ModelScope's client has no
 * variable that forbids requests, and a login that it keeps is a pickle of Python, which is not read.
 */
export function modelScopeSettings(env: Env): HubSettings {
  const address = env['MODELSCOPE_ENDPOINT'] || env['MODELSCOPE_DOMAIN']?.trim() || 'https://modelscope.cn';
  return {
    hubUrl: (/^https?:\/\//.test(address) ? address : `https://${address}`).replace(/\/+$/, ''),
    token: cleaned(env['MODELSCOPE_API_TOKEN']),
    sharedCache: expanded(env['MODELSCOPE_CACHE'] || '~/.cache/modelscope', env),
  };
}

const isTrue = (value: string | undefined): boolean => /^(?:1|on|yes|true)$/i.test(value ?? '');

function homeOf(env: Env): string {
  const caches = env['XDG_CACHE_HOME'] ?? join(env['HOME'] || homedir(), '.cache');
  return expanded(env['HF_HOME'] ?? join(caches, 'huggingface'), env);
}

/** Does what `os.path.expandvars` and `expanduser` do: a variable that is not set stays as it is written. */
function expanded(path: string, env: Env): string {
  const home = path.replace(/^~(?=\/|$)/, () => env['HOME'] || homedir());
  return home.replace(
    /\$(?:(\w+)|\{([^}]*)\})/g,
    (text, plain?: string, braced?: string) => env[plain ?? braced ?? ''] ?? text,
  );
}

function tokenOf(env: Env): string | undefined {
  if (isTrue(env['HF_HUB_DISABLE_IMPLICIT_TOKEN'])) return undefined;
  return cleaned(env['HF_TOKEN'] || env['HUGGING_FACE_HUB_TOKEN']) ?? cleaned(tokenFile(env));
}

const cleaned = (token: string | undefined): string | undefined => token?.replace(/[\r\n]/g, '').trim() || undefined;

/** A file that is not there, or not this user's to read, is no token. */
function tokenFile(env: Env): string | undefined {
  try {
    return readFileSync(expanded(env['HF_TOKEN_PATH'] ?? join(homeOf(env), 'token'), env), 'utf8');
  } catch {
    return undefined;
  }
}
