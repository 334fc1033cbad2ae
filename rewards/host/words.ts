/** A scorer's text as petrel passes it on: without secrets, with the user's own file name, and of limited length. */
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Launch } from './launch.ts';
import { redactor } from './redact.ts';

/** Longest text of a reason, a column or a printed line, in characters. */
const longest = 2_000;

/** The run's copy of a scorer is in a cache, under a digest; the user knows the file as `shownAs`. */
export function wordsOf({ secrets, load, shownAs }: Launch): (text: string) => string {
  const redact = redactor(secrets);
  if (!('module' in load) || shownAs === undefined) return (text) => cut(redact(text));
  const { href } = pathToFileURL(load.module);
  const copied = (text: string) => text.replaceAll(href, shownAs).replaceAll(load.module, shownAs);
  if (shownAs === load.module) return (text) => cut(copied(redact(text)));
  const beside = `${dirname(load.module)}/`;
  const inFolder = (text: string) => text.replaceAll(`file://${beside}`, './').replaceAll(beside, './');
  return (text) => cut(inFolder(copied(redact(text))));
}

function cut(text: string): string {
  return text.length <= longest ? text : `${text.slice(0, longest)}… (${text.length - longest} more characters)`;
}
