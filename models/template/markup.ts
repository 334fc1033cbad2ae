/** HTML escaping of the `e` filter; text that is marked safe stays as it is. */
import { str } from './print.ts';
import { Markup, type Value } from './values.ts';

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&#34;',
  "'": '&#39;',
};

export function escapeHtml(value: Value): string {
  return value instanceof Markup
    ? value.text
    : str(value).replace(/[&<>"']/g, (character) => entities[character] ?? character);
}
