/** Entry of the control process: Temporal workflows and activities, the dispatcher, the log collector. */
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { petrelHome } from '../../infra/home.ts';
import { stackFromEnv } from '../../infra/stack/index.ts';
import { composeControl } from './compose.ts';

const stack = stackFromEnv();
Runtime.install({ logger: new DefaultLogger('WARN') });
const control = await composeControl(stack, petrelHome());
process.once('SIGTERM', () => control.leave());
process.once('SIGINT', () => control.leave());
await control.run();
process.exit(0);
