/**
 * Which of the worker's environment variables a scorer process gets. A worker has the keys to the store, a hub token
 * and the access to NATS, and a scorer needs none of them. Other variables reach a scorer only if the recipe names
 * them: `env:NAME`.
 */
const passed = [
  /^(PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR)$/,
  // Where Python finds its packages, and its behaviour.
  /^(PETREL_PYTHON|PYTHON[A-Z0-9_]*|PYENV_ROOT|VIRTUAL_ENV|CONDA_PREFIX|LD_LIBRARY_PATH)$/,
  // Number of threads of numerical libraries.
  /^[A-Z]+_NUM_THREADS$/,
  // Trusted certificates.
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
