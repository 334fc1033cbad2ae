/**
 * `npm run test:machines [-- WORDS]`: one set-up or one run on each machine of rows.ts whose title contains the words.
 */
import { rows } from './rows.ts';

async function main(words: string): Promise<number> {
  const chosen = rows().filter(({ title }) => title.includes(words));
  const began = performance.now();
  let failed = 0;
  for (const { title, play } of chosen) {
    const start = performance.now();
    try {
      await play();
      console.log(`ok ${seconds(start)}  ${title}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${seconds(start)}  ${title}\n${error instanceof Error ? error.message : String(error)}`);
    }
  }
  console.log(`\nin ${seconds(began)}:\n${chosen.length - failed} passed, ${failed} failed`);
  return failed === 0 && chosen.length > 0 ? 0 : 1;
}

const seconds = (since: number): string => `${((performance.now() - since) / 1000).toFixed(1)} s`;

process.exitCode = await main(process.argv.slice(2).join(' '));
