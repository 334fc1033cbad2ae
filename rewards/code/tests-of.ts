/** The ground truth of a row whose response is a program: JSON text, or the same as an object. */

export interface CodeTests {
  /** Name of the function to call; undefined: the program reads stdin and prints. */
  readonly function: string | undefined;
  /** stdin of each test, or arguments: one JSON value per line, or a list of values. */
  readonly inputs: readonly unknown[];
  /** Expected stdout of each test, or the function's result as JSON text. */
  readonly outputs: readonly unknown[];
}

/** Throws Error with what is missing: such a row cannot be scored. */
export function parseCodeTests(groundTruth: unknown): CodeTests {
  const value = typeof groundTruth === 'string' ? parseJson(groundTruth) : groundTruth;
  if (typeof value !== 'object' || value === null) throw malformed(`it is ${typeof value}`);
  const { inputs, outputs, fn_name: name } = value as Record<string, unknown>;
  if (!Array.isArray(inputs) || !Array.isArray(outputs)) throw malformed('inputs or outputs is missing or no list');
  if (inputs.length === 0) throw malformed('there are no tests');
  if (inputs.length !== outputs.length)
    throw malformed(`there are ${inputs.length} inputs and ${outputs.length} outputs`);
  if (name !== undefined && name !== null && typeof name !== 'string') throw malformed('fn_name is no text');
  const fn = typeof name === 'string' && name !== '' ? name : undefined;
  const wrong = inputs.findIndex((input, i) => !fits(input, outputs[i], fn));
  if (wrong >= 0) throw malformed(`test ${wrong + 1} is neither text nor a list`);
  return { function: fn, inputs, outputs };
}

function fits(input: unknown, output: unknown, fn: string | undefined): boolean {
  if (fn !== undefined) return typeof input === 'string' || Array.isArray(input);
  return isLines(input) && isLines(output);
}

/** A text, or a list of its lines. */
function isLines(value: unknown): boolean {
  return typeof value === 'string' || (Array.isArray(value) && value.every((line) => typeof line === 'string'));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw malformed(error instanceof Error ? error.message : String(error));
  }
}

const malformed = (why: string) =>
  new Error(
    `the ground truth of a program is JSON text with its tests, {"inputs": [...], "outputs": [...]} and perhaps "fn_name"; ${why}`,
  );
