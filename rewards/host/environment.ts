/**
 * What a scorer process has of the worker's environment. A worker holds the keys to the store, a hub token and the way to
 * NATS; a scorer needs none of them. A variable beyond these reaches a scorer when the recipe names it: `env:NAME`.
 */
const passed = [
  /^(PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR)$/,
  // Where Python finds its packages, and how it behaves.
  /^(PYTHON[A-Z0-9_]*|PYENV_ROOT|VIRTUAL_ENV|CONDA_PREFIX|LD_LIBRARY_PATH)$/,
  // How many threads numerical libraries start.
  /^[A-Z]+_NUM_THREADS$/,
  // Which certificates are trusted.
  /^(SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)$/,
];

/** `named`: variables that the recipe names, with their values. */
export function scorerEnvironment(
  all: NodeJS.ProcessEnv,
  named: Readonly<Record<string, string>>,
): Record<string, string> {
  const kept = Object.entries(all).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && passed.some((pattern) => pattern.test(entry[0])),
  );
  return { ...Object.fromEntries(kept), ...named };
}
