import { describe, expect, it } from 'vitest';
import { TemplateError, renderChat } from '../template.ts';

const user = [{ role: 'user', content: 'hi' }];
const show = (template: string, kwargs: Record<string, unknown> = {}): string =>
  renderChat(template, { messages: user, kwargs }).text;

describe('renderChat', () => {
  it('names the line of a refusal and keeps the words of raise_exception', () => {
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

  it('tells 1 from 1.0, also in arithmetic and tojson', () => {
    expect(show('{{ [1, 1.0, 2 ** 70, 7 // 2, 7 / 2, 1e16, -0.0] | tojson }}')).toBe(
      '[1, 1.0, 1180591620717411303424, 3, 3.5, 1e+16, -0.0]',
    );
  });

  it('counts code points', () => {
    expect(show('{{ x | length }}{{ x[1] }}{{ x[::-1] }}{{ x.find("c") }}', { x: '😀𠮷c' })).toBe('3𠮷c𠮷😀2');
  });

  it('keeps None apart from absent', () => {
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

  it('needs a clock only when asked for the date', () => {
    const template = "{{ strftime_now('%d %b %Y') }}";
    expect(renderChat(template, { messages: user, now: '2026-01-02T03:04:05' }).text).toBe('02 Jan 2026');
    expect(() => renderChat(template, { messages: user })).toThrow(/no clock was given/);
    expect(() => renderChat(template, { messages: user, now: 'tomorrow' })).toThrow(/must look like/);
  });

  it('refuses endless recursion and absurd sizes instead of crashing', () => {
    expect(() => show('{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}')).toThrow(/too deep/);
    expect(() => show("{{ 'a' * 10 ** 12 }}")).toThrow(/too large/);
    expect(() => show('{{ range(1000000) }}')).toThrow(/Range too big/);
  });

  it('refuses nothing to render, and a continued message that the template drops', () => {
    expect(() => renderChat('x', { messages: [] })).toThrow(/at least one message/);
    expect(() => renderChat('x', { messages: user, continueFinalMessage: true })).toThrow(/does not appear/);
  });
});
