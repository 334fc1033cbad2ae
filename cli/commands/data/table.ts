/** `petrel data …`: one generator is one entry here and one module. */
import { PRESETS, SPLITS } from '../../../api/data/presets.ts';
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
      { flags: '--split <split>', doc: 'side of the border', choices: SPLITS, default: 'train' },
      {
        flags: '--preset <preset>',
        doc: 'question: a chat message in words; digits: 37+45=',
        choices: PRESETS,
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
];
