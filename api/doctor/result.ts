/** What one check of `petrel doctor` answers. */

/** Yellow: petrel works, with less. Red: it does not. */
export interface DoctorResult {
  readonly status: 'green' | 'yellow' | 'red';
  readonly detail: string;
  readonly fix?: string;
}

export interface DoctorCheck {
  readonly name: string;
  readonly check: () => Promise<DoctorResult>;
}

export function green(detail: string): DoctorResult {
  return { status: 'green', detail };
}
