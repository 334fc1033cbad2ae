import { describe, expect, it } from 'vitest';
import { maxWork, workDone } from './budget.ts';
import { TemplateError, renderChat } from '../template.ts';

const user = [{ role: 'user', content: 'hi' }];
const show = (template: string, kwargs: Record<string, unknown> = {}): string =>
  renderChat(template, { messages: user, kwargs }).text;

describe('renderChat', () => {
  it('gives the line of an error and keeps the text of raise_exception', () => {
    try {
      show("\n\n{{ raise_exception('no tools here') }}");
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(TemplateError);
      expect(error).toMatchObject({ reason: 'no tools here', line: 3, code: 'InvalidInput', where: 'chat_template:3' });
    }
    expect(() => show('a\n{% if x %}')).toThrow(/line 2: Unexpected end of template: 'if' of line 2 needs/);
    expect(() => show('{{ x.y }}')).toThrow("line 1: 'x' is undefined");
  });

  it('distinguishes 1 from 1.0, also in arithmetic and tojson', () => {
    expect(show('{{ [1, 1.0, 2 ** 70, 7 // 2, 7 / 2, 1e16, -0.0] | tojson }}')).toBe(
      '[1, 1.0, 1180591620717411303424, 3, 3.5, 1e+16, -0.0]',
    );
  });

  it('counts code points', () => {
    expect(show('{{ x | length }}{{ x[1] }}{{ x[::-1] }}{{ x.find("c") }}', { x: '😀𠮷c' })).toBe('3𠮷c𠮷😀2');
  });

  it('distinguishes None from a missing value', () => {
    expect(
      show('{{ d.a }}|{{ d.b }}|{{ d.get("a", 1) }}|{{ d.a is none }}|{{ d.a is defined }}', { d: { a: null } }),
    ).toBe('None||None|True|True');
  });

  it('forbids changing lists and dicts, and dunder names', () => {
    for (const template of [
      '{{ l.append(1) }}',
      '{{ d.update({}) }}',
      '{{ d.pop("a") }}',
      '{{ l.__class__.x }}',
      '{% set ns = namespace() %}{% set ns._a = 1 %}',
    ]) {
      expect(() => show(template, { l: [], d: { a: 1 } })).toThrow(TemplateError);
    }
  });

  it('gives spans of generation blocks in code points', () => {
    const { text, assistantSpans } = renderChat(
      '😀{% for m in messages %}<{% generation %}{{ m.content }}{% endgeneration %}>{% endfor %}',
      { messages: [...user, ...user] },
    );
    expect(text).toBe('😀<hi><hi>');
    expect(assistantSpans).toEqual([
      [2, 4],
      [6, 8],
    ]);
  });

  it('needs a clock only for the date', () => {
    const template = "{{ strftime_now('%d %b %Y') }}";
    expect(renderChat(template, { messages: user, now: '2026-01-02T03:04:05' }).text).toBe('02 Jan 2026');
    expect(() => renderChat(template, { messages: user })).toThrow(/no clock was given/);
    expect(() => renderChat(template, { messages: user, now: 'tomorrow' })).toThrow(/must look like/);
  });

  it('refuses endless recursion and huge sizes instead of crashing', () => {
    expect(() => show('{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}')).toThrow(/too deep/);
    expect(() => show("{{ 'a' * 10 ** 12 }}")).toThrow(/too large/);
    expect(() => show('{{ range(1000000) }}')).toThrow(/Range too big/);
  });

  const range = 'range(100000)';
  const doubled = (times: number) => `{% set a = [1] %}${'{% set a = [a, a] %}'.repeat(times)}`;
  it.each([
    [
      'nested loops',
      `{% for a in ${range} %}{% for b in ${range} %}{% for c in ${range} %}{% endfor %}{% endfor %}{% endfor %}`,
    ],
    ['nested loops that make ranges', `{% for a in ${range} %}{% set b = ${range} %}{% endfor %}`],
    ['filters that read all items', `{% for a in ${range} %}{% set b = ${range}|list|sum %}{% endfor %}`],
    [
      'macros that call two of themselves',
      '{% macro m(n) %}{{ m(n + 1) if n < 40 }}{{ m(n + 1) if n < 40 }}{% endmacro %}{{ m(0) }}',
    ],
    [
      'output that doubles',
      "{% set ns = namespace(s='x') %}{% for i in range(40) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    ],
    ['the text of a list that holds itself twice, many times', `${doubled(60)}{{ a }}`],
    ['JSON of such a list', `${doubled(60)}{{ a|tojson }}`],
    ['comparing two such lists', `${doubled(60)}{% set b = a %}${doubled(60)}{{ a == b }}`],
    [
      'a long text that is read again and again',
      `{% set s = 'x' * 10000000 %}{% for i in ${range} %}{{ 'y' in s }}{% endfor %}`,
    ],
    ['a long text cut into characters', `{% set s = 'x' * 10000000 %}{% for i in ${range} %}{{ s[i] }}{% endfor %}`],
    [
      'tags without an end',
      "{{ ('<' * 3000000)|striptags|length }}{% for i in range(100000) %}{{ ('<' * 3000000)|striptags }}{% endfor %}",
    ],
    ['lines of no width', "{{ 'a b c'|wordwrap(0) }}"],
    ['integers without end', '{{ (10 ** 10000) ** 10000 }}'],
    ['a fill without end', '{{ [1]|batch(1000000000, 0)|list|length }}'],
  ])('ends %s with an error that names the line', (_, template) => {
    expect(() => show(`\n${template}`)).toThrow(/^chat template, line 2: .*(steps|too large|invalid width)/);
  });

  it('renders a chat of a megabyte within a tenth of its budget', () => {
    const template =
      '{% for m in messages %}<|{{ m.role }}|>\n{{ m.content|trim }}{% if not loop.last %}\n{% endif %}{% endfor %}';
    const messages = Array.from({ length: 1000 }, (_, i) => ({
      role: i % 2 ? 'assistant' : 'user',
      content: 'x'.repeat(1000),
    }));
    expect(renderChat(template, { messages }).text.length).toBeGreaterThan(1_000_000);
    expect(workDone()).toBeLessThan(maxWork / 10);
  });

  it('refuses an empty chat, and a continued message that the template drops', () => {
    expect(() => renderChat('x', { messages: [] })).toThrow(/at least one message/);
    expect(() => renderChat('x', { messages: user, continueFinalMessage: true })).toThrow(/does not appear/);
  });
});
