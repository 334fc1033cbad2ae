/** Collects the tensors of a decoder while its parts are described. */
import type { LinearPartSpec, NormSpec, TensorSpec } from '../spec.ts';

export class Tensors {
  readonly #shapes = new Map<string, readonly number[]>();

  /** The tensor `<name>.weight`, and with `bias` `<name>.bias`, of a linear layer. */
  linear(name: string, rows: number, columns: number, bias = false): LinearPartSpec {
    const weight = this.#add(`${name}.weight`, [rows, columns]);
    return bias ? { weight, rows, bias: this.#add(`${name}.bias`, [rows]) } : { weight, rows };
  }

  /** The tensor `<name>.weight` of an RMSNorm. */
  norm(name: string, width: number, eps: number, offset = 0): NormSpec {
    return { weight: this.#add(`${name}.weight`, [width]), eps, offset };
  }

  table(name: string, rows: number, columns: number): string {
    return this.#add(`${name}.weight`, [rows, columns]);
  }

  /** All of them, names ascending by code units. */
  list(): TensorSpec[] {
    return [...this.#shapes]
      .map(([name, shape]) => ({ name, shape }))
      .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  }

  #add(name: string, shape: readonly number[]): string {
    this.#shapes.set(name, shape);
    return name;
  }
}
