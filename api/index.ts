/**
 * petrel as a library: `import { openStack } from 'petrel'`. Everything that the command line does, typed, without
 * console, environment or process.exit: it is the first user of this file. Errors are `PetrelError`s with a stable
 * `code`, a message and a `hint`. docs/do/library.md has a whole program.
 */

// A stack and its runs, as objects for programs. The functions below take `stack.context`.
export { openStack, Stack } from './open-stack.ts';
export type { RecipeRequest, StackOptions } from './open-stack.ts';
export { Run } from './run.ts';
export type { ExportedPolicy, ExportRequest } from './run.ts';
export type { ApiContext } from './context.ts';

// Runs: these functions find, start, follow, change and delete them.
export { findRun, listRunIds, openKnownStores, openRun } from './stores/find.ts';
export type { FoundRun, ListedRun, RunLog } from './stores/find.ts';
export { startRun } from './runs/start.ts';
export type { StartedRun } from './runs/start.ts';
export { followRun, timeLeft } from './runs/follow.ts';
export type { FollowOptions, RunProgress } from './runs/follow.ts';
export { waitUntilEnd } from './runs/wait.ts';
export { runSummary } from './runs/summary.ts';
export type { RunSummary } from './runs/summary.ts';
export { runStatus } from './runs/status-report.ts';
export type { RunStatus, WorkerStatus } from './runs/status-report.ts';
export { activityText } from './runs/activity.ts';
export { runOutcome } from './runs/outcome.ts';
export type { RunOutcome } from './runs/outcome.ts';
export { runCurves } from './runs/curve.ts';
export type { RunCurve } from './runs/curve.ts';
export { refuseIfEnded, requestRunState } from './runs/desired-state.ts';
export type { RequestAnswer } from './runs/desired-state.ts';
export { resumeRun } from './runs/resume.ts';
export type { ResumeRequest } from './runs/resume.ts';
export type { TermPlan } from './runs/next-term.ts';
export type { AbandonedIteration } from './runs/abandoned.ts';
export { recipeChangeText } from './runs/changed-recipe.ts';
export { forkRun } from './runs/fork.ts';
export type { Fork, ForkRequest } from './runs/fork.ts';
export { refuseUnlessEnded, refuseWhileForked, removalLoss, removeRun } from './runs/removal.ts';
export type { RemovalLoss } from './runs/removal.ts';
export { isStoreRefusal, patientLog, patientRun } from './runs/patient-store.ts';

// The feed of a run: what is committed comes in order, each once, from any place on. It is plain data, for a page too.
export { followFeed } from './runs/run-feed.ts';
export type { FeedOptions } from './runs/run-feed.ts';
export { feedStart, feedWhole } from '../core/run-feed.ts';
export type { FeedIteration, FeedPlace, FeedStatus, FeedValidation, TakenNews } from '../core/run-feed.ts';
export type { Measured } from '../core/records/metric-columns.ts';
export type { LiveMessage } from '../core/wire/messages.ts';

// Metrics and samples: what a run reported for each iteration, and the responses behind the numbers.
export { listMetrics, metricNames, metricNamesMeant, metricRows, metricValue } from './runs/metric-rows.ts';
export type { ListedMetric, MetricRow } from './runs/metric-rows.ts';
export { followMetrics } from './runs/follow-metrics.ts';
export { readSamples } from './runs/read-samples.ts';
export type { SampleRequest } from './runs/read-samples.ts';
export type { SampleView } from './runs/samples.ts';

// Logs: the lines that the processes of a run write, stored and live.
export { listenToLog, LogReader } from './runs/log-lines.ts';
export type { LogLine } from '../core/wire/messages.ts';

// Checkpoints: these functions list, verify and export them.
export { listCheckpoints, retentionFloor } from './checkpoints/list.ts';
export type { CheckpointRow } from './checkpoints/list.ts';
export { findLogHole, verifyBatches, verifyCheckpoints } from './checkpoints/verify.ts';
export type { CheckpointVerdict, IterationVerdict } from './checkpoints/verify.ts';
export { verifyInputs } from './checkpoints/verify-inputs.ts';
export type { InputVerdict } from './checkpoints/verify-inputs.ts';
export { exportPolicy } from './checkpoints/export.ts';
export type { ExportDtype } from './checkpoints/export.ts';

// The ledger: the verifier proves what a run trained on, and the janitor removes what no run needs.
export { verifyLedger } from './ledger/verify.ts';
export type { LedgerFault, LedgerVerdict } from './ledger/verify.ts';
export { collectGarbage } from './garbage.ts';
export type { GarbageRequest, StoreSweep } from './garbage.ts';

// Recipes: these functions read one, begin one, or import one of verl.
export { loadRecipe } from './recipes/recipe-file.ts';
export type { LoadedRecipe } from './recipes/recipe-file.ts';
export { recipeErrors } from './recipes/recipe-issues.ts';
export { initRecipe } from './init/init.ts';
export type { InitRequest } from './init/init.ts';
export { importRecipe } from './recipes/import/import-recipe.ts';
export type { ImportedRecipe } from './recipes/import/import-recipe.ts';
export { measureImports } from './recipes/import/measure.ts';
export type { ImportMeasure } from './recipes/import/measure.ts';
export type { ImportInputs } from './recipes/import/read-source.ts';
export { isImportOverride } from './recipes/import/keys/overrides-file.ts';
export { importReasonText } from './recipes/import/keys/map-entries.ts';
export { importLossText, importLossTitle, importPlaceText } from './recipes/import/keys/losses.ts';
export type { ImportedKey, ImportLoss, KeyOutcome } from './recipes/import/keys/outcome.ts';
export { writeNewFile } from './new-file.ts';

// The plan: a recipe's checks, batch arithmetic, memory and disk, before anything starts.
export { planRun } from './plan/plan.ts';
export type { PlanOptions } from './plan/plan.ts';
export type { PlanReport } from './plan/report.ts';

// The doctor: checks of this machine and its set-up.
export { doctorChecks } from './doctor/checks.ts';
export type { DoctorLine } from './doctor/checks.ts';

// Models and data: these functions make a model to start from, and rows to train on.
export { initModel } from './models/init.ts';
export { exportOnnx } from './models/export-onnx.ts';
export { arithmeticRows } from './data/arithmetic.ts';
export { ARITHMETIC_PRESETS, ARITHMETIC_SPLITS } from './data/presets.ts';
export type { ArithmeticPreset, ArithmeticSplit } from './data/presets.ts';
export { prepareRows } from './data/verl-rows.ts';
export { PREPARED_DATASETS, PREPARED_SPLITS } from './data/preparations.ts';
export type { PreparedDataset, PreparedSplit } from './data/preparations.ts';
export { readRowPrompts, writeRows } from './data/rows-file.ts';

// Workers: what only a running stack knows about them, and how a machine joins and leaves.
export { openLiveSource } from './live-source.ts';
export type { Driven, LiveSource } from './live-source.ts';
export { machineStatus } from './runs/machine-status.ts';
export type { MachineStatus } from './runs/machine-status.ts';
export { joinFleet } from './fleet/join.ts';
export type { JoinOptions } from './fleet/join.ts';
export { createFleetToken, writeJoinProgram } from './fleet/token.ts';
export { revokeFromFleet } from './fleet/revoke.ts';

// The fleet and its cost: which machines are wanted, which are there, and what they have cost.
export { applyFleet, drainInstance, removePool, scaleFleet } from './fleet/wanted.ts';
export { listFleet } from './fleet/list.ts';
export type { FleetList } from './fleet/list.ts';
export { costReport, fleetReport, fleetYaml, livingFleet } from './fleet/view.ts';
export type { CostReport, FleetInstance, FleetReport } from './fleet/view.ts';
export { RunCost } from './fleet/run-cost.ts';
export { controllerMachinePolicy, workerStorePolicy } from './fleet/policy.ts';
export type { PolicyDocument } from './fleet/policy.ts';

// Schedules: these functions start runs by the clock.
export { addSchedule } from './schedules/add.ts';
export type { ScheduleRequest } from './schedules/add.ts';
export { findSchedule, listSchedules } from './schedules/find.ts';
export type { FoundSchedule } from './schedules/find.ts';
export { readSchedule, readSchedules } from './schedules/read.ts';
export type { FiringSummary, ScheduleSummary } from './schedules/summary.ts';
export { pauseSchedule, removeSchedule, unpauseSchedule } from './schedules/change.ts';
export { triggerSchedule } from './schedules/trigger.ts';

// The stack: servers, control process and workers of this machine.
export { fullDisks, instanceName, namingFullDisk, stackName, startStack, stopStack } from './stack.ts';
export type { StackInfo, WantedStack } from './stack.ts';

// The home: the folder that holds the stack of this machine.
export { petrelHome } from './home.ts';

// Losses, estimators and samplers of your own: the types that their files have.
export type {
  Detached,
  OwnAdvantageEstimator,
  OwnAdvantages,
  OwnEstimatorBatch,
  OwnEstimatorConfig,
  OwnLossInput,
  OwnLossSettings,
  OwnPolicyLoss,
  OwnRows,
  OwnSampler,
  OwnSamplerInput,
  OwnSamplerResult,
  OwnSamplerRow,
  OwnSampling,
  SequenceLoss,
  TokenLoss,
} from '../core/rl/own/types.ts';

// Errors and the states in which a run ends: the class of an error says what helps, its code names the case.
export {
  FencedError,
  InvalidInputError,
  PauseError,
  PetrelError,
  PreemptedError,
  RetryableError,
  TerminalError,
  UnfitError,
} from '../core/errors.ts';
export { endedStates } from '../core/run-states.ts';
export type { DesiredState, RunState } from '../core/run-states.ts';

// Engines that users install.
export { engineDevices } from '../infra/engines/gpus.ts';
export { engineEnvironments } from '../core/engines.ts';
export { installEngine } from './engines/install.ts';
export type { EngineInstall, InstalledEngine } from './engines/install.ts';
export { tryEngine } from './engines/check.ts';
export type { EngineTrial } from './engines/check.ts';
