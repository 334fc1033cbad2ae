/**
 * Which names in a store are petrel's. A store may be in a folder with other files of its user. Every name that is not
 * listed here is the user's and is never removed.
 */
const digest = '[0-9a-f]{64}';
const numbered = String.raw`\d+\.json`;

/** Folders in `runs/<run id>/`, and the names of their objects. */
const inRun: readonly (readonly [folder: string, object: string])[] = [
  ['', String.raw`(?:run|removed)\.json`],
  ['revisions/', numbered],
  ['status/', numbered],
  ['retention/', numbered],
  [String.raw`terms/\d+/`, String.raw`term\.json`],
  [String.raw`terms/\d+/\d+/`, String.raw`(?:batch|update|eval)\.json`],
  ['results/', String.raw`[\w-]+\.json`],
  ['pins/', String.raw`[\w-]+\.json`],
  ['checkpoints/', String.raw`\d+-${digest}\.json`],
  ['weights/', String.raw`${digest}\.json`],
  ['blobs/', digest],
  ['columns/', String.raw`\d+-\d+-\d+\.json`],
  ['logs/', '[^/]+'],
];

const layout: readonly (readonly [folder: string, object: string])[] = [
  ...inRun.map(([folder, object]) => [`runs/[^/]+/${folder}`, object] as const),
  ['schedules/[^/]+/records/', numbered],
  ['schedules/[^/]+/firings/', numbered],
  ['schedules/[^/]+/blobs/', digest],
  [`models/${digest}/`, '[^/]+'],
  [`datasets/${digest}/`, '[^/]+'],
  ['janitor/', numbered],
  ['claims/', String.raw`key\.json`],
  ['fleet/[^/]+/wanted/', numbered],
  [String.raw`fleet/[^/]+/launches/[^/]+/\d+/`, String.raw`(?:decision|answer)\.json`],
  ['fleet/[^/]+/instances/[^/]+/', String.raw`(?:joined|ready|leaving|ended)\.json`],
  ['fleet/[^/]+/usage/[^/]+/', String.raw`[\w-]+\.json`],
  ['stacks/[^/]+/claims/', numbered],
  ['stacks/[^/]+/driven/[^/]+/', String.raw`[0-9a-f]{16}\.json`],
  ['builds/', String.raw`${digest}\.json`],
  ['builds/files/', digest],
  ['probe/', '[0-9a-f]{16}'],
];

/** The top folders of a store. */
export const topFolders = [
  'runs/',
  'schedules/',
  'models/',
  'datasets/',
  'janitor/',
  'claims/',
  'builds/',
  'fleet/',
  'stacks/',
  'probe/',
] as const;

const oneOf = (patterns: readonly string[]) => new RegExp(`^(?:${patterns.join('|')})$`);
const ownKey = oneOf(layout.map(([folder, object]) => folder + object));
const ownFolder = oneOf(layout.map(([folder]) => folder));
const inputFolder = oneOf([`models/${digest}/`, `datasets/${digest}/`]);

/** Could petrel have written an object with this key? */
export const isOwnKey = (key: string): boolean => ownKey.test(key);

/** Does petrel write objects directly into this folder? The key ends with "/". */
export const isOwnFolder = (folder: string): boolean => ownFolder.test(folder);

/** `models/<digest>/` or `datasets/<digest>/`. */
export const isInputFolder = (folder: string): boolean => inputFolder.test(folder);

/** Objects that retention may remove from an existing run; never a record. */
export const retainedKeys = {
  blob: new RegExp(`^runs/[^/]+/blobs/${digest}$`),
  checkpoint: new RegExp(String.raw`^runs/[^/]+/checkpoints/\d+-${digest}\.json$`),
  blobOrManifest: new RegExp(
    String.raw`^runs/[^/]+/(?:blobs/${digest}|weights/${digest}\.json|checkpoints/\d+-${digest}\.json)$`,
  ),
} as const;
