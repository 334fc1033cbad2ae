import type { Writer } from '../core/records/schema.ts';
import type { ActivityPorts } from './ports.ts';

/** Who writes a record, and when. */
export function recordWriter(ports: Pick<ActivityPorts, 'process' | 'now'>): Writer {
  return { process: ports.process, at: ports.now().toISOString() };
}
