#!/usr/bin/env node
/**
 * Sets petrel up: `node setup/main.mjs [--quiet] [--build] [--tests] [--lint] [--scorers]`. Every npm script runs
 * it first, and so does the command line of an installed package.
 *
 * Plain JavaScript without dependencies, since it is what fetches them. Each step knows whether it is pending (a stamp
 * keyed by content), so a second run costs nothing and an interrupted one continues where it stopped.
 *
 *   --quiet   show only the steps that had work to do, on stderr (stdout belongs to the command that follows)
 *   --build   run the build steps even when nothing changed
 *   --tests   fetch the servers, too, that only tests need
 *   --lint    fetch clang-format, too
 *   --scorers fetch the Python packages, too, that the scorers prime_math, math_verify and geo3k need; --tests has them
 */

import { availableParallelism } from 'node:os';
import { clangFormatStep } from './clang-format.mjs';
import { hadolintStep } from './hadolint.mjs';
import { withSetupLock } from './lock.mjs';
import { motoStep } from './moto.mjs';
import { nativeStep } from './native.mjs';
import { npmStep } from './npm.mjs';
import { checkLimits, checkPlatform, checkTools } from './platform.mjs';
import { buildIdStep, typescriptStep, workflowBundleStep } from './typescript.mjs';
import { programsBundleStep } from './programs-bundle.mjs';
import { guardStep, reaperStep } from './small-programs.mjs';
import { Reporter, SetupError, seconds } from './report.mjs';
import { testServerSteps } from './test-servers.mjs';
import { scorersStep } from './scorers.mjs';
import { serverSteps } from './toolchain.mjs';
import { checkoutRoot, isCheckout, petrelHome } from './places.mjs';
import { installedEngineStep } from './installed.mjs';

const knownFlags = ['--quiet', '--build', '--tests', '--lint', '--scorers'];
const flags = new Set(process.argv.slice(2));
const unknown = [...flags].filter((flag) => !knownFlags.includes(flag));
const report = new Reporter({ quiet: flags.has('--quiet') });

try {
  if (unknown.length > 0)
    throw new SetupError(`unknown option ${unknown.join(', ')}`, `known: ${knownFlags.join(', ')}`);
  await setUp({
    root: checkoutRoot,
    home: petrelHome(),
    force: flags.has('--build'),
    tests: flags.has('--tests'),
    lint: flags.has('--lint'),
    scorers: flags.has('--scorers') || flags.has('--tests'),
    cores: availableParallelism(),
  });
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  report.failure(error);
  process.exitCode = 1;
}

/**
 * A step is `{ name, needs, pending(), run() }`: `needs` names the machine's tools it calls, `run` may return a remark.
 * Pending is asked again just before a step runs: an earlier step, or another set-up, may have changed the answer.
 */
async function setUp(context) {
  const started = performance.now();
  checkPlatform();
  const steps = isCheckout(context.root) ? checkoutSteps(context) : installedSteps(context);
  if (!steps.some((step) => step.pending())) return report.upToDate(seconds(started));

  checkLimits();
  await withSetupLock(
    isCheckout(context.root) ? [context.root, context.home] : [context.home],
    () => report.waiting(),
    async () => {
      checkTools(steps.filter((step) => step.pending()).flatMap((step) => step.needs));
      for (const step of steps) {
        if (step.pending()) await report.step(step.name, () => step.run());
      }
    },
  );
  report.done(seconds(started));
}

function checkoutSteps(context) {
  return [
    npmStep(context),
    ...serverSteps(context),
    ...(context.tests ? [...testServerSteps(context), motoStep(context)] : []),
    ...(context.lint ? [clangFormatStep(context), hadolintStep(context)] : []),
    ...(context.scorers ? [scorersStep(context)] : []),
    nativeStep(context),
    reaperStep(context),
    guardStep(context),
    typescriptStep(context),
    programsBundleStep(context),
    workflowBundleStep(context),
    buildIdStep(context),
  ];
}

/** npm has brought the packages and the build; what is missing goes into PETREL_HOME, and nothing elsewhere. */
function installedSteps(context) {
  return [...serverSteps(context), ...(context.scorers ? [scorersStep(context)] : []), installedEngineStep(context)];
}
