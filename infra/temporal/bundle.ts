/**
 * Builds dist/workflow-bundle.js: the workflow code for Temporal's sandbox. Set-up runs this program.
 *
 * Bundling takes seconds, so it is done once per change and not at every start of a worker.
 */
import { writeFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { packageRoot } from '../home.ts';

const root = packageRoot();
const output = join(root, 'dist/workflow-bundle.js');
const { code } = await bundleWorkflowCode({
  workflowsPath: join(root, 'workflows/index.ts'),
  workflowInterceptorModules: [join(root, 'workflows/refuse-foreign.ts')],
  logger: new DefaultLogger('WARN'),
});
writeFileSync(`${output}.tmp`, code);
renameSync(`${output}.tmp`, output);
