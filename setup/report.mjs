/** What set-up says: one line per step, and errors that end with what to do. */

/** An error for the person at the keyboard. `output` is the tail of what a failed program printed. */
export class SetupError extends Error {
  constructor(message, hint, output) {
    super(message);
    this.name = 'SetupError';
    this.hint = hint;
    this.output = output;
  }
}

export const seconds = (sinceMs) => `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`;

export class Reporter {
  #quiet;
  #out;

  constructor({ quiet }) {
    this.#quiet = quiet;
    this.#out = quiet ? process.stderr : process.stdout;
  }

  /** Runs one step and prints its line: a live `…` on a terminal, then `✓ name  1.2 s  remark`. */
  async step(name, run) {
    const started = performance.now();
    if (this.#out.isTTY) this.#out.write(`… ${name}`);
    try {
      const remark = await run();
      this.#line(`✓ ${name.padEnd(22)} ${seconds(started).padStart(7)}${remark ? `  ${remark}` : ''}`);
    } catch (error) {
      this.#line(`✗ ${name.padEnd(22)} ${seconds(started).padStart(7)}`);
      throw error;
    }
  }

  waiting() {
    this.#line('… another set-up is at work here; waiting for it');
  }

  upToDate(took) {
    if (!this.#quiet) this.#line(`✓ set-up is up to date  ${took}`);
  }

  done(took) {
    this.#line(`✓ set-up done in ${took}`);
  }

  failure(error) {
    const output = error.output?.trimEnd();
    process.stderr.write(
      `${output ? `${output}\n` : ''}\nset-up stopped: ${error.message}\n${error.hint ? `→ ${error.hint}\n` : ''}`,
    );
  }

  #line(text) {
    this.#out.write(`${this.#out.isTTY ? '\r\x1b[2K' : ''}${text}\n`);
  }
}
