/**
 * Records of format 1, read as format 2. Format 1 knew one component: what is now in `components.actor` was in the
 * record itself. FORMAT.md in this folder lists the differences.
 */

type Fields = Readonly<Record<string, unknown>>;

/** Leaves records of other formats as they are, and everything that is no record: the schema refuses it. */
const fromFormat1 = (upgrade: (record: Fields) => Fields) => (stored: unknown) => {
  const record = stored as Fields | null;
  if (typeof record !== 'object' || record === null || record['format'] !== 1) return stored;
  return { ...upgrade(record), format: 2 };
};

/** Moves some fields of a record into its component `actor`. */
function moved(record: Fields, names: readonly string[], more: Fields = {}): Fields {
  const rest = Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name)));
  const actor = Object.fromEntries(names.filter((name) => name in record).map((name) => [name, record[name]]));
  return { ...rest, components: { actor: { ...actor, ...more } } };
}

/** Replaces the counters in some fields. */
function recounted(record: Fields, names: readonly string[]): Fields {
  const counted = names.filter((name) => name in record).map((name) => [name, countersOf1(record[name])]);
  return { ...record, ...Object.fromEntries(counted) };
}

function countersOf1(stored: unknown): unknown {
  if (typeof stored !== 'object' || stored === null) return stored;
  const { optimizerSteps, klCoef, ...rest } = stored as Fields;
  return { ...rest, optimizerSteps: { actor: optimizerSteps }, controllers: { klCoef } };
}

/** The counters inside a field, if the record has it. */
function withInner(record: Fields, name: string): Fields {
  const inner = record[name];
  if (typeof inner !== 'object' || inner === null) return record;
  return { ...record, [name]: recounted(inner as Fields, ['counters']) };
}

/** A run's own record, whose `origin` has counters. */
export const originOf1 = fromFormat1((record) => withInner(record, 'origin'));

export const termOf1 = fromFormat1(({ startWeights, ...record }) =>
  withInner(moved(record, ['profile'], { stateDigest: record['startState'], weightsDigest: startWeights }), 'base'),
);

export const batchOf1 = fromFormat1((record) =>
  record['decision'] === 'seal'
    ? record
    : recounted(moved(record, ['profile', 'loss', 'optimizer', 'learningRates']), ['before', 'after']),
);

export const updateOf1 = fromFormat1((record) =>
  record['outcome'] === 'seal'
    ? record
    : recounted(
        moved(record, ['weightsDigest', 'steps'], {
          stateDigest: record['stateDigest'],
          publications: { F32: record['weightsDigest'] },
        }),
        ['after'],
      ),
);

export const checkpointOf1 = fromFormat1(({ state, ...record }) =>
  moved(record, ['weightsDigest', 'shards', 'parameters'], {
    stateDigest: record['stateDigest'],
    steps: (state as Fields | undefined)?.['steps'],
  }),
);

export const publicationOf1 = fromFormat1(({ dtype, ...record }) => ({
  ...record,
  component: 'actor',
  dtypes: { weights: dtype },
}));

const batchOutputOf1 = (output: Fields): Fields =>
  recounted(moved(output, ['loss', 'optimizer', 'learningRates']), ['after']);

/** What older workers answered: the outputs of core/wire/jobs.ts. */
export const resultOf1 = fromFormat1((record) => {
  const output = record['output'] as Fields;
  if (record['stage'] === 'open')
    return { ...record, output: moved(output, ['weightsDigest', 'profile'], { stateDigest: output['stateDigest'] }) };
  if (record['stage'] === 'advantage') return { ...record, output: batchOutputOf1(output) };
  if (record['stage'] === 'update') return { ...record, output: updateOf1({ ...output, format: 1 }) };
  return record;
});
