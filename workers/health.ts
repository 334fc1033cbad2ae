/** How well a worker works: the needs that are not met, and what its last jobs failed with. */
import { errorToJson, PetrelError, UnfitError } from '../core/errors.ts';
import type { ErrorJson } from '../core/errors.ts';
import type { Role } from '../core/roles.ts';
import type { JobMessage, Presence } from '../core/wire/messages.ts';
import { Fitness } from './fitness.ts';
import type { Need } from './fitness.ts';
import { jobNeeds, missedNeed } from './needs.ts';
import type { NeedPorts } from './needs.ts';
import type { SayOfRun } from './run-lines.ts';

/** After this many failures of unknown kind in a row, a worker stops pulling. */
const failuresToUnhealthy = 3;

export interface HealthPorts {
  /** What others see of the worker has changed. */
  readonly changed: () => void;
  readonly say: SayOfRun;
  readonly needs: () => NeedPorts;
  /** Several jobs in a row failed with unknown errors: the fault is probably the process's. */
  readonly broken: () => void;
}

export class Health {
  readonly #ports: HealthPorts;
  readonly #fitness: Fitness;
  #failuresInARow = 0;
  #lastError: ErrorJson | undefined;
  #lastErrorRun: string | undefined;

  constructor(ports: HealthPorts) {
    this.#ports = ports;
    this.#fitness = new Fitness(ports.changed);
  }

  /** False while the worker takes no job at all. */
  get takesJobs(): boolean {
    return this.#fitness.takesJobs;
  }

  /** Resolves when every need that all jobs have is met. */
  whenFit(): Promise<void> {
    return this.#fitness.whenFit();
  }

  /** Checks what all jobs need. */
  async check(needs: readonly Need[]): Promise<void> {
    await this.#fitness.firstLack(needs);
  }

  /** What the worker lacks for this job. */
  lackFor(message: JobMessage): Promise<UnfitError | undefined> {
    return this.#fitness.firstLack(jobNeeds(message, this.#ports.needs()));
  }

  succeeded(message: JobMessage): void {
    this.#failuresInARow = 0;
    this.#fitness.proven(jobNeeds(message, this.#ports.needs()));
  }

  failed(message: JobMessage, error: unknown): void {
    const { runId, stage, jobId } = message;
    const level = error instanceof PetrelError && error.kind !== 'terminal' ? 'warn' : 'error';
    this.#ports.say(runId, level, `${stage} ${jobId}: ${textOf(error)}`);
    this.#lastError = errorToJson(error);
    this.#lastErrorRun = runId;
    if (error instanceof UnfitError) this.#noteLack(message, error);
    if (error instanceof PetrelError) return;
    this.#failuresInARow += 1;
    if (this.#failuresInARow < failuresToUnhealthy) return;
    this.#ports.broken();
    console.error(`unhealthy: ${failuresToUnhealthy} jobs in a row failed; last: ${errorToJson(error).message}`);
  }

  /** The worker would look ready and take no job; it keeps trying. */
  cannotPull(role: Role, error: unknown): void {
    const { message, ...rest } = errorToJson(error);
    this.#lastError = { ...rest, message: `the queue of ${role} jobs refuses to hand them out: ${message}` };
    this.#lastErrorRun = undefined;
    console.error(this.#lastError.message);
    this.#ports.changed();
  }

  /** What others see of it. A need that is not met says more than the last error. */
  get shown(): Pick<Presence, 'failuresInARow' | 'lastError' | 'lastErrorRun' | 'lacks'> {
    const { lacks } = this.#fitness;
    const failuresInARow = this.#failuresInARow;
    if (lacks[0] !== undefined) return { failuresInARow, lastError: lacks[0].error, lacks: [...lacks] };
    if (this.#lastError === undefined) return { failuresInARow };
    const ofRun = this.#lastErrorRun !== undefined && { lastErrorRun: this.#lastErrorRun };
    return { failuresInARow, lastError: this.#lastError, ...ofRun };
  }

  #noteLack(message: JobMessage, error: UnfitError): void {
    const need = missedNeed(error, message, this.#ports.needs());
    if (need !== undefined) this.#fitness.note(need, error);
  }
}

/** A fault of the code is shown with its stack. */
function textOf(error: unknown): string {
  if (error instanceof PetrelError || !(error instanceof Error)) return errorToJson(error).message;
  return error.stack ?? error.message;
}
