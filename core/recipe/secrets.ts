/** Secrets must not be in a recipe, because recipes are stored, printed and sent. */
import type { RecipeIssue } from './issues.ts';

const TOKEN_SHAPES: readonly { readonly shape: RegExp; readonly what: string; readonly variable: string }[] = [
  { shape: /\bhf_[A-Za-z0-9]{20,}/, what: 'a Hugging Face token', variable: 'HF_TOKEN' },
  {
    shape: /\bms-[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}\b/,
    what: 'a ModelScope token',
    variable: 'MODELSCOPE_API_TOKEN',
  },
  { shape: /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/, what: 'an AWS access key', variable: 'AWS_ACCESS_KEY_ID' },
  { shape: /\bsk-[A-Za-z0-9_-]{20,}/, what: 'an API key', variable: 'API_KEY' },
  {
    shape: /\b(?:ghp|gho|ghs|ghu|github_pat|glpat)[_-][A-Za-z0-9_]{20,}/,
    what: 'a code host’s token',
    variable: 'GIT_TOKEN',
  },
  { shape: /\bxox[abpr]-[A-Za-z0-9-]{10,}/, what: 'a Slack token', variable: 'SLACK_TOKEN' },
  { shape: /\bAIza[A-Za-z0-9_-]{30,}/, what: 'a Google API key', variable: 'GOOGLE_API_KEY' },
  {
    shape: /\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}/,
    what: 'a JSON web token',
    variable: 'TOKEN',
  },
  { shape: /-----BEGIN [A-Z ]*PRIVATE KEY-----/, what: 'a private key', variable: 'PRIVATE_KEY' },
  { shape: /:\/\/[^/\s:@]+:[^/\s@]+@/, what: 'an address with a password', variable: 'SERVICE_URL' },
];

/** Addresses of services, and the key beside each that names the variable with the service's key. */
const KEY_BESIDE: Readonly<Record<string, string>> = {
  'rollout.url': 'rollout.api_key',
  'reward.endpoint.url': 'reward.endpoint.api_key',
};

const SECRET_NAME = /(?:^|[_-])(?:token|secret|password|passwd|api[_-]?key|access[_-]?key|credentials?)$/i;

/** Is the text a reference to a secret (`env:NAME`)? */
export function isSecretReference(value: string): boolean {
  return /^env:[A-Za-z_][A-Za-z0-9_]*$/.test(value);
}

/** Issues for every value that looks like a secret. They do not contain the values. */
export function findSecrets(value: unknown, path: readonly string[] = []): RecipeIssue[] {
  if (typeof value === 'string') {
    const issue = secretIssue(value, path);
    return issue === undefined ? [] : [issue];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, item]) => findSecrets(item, [...path, name]));
}

function secretIssue(value: string, path: readonly string[]): RecipeIssue | undefined {
  if (isSecretReference(value)) return undefined;
  const name = path.at(-1) ?? '';
  const known = TOKEN_SHAPES.find(({ shape }) => shape.test(value));
  if (known === undefined && !(SECRET_NAME.test(name) && value !== '')) return undefined;
  const variable = known?.variable ?? name.toUpperCase().replace(/-/g, '_');
  const beside = KEY_BESIDE[path.join('.')];
  return {
    path: path.join('.'),
    message: `looks like ${known?.what ?? 'a secret'}; recipes are stored and shown, so they must not contain secrets`,
    hint:
      beside === undefined
        ? `put it into an environment variable and write env:${variable}`
        : `leave it out of the address; a variable of the workers holds the service’s key: ${beside}=env:NAME`,
    secret: true,
  };
}
