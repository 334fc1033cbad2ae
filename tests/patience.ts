/**
 * How long a wait of a test may last. It only ends waits that would never end: no test checks a duration, and a machine
 * that is busy with other work may take long. PETREL_PATIENCE_MS shortens it for somebody who looks for a hang.
 */
export const patienceMs = Number(process.env['PETREL_PATIENCE_MS'] || 600_000);

/** Options of polls. */
export const patient = { everyMs: 20, timeoutMs: patienceMs };
