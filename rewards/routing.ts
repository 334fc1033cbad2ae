/**
 * Which scorer scores the rows of a data source (verl: `reward_score/__init__.py`, `default_compute_score`). Names are
 * compared exactly; `aime` is the only prefix.
 */

interface Route {
  readonly scorer: string;
  /** verl's name of the scorer, where it has another. */
  readonly inVerl?: string;
  readonly sources: readonly string[];
  /** Every source that begins so. */
  readonly prefix?: string;
}

/** Sources of verl's table, in its order: the first route that fits wins. */
export const ROUTES: readonly Route[] = [
  { scorer: 'gsm8k', sources: ['openai/gsm8k'] },
  {
    scorer: 'math_reward',
    sources: ['lighteval/MATH', 'DigitalLearningGmbH/MATH-lighteval', 'HuggingFaceH4/MATH-500'],
  },
  { scorer: 'math_dapo', sources: ['math_dapo', 'math', 'math_dapo_reasoning'], prefix: 'aime' },
  {
    scorer: 'prime_math',
    sources: [
      'numina_aops_forum',
      'numina_synthetic_math',
      'numina_amc_aime',
      'numina_synthetic_amc',
      'numina_cn_k12',
      'numina_olympiads',
    ],
  },
  { scorer: 'code', inVerl: 'prime_code', sources: ['codecontests', 'apps', 'codeforces', 'taco'] },
  { scorer: 'geo3k', sources: ['hiyouga/geometry3k'] },
  {
    scorer: 'search_r1_like_qa_em',
    sources: [
      'searchR1_nq',
      'searchR1_triviaqa',
      'searchR1_popqa',
      'searchR1_hotpotqa',
      'searchR1_2wikimultihopqa',
      'searchR1_musique',
      'searchR1_bamboogle',
    ],
  },
];

/** undefined when verl has no scorer for the data source. */
export function routeOf(dataSource: string): Route | undefined {
  return ROUTES.find(
    ({ sources, prefix }) => sources.includes(dataSource) || (prefix !== undefined && dataSource.startsWith(prefix)),
  );
}
