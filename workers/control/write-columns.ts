/** Writes the metrics of a run in columns, a while after its iterations are committed and beside the run's work. */
import { errorToJson } from '../../core/errors.ts';
import { chunkSizes } from '../../core/records/metric-columns.ts';
import { newestInChunks, writeChunks } from '../../log/run/metric-chunks.ts';
import { RunLog } from '../../log/run/run-log.ts';

const [smallest] = chunkSizes;
/** Runs whose last pass is remembered; for another one a pass only lists its chunks. */
const keptRuns = 256;

export class ColumnWriter {
  readonly #log: (line: string) => void;
  /** Number of complete ranges at the last pass, by run; the oldest is evicted first. */
  readonly #passed = new Map<string, number>();
  readonly #running = new Set<string>();
  /** Keys of chunks that are too large to be written. */
  readonly #tooLarge = new Set<string>();

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  /** A position of this run was committed or validated. Resolves when a pass that this caused has ended. */
  async committed({ store, runId }: Pick<RunLog, 'store' | 'runId'>, position: number): Promise<void> {
    const id = `${store.url} ${runId}`;
    const ranges = Math.floor(position / smallest);
    if (ranges === 0 || this.#running.has(id) || this.#passed.get(id) === ranges) return;
    this.#running.add(id);
    try {
      // Its reads must not evict what the stages of the run have in their cache.
      const log = new RunLog(store, runId);
      const end = await log.end((term) => newestInChunks(log, term));
      const isComplete = end === undefined || (await writeChunks(log, end, this.#tooLarge)).isComplete;
      if (isComplete) this.#note(id, ranges);
    } catch (error) {
      // Readers use the records. The next range is tried again.
      this.#log(`${runId}: its metrics are not in columns: ${errorToJson(error).message}`);
      this.#note(id, ranges);
    } finally {
      this.#running.delete(id);
    }
  }

  #note(id: string, ranges: number): void {
    this.#passed.delete(id);
    this.#passed.set(id, ranges);
    const [oldest] = this.#passed.keys();
    if (this.#passed.size > keptRuns && oldest !== undefined) this.#passed.delete(oldest);
  }
}
