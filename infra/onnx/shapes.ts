/** Whether a graph is a classifier with one score for each sequence of tokens. */
import type { ClassifierFacts, TensorFacts } from './protocol.ts';

/** Given by petrel, int64 [batch, sequence] each. */
const givenInputs: readonly string[] = ['input_ids', 'attention_mask'];

/** The output with the scores, or why there is none. */
export function scoresOutput({
  inputs,
  outputs,
}: ClassifierFacts): { readonly name: string } | { readonly wrong: string } {
  for (const name of givenInputs) {
    const input = inputs.find((one) => one.name === name);
    if (input === undefined)
      return { wrong: `expected the inputs ${givenInputs.join(' and ')}, found ${names(inputs)}` };
    if (input.type !== 'int64' || !isOfAnyLength(input.shape, 2))
      return { wrong: `the input ${name}: expected int64 [batch, sequence] of any length, found ${shown(input)}` };
  }
  const more = inputs.filter(({ name }) => !givenInputs.includes(name));
  if (more.length > 0)
    return { wrong: `its input ${names(more)} is not given: petrel gives ${givenInputs.join(' and ')}` };
  const output = outputs.find(({ name }) => name === 'logits') ?? (outputs.length === 1 ? outputs[0] : undefined);
  if (output === undefined) return { wrong: `expected an output logits, found ${names(outputs)}` };
  const { name, type, shape } = output;
  const [batch, labels] = shape;
  const fits =
    shape.length === 0 ||
    (shape.length === 2 && typeof batch === 'string' && (labels === 1 || typeof labels === 'string'));
  if (type !== 'float32' || !fits)
    return {
      wrong: `the output ${name}: expected one score for each sequence, float32 [batch, 1], found ${shown(output)}`,
    };
  return { name };
}

/** Says that a batch of so many sequences came back in another shape than one score each; undefined when it did not. */
export function wrongScores(rows: number, shape: readonly number[]): string | undefined {
  if (shape.length === 2 && shape[0] === rows && shape[1] === 1) return undefined;
  return `expected one score for each of ${rows} sequences, float32 [${rows}, 1], found [${shape.join(', ')}]`;
}

const isOfAnyLength = (shape: TensorFacts['shape'], rank: number): boolean =>
  shape.length === rank && shape.every((length) => typeof length === 'string');

const names = (tensors: readonly TensorFacts[]): string => tensors.map(({ name }) => name).join(', ') || 'none';

const shown = ({ type, shape }: TensorFacts): string => `${type ?? 'no tensor'} [${shape.join(', ')}]`;
