import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TemplateError, renderChat } from '../template.ts';

const pieces = fc.constantFrom(
  '{{',
  '}}',
  '{%',
  '%}',
  '{#',
  '#}',
  '{%-',
  '-%}',
  '{{-',
  '-}}',
  ' ',
  '\n',
  'a',
  'x',
  'm',
  '1',
  '2.5',
  "'s'",
  '"',
  "'",
  '(',
  ')',
  '[',
  ']',
  '{',
  '}',
  ',',
  ':',
  '.',
  '|',
  '~',
  '+',
  '-',
  '*',
  '**',
  '/',
  '//',
  '%',
  '==',
  '<',
  '=',
  ' if ',
  ' else ',
  ' elif ',
  ' endif ',
  ' for ',
  ' in ',
  ' endfor ',
  ' set ',
  ' endset ',
  ' macro ',
  ' endmacro ',
  ' is ',
  ' not ',
  ' and ',
  ' or ',
  'messages',
  'loop',
  'namespace()',
  'range(3)',
  'upper',
  'tojson',
  'default',
  'raw',
  'endraw',
  'call',
  'endcall',
  'generation',
  'endgeneration',
  'none',
  '\\',
  '😀',
);

it('any template text is rendered or refused with a line, never more (property)', () => {
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 30 }), (parts) => {
      try {
        expect(typeof renderChat(parts.join(''), { messages: [{ role: 'user', content: 'hi' }] }).text).toBe('string');
      } catch (error) {
        expect(error).toBeInstanceOf(TemplateError);
        expect((error as TemplateError).line).toBeGreaterThan(0);
      }
    }),
    { numRuns: 5000 },
  );
});

it('an expression of any shape is evaluated or refused (property)', () => {
  const inner = fc.array(
    pieces.filter((piece) => !/^[{#%-]?[{%#][{%#-]?-?$|^-?[}%#]}$/.test(piece)),
    { minLength: 1, maxLength: 9 },
  );
  fc.assert(
    fc.property(inner, (parts) => {
      try {
        renderChat(`{{ ${parts.join(' ')} }}`, {
          messages: [{ role: 'user', content: 'hi' }],
          kwargs: { a: [1, { b: null }], x: 'Ab c', m: { k: 1.5 } },
        });
      } catch (error) {
        expect(error).toBeInstanceOf(TemplateError);
      }
    }),
    { numRuns: 5000 },
  );
});
