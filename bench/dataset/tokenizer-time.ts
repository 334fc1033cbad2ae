/**
 * The processor time that the tokenizer alone needs for the prompts of a file, as if a single thread did nothing else.
 */
import { readRows, verlColumns } from '../../models/dataset.ts';
import { RowRenderer, templateOf } from '../../models/dataset/render.ts';
import { openTokenizer } from '../../models/tokenizer.ts';

/** One prompt in this many is tokenised; its time counts for all of them. */
const oneOf = 10;
const batchRows = 256;

/** Seconds. Reading and rendering do not count. */
export async function timeTokenizer(file: string, folder: string): Promise<number> {
  const tokenizer = await openTokenizer(folder);
  const chat = { kind: 'rl', chatTemplate: 'auto' } as const;
  const renderer = new RowRenderer(tokenizer, { ...chat, template: templateOf(tokenizer, chat) });
  let [seconds, row] = [0, 0];
  let batch: string[] = [];
  const tokenise = async () => {
    const before = process.cpuUsage();
    await tokenizer.lengths(batch);
    const { user, system } = process.cpuUsage(before);
    seconds += (user + system) / 1e6;
    batch = [];
  };
  for await (const one of readRows([file], { kind: 'rl', ...verlColumns })) {
    if (Math.floor(row++ / batchRows) % oneOf !== 0) continue;
    batch.push(renderer.render(one, (reason) => new Error(reason) as never).prompt);
    if (batch.length === batchRows) await tokenise();
  }
  await tokenise();
  return seconds * (row / Math.max(1, Math.ceil(row / batchRows / oneOf) * batchRows));
}
