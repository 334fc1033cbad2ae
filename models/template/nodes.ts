/** The syntax tree of a template. Every node has its line. */
import type { BinaryOperator } from './operators.ts';
import type { Value } from './values.ts';

export interface Arguments {
  readonly positional: readonly Expression[];
  readonly keywords: readonly (readonly [string, Expression])[];
  readonly spread?: Expression;
  readonly spreadKeywords?: Expression;
}

export type CompareOperator = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | 'not in';

export type Expression = { readonly line: number } & (
  | { readonly type: 'constant'; readonly value: Value }
  | { readonly type: 'name'; readonly name: string }
  | { readonly type: 'list' | 'tuple' | 'concat'; readonly items: readonly Expression[] }
  | { readonly type: 'dict'; readonly pairs: readonly (readonly [Expression, Expression])[] }
  | { readonly type: 'attribute'; readonly object: Expression; readonly name: string }
  | { readonly type: 'item'; readonly object: Expression; readonly key: Expression }
  | { readonly type: 'slice'; readonly start?: Expression; readonly stop?: Expression; readonly step?: Expression }
  | { readonly type: 'call'; readonly callee: Expression; readonly args: Arguments }
  /** `input` is absent when a filter block filters the text of its body. */
  | { readonly type: 'filter'; readonly name: string; readonly input?: Expression; readonly args: Arguments }
  | { readonly type: 'test'; readonly name: string; readonly input: Expression; readonly args: Arguments }
  | { readonly type: 'not'; readonly operand: Expression }
  | { readonly type: 'sign'; readonly sign: '-' | '+'; readonly operand: Expression }
  | {
      readonly type: 'binary';
      readonly operator: BinaryOperator;
      readonly left: Expression;
      readonly right: Expression;
    }
  | { readonly type: 'and' | 'or'; readonly left: Expression; readonly right: Expression }
  | {
      readonly type: 'compare';
      readonly first: Expression;
      readonly rest: readonly (readonly [CompareOperator, Expression])[];
    }
  | {
      readonly type: 'conditional';
      readonly test: Expression;
      readonly then: Expression;
      readonly otherwise?: Expression;
    }
);

/** The target of an assignment: a name, an attribute of a namespace, or several of them. */
export type Target = { readonly line: number } & (
  | { readonly type: 'name'; readonly name: string }
  | { readonly type: 'namespace'; readonly name: string; readonly attribute: string }
  | { readonly type: 'targets'; readonly items: readonly Target[] }
);

export interface Parameter {
  readonly name: string;
  readonly fallback?: Expression;
}

/** The body of a macro or of a call block. */
export interface MacroBody {
  readonly name: string | undefined;
  readonly parameters: readonly Parameter[];
  readonly body: readonly Statement[];
  /** Which of `caller`, `varargs` and `kwargs` the body uses. Passing one that it does not use is an error. */
  readonly uses: ReadonlySet<string>;
}

export type Statement = { readonly line: number } & (
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'output'; readonly value: Expression }
  | {
      readonly type: 'if';
      readonly branches: readonly { readonly test: Expression; readonly body: readonly Statement[] }[];
      readonly otherwise: readonly Statement[];
    }
  | {
      readonly type: 'for';
      readonly target: Target;
      readonly over: Expression;
      readonly test?: Expression;
      readonly recursive: boolean;
      readonly body: readonly Statement[];
      readonly otherwise: readonly Statement[];
    }
  | { readonly type: 'set'; readonly target: Target; readonly value: Expression }
  | {
      readonly type: 'set_block';
      readonly target: Target;
      readonly filter?: Expression;
      readonly body: readonly Statement[];
    }
  | { readonly type: 'macro'; readonly macro: MacroBody }
  | { readonly type: 'call_block'; readonly call: Expression & { type: 'call' }; readonly caller: MacroBody }
  | { readonly type: 'filter_block'; readonly filter: Expression; readonly body: readonly Statement[] }
  | {
      readonly type: 'with';
      readonly bindings: readonly (readonly [Target, Expression])[];
      readonly body: readonly Statement[];
    }
  | { readonly type: 'block'; readonly scoped: boolean; readonly body: readonly Statement[] }
  | { readonly type: 'generation'; readonly body: readonly Statement[] }
  | { readonly type: 'break' | 'continue' }
  | { readonly type: 'unsupported'; readonly tag: string }
);
