/** The teacher of a distillation: its tokens must be those of the model that it teaches. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import { sha256 } from '../../log/objects/digest.ts';
import type { Check } from './checks.ts';

export const teacherCheck: Check = {
  name: 'teacher',
  look: async (inputs) => {
    const teacher = await inputs.teacher();
    if (teacher === undefined) return undefined;
    const { tokenizerFolder } = await inputs.model();
    const [ours, theirs] = await Promise.all([tokenizerOf(tokenizerFolder), tokenizerOf(teacher.folder)]);
    const path = inputs.recipe.distillation.teacher_model.model_path;
    if (ours !== theirs) {
      throw new InvalidInputError(
        `the teacher ${path} has another tokenizer than the model: SHA-256 ${theirs.slice(0, 12)} of its tokenizer.json, expected ${ours.slice(0, 12)}`,
        {
          where: 'distillation.teacher_model.model_path',
          hint: 'a teacher judges tokens, so both need the same tokenizer.json; choose a teacher of the same family',
        },
      );
    }
    requireVocabulary(
      inputs.recipe.distillation.distillation_loss,
      teacher.facts.vocab,
      (await inputs.modelFacts()).vocab,
    );
    return { detail: `${path}: the same tokenizer` };
  },
};

/** The teacher's most probable tokens must be tokens of the student. */
function requireVocabulary(
  { loss_mode: mode, topk }: { readonly loss_mode: string; readonly topk: number },
  teacher: number,
  student: number,
): void {
  if (mode !== 'forward_kl_topk') return;
  const where = 'distillation.distillation_loss.topk';
  if (topk > Math.min(teacher, student))
    throw new InvalidInputError(`the ${topk} most probable of ${Math.min(teacher, student)} tokens were asked for`, {
      where,
      hint: `${where}=${Math.min(teacher, student)} takes all`,
    });
  if (teacher > student)
    throw new InvalidInputError(
      `the teacher gives probabilities to ${teacher} tokens, the model to ${student}: a token of the teacher may not be one of the model`,
      { where: 'distillation.distillation_loss.loss_mode', hint: 'use an estimator: k3' },
    );
}

async function tokenizerOf(folder: string): Promise<string> {
  return sha256(await readFile(join(folder, 'tokenizer.json')));
}
