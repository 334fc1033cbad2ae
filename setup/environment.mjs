/**
 * The environment of the programs that set-up runs: a person's variables for other work than this one are left out.
 * infra/environment.ts does the same for a stack; compiler.mjs for compilers; rewards/host/chosen_pip.py for pip.
 */

const tools = /^(NODE_(?!(EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED|OPTIONS)$)|npm_|pnpm_|yarn_|corepack_|bun_)/i;

/**
 * Options of NODE_OPTIONS that stay, each with its value, which may be a word of its own: which certificates are
 * trusted, how names are looked up.
 */
const keptNodeOptions =
  /(?<!\S)--(?:use-(?:openssl|system|bundled)-ca|tls-|dns-result-order|openssl-|force-fips|enable-fips)[^\s=]*(?:[\s=]+(?!-)(?:"(?:\\.|[^"\\])*"|\S+))?/g;

/**
 * Variables that a spread over `process.env` removes: those of Node, npm and Python. NODE_ENV=production is one of
 * them.
 */
export function withoutToolSettings(env = process.env) {
  const removed = Object.keys(env).filter((name) => tools.test(name) || name.startsWith('PYTHON'));
  const options = env.NODE_OPTIONS?.match(keptNodeOptions) ?? [];
  return {
    ...Object.fromEntries(removed.map((name) => [name, undefined])),
    NODE_OPTIONS: options.length > 0 ? options.join(' ') : undefined,
  };
}
