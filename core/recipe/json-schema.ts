/** The recipe as JSON Schema (draft 7), for editors. */
import { z } from 'zod';
import { keyDocs, sectionDocs } from './key.ts';
import { recipeSchema } from './schema.ts';

/** Descriptions include unit and change class, because editors show nothing else. */
export function recipeJsonSchema(): Readonly<Record<string, unknown>> {
  const schema = z.toJSONSchema(recipeSchema, {
    target: 'draft-7',
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const description = describe(zodSchema as unknown as z.ZodType);
      if (description !== undefined) jsonSchema.description = description;
    },
  });
  const properties = { extends: EXTENDS, ...schema.properties };
  return { ...schema, title: 'petrel recipe', properties, required: ['model', 'data'] };
}

const EXTENDS = {
  type: 'string',
  description:
    'Path of another recipe, relative to this one. Its values apply to the keys that this recipe does not set.',
};

function describe(schema: z.ZodType): string | undefined {
  const section = sectionDocs.get(schema);
  if (section !== undefined) return section.doc;
  const doc = keyDocs.get(schema);
  if (doc === undefined) return undefined;
  const unit = doc.unit === undefined ? '' : ` [${doc.unit}]`;
  return `${doc.doc}${unit} (on resume: ${doc.change})`;
}
