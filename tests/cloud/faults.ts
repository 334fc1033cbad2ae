/** Faults that a test orders ahead of the calls that they hit. */

export interface Fault {
  /** RunInstances, …; absent: any call. */
  readonly action?: string;
  /** The error's code; `lostAnswer`: the call is carried out, and the connection closes without an answer. */
  readonly code: string;
  readonly message?: string;
  /** Default: 400; 503 for throttling; 500 for the service's. */
  readonly status?: number;
  /** Default: 1. Infinity: until `clear`. */
  readonly times?: number;
}

const statuses: Readonly<Record<string, number>> = {
  RequestLimitExceeded: 503,
  ServiceUnavailable: 503,
  Unavailable: 503,
  InternalError: 500,
};

export class Faults {
  #ordered: { readonly fault: Fault; left: number }[] = [];
  #failedBoots = 0;

  order(fault: Fault): void {
    this.#ordered.push({ fault, left: fault.times ?? 1 });
  }

  /** The next `count` instances are `running` and never run their user data. */
  failBoots(count: number): void {
    this.#failedBoots += count;
  }

  clear(): void {
    this.#ordered = [];
    this.#failedBoots = 0;
  }

  /** The next fault of this call. */
  take(action: string): (Fault & { readonly status: number }) | undefined {
    const next = this.#ordered.find(({ fault, left }) => left > 0 && (fault.action ?? action) === action);
    if (next === undefined) return undefined;
    next.left--;
    return { ...next.fault, status: next.fault.status ?? statuses[next.fault.code] ?? 400 };
  }

  takeFailedBoot(): boolean {
    return this.#failedBoots > 0 && this.#failedBoots-- > 0;
  }
}
