/**
 * Which of the worker's environment variables a scorer process gets. A worker has the keys to the store, a hub token
 * and the access to NATS, and a scorer needs none of them. Other variables reach a scorer only if the recipe names
 * them: `env:NAME`.
 */
const passed = [
  /^(PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR)$/,
  // Where Python finds a user's packages, and which Python it is. Other variables of Python, such as PYTHONHOME,
  // PYTHONINSPECT and PYTHONWARNINGS, belong to other programs, and change what a scorer does or keep it from starting.
  /^PYTHON(PATH|USERBASE|NOUSERSITE|HASHSEED|DONTWRITEBYTECODE|PYCACHEPREFIX)$/,
  /^(PETREL_PYTHON|PYENV_ROOT|PYENV_VERSION|VIRTUAL_ENV|CONDA_PREFIX|LD_LIBRARY_PATH)$/,
  // Number of threads of numerical libraries.
  /^[A-Z]+_NUM_THREADS$/,
  // Trusted certificates.
  /^(SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)$/,
];

/**
 * `own`: variables that petrel sets for this scorer, or removes where they are undefined. `named`: variables that the
 * recipe names, with their values.
 */
export function scorerEnvironment(
  all: NodeJS.ProcessEnv,
  own: Readonly<Record<string, string | undefined>> = {},
  named: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const kept = Object.entries(all).filter(([name]) => passed.some((pattern) => pattern.test(name)));
  const chosen = Object.entries({ ...Object.fromEntries(kept), ...own, ...named });
  return Object.fromEntries(chosen.filter((entry): entry is [string, string] => entry[1] !== undefined));
}
