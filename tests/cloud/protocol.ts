/** The query protocol of EC2: a form with numbered names comes in, XML goes out. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** An error answer. `status`: 400 for the caller's mistakes, 503 for throttling, 500 for the service's. */
export class Ec2Error extends Error {
  readonly code: string;
  readonly status: number;

  constructor(code: string, message: string, status = 400) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** The form of a request, or a part of it: `TagSpecification.1.Tag.2.Key`. */
export class Form {
  readonly #values: ReadonlyMap<string, string>;

  constructor(values: Iterable<readonly [string, string]>) {
    this.#values = new Map(values);
  }

  static of(body: string): Form {
    return new Form(new URLSearchParams(body));
  }

  text(name: string): string | undefined {
    return this.#values.get(name);
  }

  /** Throws MissingParameter. */
  required(name: string): string {
    const value = this.text(name);
    if (value === undefined) throw new Ec2Error('MissingParameter', `The request must contain the parameter ${name}`);
    return value;
  }

  /** `name.1`, `name.2`, … */
  texts(name: string): string[] {
    return [...this.#values].filter(([key]) => isNumbered(key, name)).map(([, value]) => value);
  }

  /** The parts `name.1.…`, `name.2.…`, … */
  parts(name: string): Form[] {
    const parts = new Map<string, [string, string][]>();
    for (const [key, value] of this.#values) {
      const [, number, rest] = /^(\d+)\.(.+)$/.exec(key.startsWith(`${name}.`) ? key.slice(name.length + 1) : '') ?? [];
      if (number === undefined || rest === undefined) continue;
      parts.set(number, [...(parts.get(number) ?? []), [rest, value]]);
    }
    return [...parts.values()].map((values) => new Form(values));
  }

  /** One text for equal forms, whatever the order. */
  canonical(without: readonly string[]): string {
    return JSON.stringify(
      [...this.#values].filter(([name]) => !without.includes(name)).sort(([a], [b]) => (a < b ? -1 : 1)),
    );
  }
}

const isNumbered = (key: string, name: string) =>
  key.startsWith(`${name}.`) && /^\d+$/.test(key.slice(name.length + 1));

/** An array becomes `<item>`s; undefined is left out. */
export type Xml = string | number | boolean | undefined | readonly Xml[] | { readonly [name: string]: Xml };

export const answerXml = (action: string, body: Xml): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<${action}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">` +
  `<requestId>${randomUUID()}</requestId>${xml(body)}</${action}Response>`;

export const errorXml = ({ code, message }: Ec2Error): string =>
  '<?xml version="1.0" encoding="UTF-8"?>\n' +
  xml({ Response: { Errors: { Error: { Code: code, Message: message } }, RequestID: randomUUID() } });

function xml(value: Xml): string {
  if (value === undefined) return '';
  if (Array.isArray(value)) return value.map((item: Xml) => `<item>${xml(item)}</item>`).join('');
  if (typeof value !== 'object')
    return String(value).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return Object.entries(value as Readonly<Record<string, Xml>>)
    .filter(([, child]) => child !== undefined)
    .map(([name, child]) => `<${name}>${xml(child)}</${name}>`)
    .join('');
}

export async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) body += chunk;
  return body;
}
