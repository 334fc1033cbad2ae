import { expect, it } from 'vitest';
import { InvalidInputError } from '../core/errors.ts';
import { parseYaml } from './yaml.ts';

const nine = (name: string) => `[${Array.from({ length: 9 }, () => name).join(', ')}]`;
const exploding = ['a0: &a0 [x]', ...[1, 2, 3, 4].map((i) => `a${i}: &a${i} ${nine(`*a${i - 1}`)}`)].join('\n');

/** What a person could write or save by accident, with the place that is named. */
const refused: readonly (readonly [string, string, RegExp, string])[] = [
  ['aliases that multiply', exploding, /its aliases multiply/, '5:'],
  ['an anchor inside itself', 'x: 1\na: &a [*a]', /the anchor a contains itself/, '2:8'],
  ['an alias without an anchor', 'x: 1\na: *nowhere', /there is no anchor nowhere/, '2:4'],
  ['a key twice', 'a: 1\na: 2', /keys must be unique/, '2:1'],
  ['a tab as indentation', 'a:\n\tb: 1', /Tabs are not allowed/, '2:1'],
  ['a tag of Python', 'a: !!python/object/apply:os.system ["x"]', /Unresolved tag/, '1:4'],
  ['a tag of its own', 'x: 1\na: !mine 3', /Unresolved tag/, '2:4'],
  ['a zero byte', 'a: 1\nb: \0', /found a zero byte, as in UTF-16/, '2:4'],
  ['UTF-16', Buffer.from('a: 1', 'utf16le').toString(), /found a zero byte, as in UTF-16/, '1:2'],
  ['Latin-1', Buffer.from('a: caf\xe9', 'latin1').toString(), /expected UTF-8, found other bytes/, '1:7'],
  [
    'a whole number that loses digits',
    'a: 1\nb: 9007199254740993',
    /the number 9007199254740993 has too many digits/,
    '2:4',
  ],
  ['two documents', 'a: 1\n---\nb: 2', /expected one document, found a second one/, '2:1'],
  ['a number without an end', 'a: 1\nb: -.inf', /a number with an end, found -\.inf/, '2:4'],
  ['no number', 'a: .nan', /a number with an end, found \.nan/, '1:4'],
  ['a list as a key', '? [a]\n: b', /a key must be a text/, '1:3'],
  ['deep lists', `a: 1\nb: ${'['.repeat(200_000)}`, /nested in more than 100 levels/, '2:'],
  ['deep mappings', '{a: '.repeat(5000), /nested in more than 100 levels/, '1:'],
  ['deep lists in blocks', `${'- '.repeat(5000)}x`, /nested in more than 100 levels/, '1:'],
  ['a bracket that is not closed', 'a: 1\nb: [1', /not valid YAML/, '2:'],
];

it.each(refused)('%s: refused with file and line', (_, text, message, place) => {
  let thrown: unknown;
  try {
    parseYaml(text, 'x.yaml');
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(InvalidInputError);
  expect((thrown as InvalidInputError).message).toMatch(message);
  expect((thrown as InvalidInputError).where).toContain(`x.yaml:${place}`);
});

it.each([
  ['a byte order mark', '\ufeffa: 1', { a: 1 }],
  ['an anchor that is used some times', 'a: &a [1]\nb: [*a, *a]', { a: [1], b: [[1], [1]] }],
  ['the largest whole number', 'a: 9007199254740991', { a: 9007199254740991 }],
  ['JSON', '{"a": [1, null]}', { a: [1, null] }],
  ['lists in lists', `${'['.repeat(90)}${']'.repeat(90)}`, expect.any(Array)],
])('%s: read', (_, text, value) => expect(parseYaml(text, 'x.yaml').value).toEqual(value));
