/** `node setup/lint-docker.mjs`: checks the Dockerfiles with hadolint, in npm run lint. */
import { spawnSync } from 'node:child_process';
import { hadolintIn } from './hadolint.mjs';
import { checkoutRoot, filesBelow, petrelHome } from './places.mjs';

const files = filesBelow(checkoutRoot, ['setup/docker'], (path) => path.endsWith('.Dockerfile'));
const { status, error } = spawnSync(hadolintIn(petrelHome()), ['--config', 'setup/docker/hadolint.yaml', ...files], {
  cwd: checkoutRoot,
  stdio: 'inherit',
});
if (error !== undefined) throw error;
if (status === 0) console.log(`hadolint: ${files.length} files in order`);
process.exitCode = status ?? 1;
