/**
 * Writes the growing samples of one job to the journal: one message per tick with the tokens since the last one. When a
 * small model decodes so fast that a tick would risk many tokens, it writes sooner.
 */
import { journalVersion, maxTokensPerJournalMessage, tokensPerSegmentHead } from '../../../core/wire/journal.ts';
import type { JournalMessage, JournalSegment } from '../../../core/wire/journal.ts';
import { encodeTokens, Lineage } from '../generation/lineage.ts';
import type { JobIdentity, TokenRun } from '../generation/lineage.ts';
import type { JournalPorts } from '../job/context.ts';

/** Average number of tokens per sample that may not be in the journal yet. */
const tokensAhead = 64;

/** A sample whose tokens another module appends. */
export interface GrowingSample {
  readonly run: TokenRun;
  readonly draw: number;
  /** Number among the responses to its draw. */
  readonly sample: number;
}

interface Growing extends GrowingSample {
  /** Tokens written so far, and their hash. */
  written: number;
  lineage: Lineage;
}

export class JournalWriter {
  readonly #identity: JobIdentity;
  readonly #ports: JournalPorts;
  #growing: Growing[] = [];
  #dueAt: number | undefined;
  /** Tokens since the last message. */
  #ahead = 0;

  constructor(identity: JobIdentity, ports: JournalPorts) {
    this.#identity = identity;
    this.#ports = ports;
  }

  /** The job's samples; their present tokens are already in the journal. */
  begin(samples: readonly GrowingSample[]): void {
    this.#growing = samples.map(({ run, draw, sample }) => {
      const written = run.tokens.length;
      return {
        run,
        draw,
        sample,
        written,
        lineage: Lineage.of(this.#identity, draw, sample).append(encodeTokens(run, 0, written)),
      };
    });
  }

  /**
   * Called after every decoding step with its number of tokens. The first tick of a job starts with its first token.
   */
  tick(count: number): void {
    const now = this.#ports.now();
    this.#dueAt ??= now + this.#ports.tickMs;
    this.#ahead += count;
    if (now >= this.#dueAt || this.#ahead >= tokensAhead * this.#growing.length) this.flush();
  }

  /** Writes all unwritten tokens. */
  flush(): void {
    this.#dueAt = this.#ports.now() + this.#ports.tickMs;
    this.#ahead = 0;
    let segments: JournalSegment[] = [];
    let [tokens, room] = [0, maxTokensPerJournalMessage];
    for (const growing of this.#growing) {
      while (growing.written < growing.run.tokens.length) {
        const count = Math.min(growing.run.tokens.length - growing.written, room);
        segments.push(this.#segment(growing, count));
        tokens += count;
        room -= count + tokensPerSegmentHead;
        if (room > 0) continue;
        this.#send(segments, tokens);
        [segments, tokens, room] = [[], 0, maxTokensPerJournalMessage];
      }
    }
    if (tokens > 0) this.#send(segments, tokens);
  }

  /** Written entries may be lost: the next tick writes all tokens again. */
  startOver(): void {
    for (const growing of this.#growing) {
      growing.written = 0;
      growing.lineage = Lineage.of(this.#identity, growing.draw, growing.sample);
    }
  }

  #segment(growing: Growing, count: number): JournalSegment {
    const { run, draw, sample, written, lineage } = growing;
    const bytes = encodeTokens(run, written, written + count);
    const before = lineage.value;
    growing.written += count;
    return {
      draw,
      sample,
      offset: written,
      before,
      after: lineage.append(bytes).value,
      tokens: bytes.toString('base64'),
    };
  }

  #send(segments: JournalSegment[], tokens: number): void {
    const message: JournalMessage = {
      v: journalVersion,
      incarnation: this.#ports.incarnation,
      ...this.#identity,
      segments,
    };
    this.#ports.publish(JSON.stringify(message), tokens);
  }
}
