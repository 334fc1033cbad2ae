/**
 * How spot machines come and go, in a model. Rates are of the order that public traces show: 0.3 to 0.8 losses per
 * machine-hour for GPUs in busy zones, half of the lost machines in events that take several (SkyPilot's and SkyNomad's
 * traces).
 */

export interface Trace {
  readonly name: string;
  /** Losses of single machines, per machine-hour. */
  readonly lossesPerHour: number;
  /** Events that take every spot machine of a zone, per hour and zone. */
  readonly zoneLossesPerHour: number;
  /** Times without capacity for spot, per hour and zone, and how long they last. */
  readonly dryPerHour: number;
  readonly drySeconds: number;
}

export const traces: readonly Trace[] = [
  { name: 'calm', lossesPerHour: 0.05, zoneLossesPerHour: 0, dryPerHour: 0, drySeconds: 0 },
  { name: 'stormy', lossesPerHour: 0.4, zoneLossesPerHour: 0, dryPerHour: 1, drySeconds: 900 },
  { name: 'bulk', lossesPerHour: 0.2, zoneLossesPerHour: 0.4, dryPerHour: 0.5, drySeconds: 600 },
];
