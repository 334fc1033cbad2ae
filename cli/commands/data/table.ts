/** `petrel data …`: a generator or a preparation is one entry here. */
import { ARITHMETIC_PRESETS, ARITHMETIC_SPLITS, PREPARED_SPLITS } from '../../../api/index.ts';
import type { CommandSpec } from '../../command.ts';

export const DATA_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'data arithmetic',
    doc: 'Make addition questions from a seed; training and validation never share one.',
    group: 'Recipes and data',
    options: [
      { flags: '--out <file>', doc: 'JSONL file to write', required: true },
      { flags: '--rows <n>', doc: 'how many', required: true },
      { flags: '--seed <n>', doc: 'which ones', default: '1' },
      { flags: '--split <split>', doc: 'side of the border', choices: ARITHMETIC_SPLITS, default: 'train' },
      {
        flags: '--preset <preset>',
        doc: 'question: a chat message in words; digits: 37+45=',
        choices: ARITHMETIC_PRESETS,
        default: 'question',
      },
      { flags: '--digits <n>', doc: 'digits of the operands, 1 to 4', default: '2' },
      { flags: '--sft', doc: 'add the column response' },
      { flags: '--careless <percent>', doc: 'share of the responses that forget every carry', default: '0' },
      { flags: '--data-source <name>', doc: 'label of the rows, which chooses the scorer', default: 'arithmetic' },
      { flags: '--exclude <file...>', doc: 'leave out the prompts of these JSONL files' },
    ],
    examples: [
      'petrel data arithmetic --out train.jsonl --rows 2000 --seed 1',
      'petrel data arithmetic --out val.jsonl --rows 400 --split validation',
    ],
    load: () => import('./arithmetic.ts'),
  },
  {
    name: 'data prepare',
    arguments: '<dataset> <paths...>',
    doc: 'Write rows of gsm8k or math (question or problem with a solution) as verl prepares them.',
    group: 'Recipes and data',
    options: [
      { flags: '--out <file>', doc: 'JSONL file to write; replaces nothing', required: true },
      { flags: '--split <split>', doc: 'which part this is', choices: PREPARED_SPLITS, default: 'train' },
    ],
    examples: [
      'petrel data prepare gsm8k train.jsonl --out gsm8k-train.jsonl',
      'petrel data prepare gsm8k test-00000-of-00001.parquet --split test --out gsm8k-test.jsonl',
      'petrel data prepare math MATH/train --out math-train.jsonl',
    ],
    load: () => import('./prepare.ts'),
  },
];
