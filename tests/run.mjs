/**
 * `npm test [filters]`: runs every test and ends with one line, `N passed, N failed` (and `, N skipped`).
 * The exit code is 1 when a test failed, when anything failed outside a test, or when nothing ran.
 */
import { startVitest } from 'vitest/node';

const filters = process.argv.slice(2);
const vitest = await startVitest('test', filters, { watch: false, reporters: ['default'] });

const count = { passed: 0, failed: 0, skipped: 0 };
for (const module of vitest.state.getTestModules()) {
  const tests = [...module.children.allTests()];
  for (const test of tests) count[outcome(test.result().state)]++;
  // A file that cannot be imported, or a hook that throws, fails without a failed test.
  if (module.state() === 'failed' && !tests.some((test) => test.result().state === 'failed')) count.failed++;
}
count.failed += vitest.state.getUnhandledErrors().length;
await vitest.close();

if (count.passed + count.failed === 0) console.log('no test ran');
const summary = `${count.passed} passed, ${count.failed} failed${count.skipped > 0 ? `, ${count.skipped} skipped` : ''}`;
process.stdout.write(`\n${summary}\n`, () => process.exit(count.failed > 0 || count.passed === 0 ? 1 : 0));

/** A test that is still pending was interrupted, which is not a success. */
function outcome(state) {
  return state === 'passed' ? 'passed' : state === 'skipped' ? 'skipped' : 'failed';
}
