import type { Writer } from '../../core/records/schema.ts';
import type { ActivityPorts } from '../ports/index.ts';

/** The process that writes a record, and the time. */
export function recordWriter(ports: Pick<ActivityPorts, 'process' | 'now'>): Writer {
  return { process: ports.process, at: ports.now().toISOString() };
}
