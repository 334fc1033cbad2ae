/**
 * Small ONNX files made on the spot, right and wrong ones: the score is the sum of a sequence's tokens. Protocol
 * buffers are fields of a number, a kind and a value; ONNX's numbers are in its onnx.proto.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface GraphOptions {
  readonly inputs?: readonly string[];
  /** Columns of the output. */
  readonly labels?: number;
  readonly output?: string;
  /** Shape of both inputs; a number fixes the length. */
  readonly shape?: readonly (string | number)[];
  readonly opset?: number;
  /** A score for each token: [batch, sequence, 1]. */
  readonly perToken?: boolean;
  /** false: the mask is given and not read. */
  readonly masked?: boolean;
  /** A sum over this number gives the square root of a negative one. */
  readonly brokenOver?: number;
}

const [int64, float32] = [7, 1];

export function writeGraph(folder: string, options: GraphOptions = {}): void {
  const {
    inputs = ['input_ids', 'attention_mask'],
    labels = 1,
    output = 'logits',
    opset = 11,
    masked = true,
  } = options;
  const { shape = ['batch', 'sequence'], perToken = false } = options;
  const read = masked && inputs.includes('attention_mask');
  const { brokenOver } = options;
  const summed = brokenOver === undefined ? 'sum' : 'broken';
  const nodes = [
    ...(read ? [node('Mul', ['input_ids', 'attention_mask'], 'tokens')] : []),
    node('Cast', [read ? 'tokens' : 'input_ids'], 'numbers', [attribute('to', int64Field(3, float32), 2)]),
    node('ReduceSum', ['numbers'], 'sum', [attribute('axes', int64Field(8, 1), 7)]),
    ...(brokenOver === undefined
      ? []
      : [
          node('ThresholdedRelu', ['sum'], 'over', [attribute('alpha', floatField(2, brokenOver), 1)]),
          node('Neg', ['over'], 'negative'),
          node('Sqrt', ['negative'], 'root'),
          node('Add', ['sum', 'root'], 'broken'),
        ]),
    perToken
      ? node('Unsqueeze', ['numbers'], output, [attribute('axes', int64Field(8, 2), 7)])
      : node('Concat', Array(labels).fill(summed), output, [attribute('axis', int64Field(3, 1), 2)]),
  ];
  const graph = Buffer.concat([
    ...nodes.map((one) => bytesField(1, one)),
    textField(2, 'graph'),
    ...inputs.map((name) => bytesField(11, value(name, int64, shape))),
    bytesField(12, value(output, float32, perToken ? ['batch', 'sequence', 1] : ['batch', labels])),
  ]);
  const model = [int64Field(1, 7), bytesField(7, graph), bytesField(8, int64Field(2, opset))];
  writeFileSync(join(folder, 'model.onnx'), Buffer.concat(model));
}

function node(type: string, inputs: readonly string[], output: string, attributes: readonly Buffer[] = []): Buffer {
  return Buffer.concat([
    ...inputs.map((name) => textField(1, name)),
    textField(2, output),
    textField(4, type),
    ...attributes.map((one) => bytesField(5, one)),
  ]);
}

/** `type`: 1 for a float, 2 for a number, 7 for a list of numbers. */
const attribute = (name: string, content: Buffer, type: number): Buffer =>
  Buffer.concat([textField(1, name), content, int64Field(20, type)]);

function value(name: string, type: number, shape: readonly (string | number)[]): Buffer {
  const lengths = shape.map((one) => bytesField(1, typeof one === 'number' ? int64Field(1, one) : textField(2, one)));
  const tensor = Buffer.concat([int64Field(1, type), bytesField(2, Buffer.concat(lengths))]);
  return Buffer.concat([textField(1, name), bytesField(2, bytesField(1, tensor))]);
}

const textField = (field: number, text: string): Buffer => bytesField(field, Buffer.from(text));
const bytesField = (field: number, bytes: Buffer): Buffer =>
  Buffer.concat([varint(field * 8 + 2), varint(bytes.length), bytes]);
const int64Field = (field: number, number: number): Buffer => Buffer.concat([varint(field * 8), varint(number)]);

function floatField(field: number, number: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(number);
  return Buffer.concat([varint(field * 8 + 5), bytes]);
}

function varint(number: number): Buffer {
  const bytes: number[] = [];
  for (let rest = number; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) + 128);
  }
}
