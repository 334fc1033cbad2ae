/** The text of a new recipe, with a comment on each choice. */

/** What a new recipe is made from. Paths are as they stand in the file: relative to it, or names on the hub. */
export interface RecipeChoices {
  readonly model: string;
  readonly train: string;
  readonly isGsm8k: boolean;
  /** false: prompts are used as text. */
  readonly hasChatTemplate: boolean;
  readonly prompts: number;
  readonly promptTokens: number;
  readonly responseTokens: number;
  /** A built-in scorer, a file, or each row's data source. */
  readonly reward:
    | { readonly type: 'builtin'; readonly name: string }
    | { readonly type: 'file'; readonly path: string }
    | { readonly type: 'rows' };
}

export function recipeText(choices: RecipeChoices): string {
  return `${[
    '# Made by petrel init. Every key: petrel recipe explain. What this recipe would do: petrel plan.',
    'model:',
    '  # A folder in the Hugging Face layout, or a name on the hub: org/name.',
    `  path: ${quoted(choices.model)}`,
    'data:',
    '  # JSONL, JSON or Parquet, a file or a list: docs/do/recipes.md, "Rows".',
    `  train_files: ${quoted(choices.train)}`,
    ...(choices.isGsm8k
      ? ['  # Rows with question and answer ("... #### 42"); the number is the ground truth.', '  format: gsm8k']
      : []),
    ...(choices.hasChatTemplate
      ? []
      : ['  # The model has no chat template: prompts are text.', '  chat_template: none']),
    '  # Prompts of one iteration.',
    `  train_batch_size: ${choices.prompts}`,
    '  # In tokens. A longer prompt is refused; filter_overlong_prompts: true leaves it out.',
    `  max_prompt_length: ${choices.promptTokens}`,
    `  max_response_length: ${choices.responseTokens}`,
    'rollout:',
    '  # Responses to each prompt; they are compared with each other.',
    '  n: 8',
    'actor:',
    '  # Prompts of one optimiser step; must divide train_batch_size.',
    `  ppo_mini_batch_size: ${choices.prompts}`,
    '  optim:',
    '    # The first thing to vary: too low learns nothing, too high collapses.',
    '    lr: 1e-5',
    'reward:',
    ...rewardLines(choices.reward),
    'trainer:',
    '  # Iterations.',
    '  total_training_steps: 20',
    '  # Iterations between checkpoints, and how many are kept.',
    '  save_freq: 10',
    '  max_actor_ckpt_to_keep: 2',
  ].join('\n')}\n`;
}

function rewardLines(reward: RecipeChoices['reward']): string[] {
  if (reward.type === 'builtin') return ['  # A built-in scorer: docs/do/scorers.md.', `  scorer: ${reward.name}`];
  if (reward.type === 'rows') return ["  # null: each row's data_source chooses its scorer.", '  scorer: null'];
  return [
    '  # Your scorer: compute_score(data_source, solution_str, ground_truth, extra_info).',
    `  custom_reward_function: { path: ${quoted(reward.path)} }`,
  ];
}

/** A JSON text is a YAML text. */
const quoted = (text: string): string => (/^[\w./@-]+$/.test(text) ? text : JSON.stringify(text));

/** Runs by itself, too: it scores one row. */
export const scorerText = `"""Scores one response. Try it: python3 scorer.py"""


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    """A number, or a dict with "score"; its other keys become columns of the sample."""
    right = solution_str.strip().endswith(str(ground_truth))
    return {"score": 1.0 if right else 0.0, "acc": right}


if __name__ == "__main__":
    row = {"data_source": "sums", "solution_str": "12+7=19", "ground_truth": "19", "extra_info": {"index": 0}}
    print(compute_score(**row))
`;

/** Sums in verl's layout, to be replaced. */
export function exampleRows(): string {
  const rows = Array.from({ length: 16 }, (_, index) => {
    const [a, b] = [10 + ((index * 7) % 40), 3 + ((index * 11) % 50)];
    return {
      data_source: 'sums',
      prompt: `${a}+${b}=`,
      reward_model: { style: 'rule', ground_truth: String(a + b) },
      extra_info: { index },
    };
  });
  return rows.map((row) => `${JSON.stringify(row)}\n`).join('');
}
