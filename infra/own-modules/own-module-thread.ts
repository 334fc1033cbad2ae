/**
 * The thread of a user's own module: it loads the file, then answers one call after the other. own-module.ts starts it,
 * and ends it when a call takes too long.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { checkEstimator, checkLoss } from '../../core/rl/own/check.ts';
import { ownAdvantages } from '../../core/rl/own/estimator.ts';
import { ownLossResult } from '../../core/rl/own/loss.ts';
import { checkedSampling, ownSampling } from '../../core/rl/own/sampler.ts';
import type { OwnAdvantageEstimator, OwnPolicyLoss, OwnSampler } from '../../core/rl/own/types.ts';
import { failureOf, loadOwnModule } from './load.ts';
import type { FromOwnModule, OwnModuleCalls, OwnModuleThreadData, ToOwnModule } from './protocol.ts';

const port = parentPort;
if (port === null) throw new Error('infra/own-modules/own-module-thread.ts runs as a worker thread');
process.setSourceMapsEnabled(true);

const data = workerData as OwnModuleThreadData;
// Bound now: the module may change what it finds in globals and prototypes.
const tell = (message: FromOwnModule) => port.postMessage(message);

type Answers = {
  readonly [Name in keyof OwnModuleCalls]: (
    argument: OwnModuleCalls[Name]['argument'],
  ) => OwnModuleCalls[Name]['answer'];
};

try {
  const { module, facts } = await loadOwnModule(data);
  // The module was loaded as what these calls need: own-module.ts asks a loss for losses only.
  const [loss, estimator, sampler] = [module as OwnPolicyLoss, module as OwnAdvantageEstimator, module as OwnSampler];
  const answers: Answers = {
    loss: (call) => ownLossResult(loss, call),
    advantages: (call) => ownAdvantages(estimator, call),
    sampling: (input) => ownSampling(sampler, input),
    checkSampler: (input) => checkedSampling(sampler, input),
    checkLoss: (settings) => checkLoss(loss, settings),
    checkEstimator: (config) => {
      checkEstimator(estimator, config);
      return null;
    },
  };
  port.on('message', ({ call, argument }: ToOwnModule) => {
    try {
      tell({ type: 'answer', answer: (answers[call] as (argument: unknown) => unknown)(argument) });
    } catch (error) {
      tell({ type: 'failed', failure: failureOf(error, data.fileName) });
    }
  });
  tell({ type: 'ready', facts });
} catch (error) {
  tell({ type: 'failed', failure: failureOf(error, data.fileName) });
}
