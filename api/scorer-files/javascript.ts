/**
 * The files that a scorer in TypeScript or JavaScript imports: those of its own folder, one by one, and whole packages,
 * as they are installed in its `node_modules`. What is imported only for its types does not count.
 */
import { readdir, readFile, realpath } from 'node:fs/promises';
import { createRequire, isBuiltin } from 'node:module';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import { pathExists } from '../../rewards/host/path-exists.ts';

interface Import {
  readonly specifier: string;
  /** A top-level `import` or `export … from`: without it the module cannot be loaded. */
  readonly needed: boolean;
  readonly require: boolean;
}

/**
 * Gathers the files of a scorer, by path from the scorer's folder. @throws InvalidInputError with the file and line of
 * an import that is not there.
 */
export async function filesOfJavaScript(entry: string): Promise<Map<string, Uint8Array>> {
  const found = new Found(dirname(entry));
  await found.follow(entry);
  return found.files;
}

class Found {
  readonly files = new Map<string, Uint8Array>();
  readonly #root: string;
  readonly #seen = new Set<string>();
  /** Folder of each package, by name. */
  readonly #packages = new Map<string, string>();

  constructor(root: string) {
    this.#root = root;
  }

  async follow(path: string): Promise<void> {
    if (this.#seen.has(path)) return;
    const isEntry = this.#seen.size === 0;
    this.#seen.add(path);
    const bytes = await readFile(path);
    if (!isEntry) this.files.set(this.#named(path), bytes);
    if (!/\.[cm]?[jt]s$/.test(path)) return;
    const source = bytes.toString('utf8');
    for (const one of await importsOf(source, path)) {
      const where = `./${relative(this.#root, path)}:${lineOf(source, one.specifier)}`;
      if (/^\.{1,2}\//.test(one.specifier)) await this.#file(path, one, where);
      else if (!isBuiltin(one.specifier) && !isAddress(one.specifier)) await this.#package(path, one, where);
    }
  }

  async #file(from: string, { specifier, needed, require }: Import, where: string): Promise<void> {
    const path = require ? required(from, specifier) : resolve(dirname(from), specifier);
    if (path === undefined || !(await pathExists(path))) {
      if (!needed) return;
      throw new InvalidInputError(`the scorer imports ${specifier}, and there is no such file`, {
        where,
        hint: 'an import names the whole file, with its ending: ./helper.ts',
      });
    }
    if (!`${path}${sep}`.startsWith(`${this.#root}${sep}`)) {
      if (!needed) return;
      throw new InvalidInputError(`the scorer imports ${specifier}, which is not in its folder`, {
        where,
        hint: 'put the file beside the scorer, or into a folder there',
      });
    }
    await this.follow(path);
  }

  async #package(from: string, { specifier, needed }: Import, where: string): Promise<void> {
    const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
    const folder = await packageFolder(dirname(from), name);
    if (folder !== undefined) return this.#wholePackage(name, folder, where);
    if (!needed) return;
    throw new InvalidInputError(`the scorer imports ${specifier}, and no package ${name} is installed beside it`, {
      where,
      hint: `npm install ${name} in the scorer's folder`,
    });
  }

  /** Adds a package with the packages that it needs. */
  async #wholePackage(name: string, folder: string, where: string): Promise<void> {
    const known = this.#packages.get(name);
    if (known === folder) return;
    if (known !== undefined)
      throw new InvalidInputError(`the scorer's packages need two versions of ${name}: ${known} and ${folder}`, {
        where,
      });
    this.#packages.set(name, folder);
    await this.#copy(folder, `node_modules/${name}`, where);
    const text = await readFile(join(folder, 'package.json'), 'utf8');
    const { dependencies, optionalDependencies, peerDependencies } = JSON.parse(text) as Record<string, object>;
    for (const needed of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
      const inside = await packageFolder(folder, needed);
      if (inside?.startsWith(`${folder}${sep}`)) continue; // it was copied with the package
      if (inside !== undefined) await this.#wholePackage(needed, inside, where);
      else if (dependencies !== undefined && needed in dependencies && !(needed in { ...optionalDependencies }))
        throw new InvalidInputError(
          `the package ${name}, which the scorer imports, needs ${needed}, which is not installed`,
          {
            where,
            hint: "npm install in the scorer's folder",
          },
        );
    }
  }

  async #copy(folder: string, to: string, where: string): Promise<void> {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory() && entry.name !== '.bin') await this.#copy(path, `${to}/${entry.name}`, where);
      if (!entry.isFile() || /\.(map|d\.[cm]?ts)$/.test(entry.name)) continue;
      if (entry.name.endsWith('.node'))
        throw new InvalidInputError(`the package of ${path} is built for this machine, so it cannot travel to others`, {
          where,
          hint: 'a scorer of your own may use packages in JavaScript',
        });
      this.files.set(`${to}/${entry.name}`, await readFile(path));
    }
  }

  #named(path: string): string {
    return relative(this.#root, path).split(sep).join('/');
  }
}

/** A package's real folder: the nearest `node_modules` that has it. */
async function packageFolder(from: string, name: string): Promise<string | undefined> {
  for (let folder = from; ; folder = dirname(folder)) {
    const path = join(folder, 'node_modules', name);
    if (basename(folder) !== 'node_modules' && (await pathExists(join(path, 'package.json')))) return realpath(path);
    if (dirname(folder) === folder) return undefined;
  }
}

function required(from: string, specifier: string): string | undefined {
  try {
    return createRequire(from).resolve(specifier);
  } catch {
    return undefined; // the caller says that there is no such file, where that matters
  }
}

/**
 * Imports of the JavaScript that runs, without types. There are none when the syntax is wrong; loading the module says
 * where.
 */
async function importsOf(source: string, path: string): Promise<Import[]> {
  const { parse, transform } = await import('@swc/core');
  const isModule = !path.endsWith('.cjs');
  const plain = { swcrc: false, configFile: false, isModule } as const;
  const syntax = /\.m?ts$/.test(path) ? 'typescript' : 'ecmascript';
  try {
    const { code } = await transform(source, { ...plain, jsc: { target: 'es2022', parser: { syntax } } });
    return importsIn(await parse(code, { syntax: 'ecmascript', target: 'es2022', script: !isModule }));
  } catch {
    return [];
  }
}

/** Finds the imports in a syntax tree of swc. */
function importsIn(node: unknown): Import[] {
  if (typeof node !== 'object' || node === null) return [];
  if (Array.isArray(node)) return node.flatMap(importsIn);
  const { type, source, callee, arguments: given } = node as Readonly<Record<string, unknown>>;
  const inner = Object.values(node).flatMap(importsIn);
  if (/^(Import|ExportNamed|ExportAll)Declaration$/.test(String(type))) {
    const specifier = textOf(source);
    return specifier === undefined ? inner : [{ specifier, needed: true, require: false }];
  }
  const called = callee as { readonly type?: string; readonly value?: string } | undefined;
  if (type !== 'CallExpression' || !Array.isArray(given)) return inner;
  const specifier = textOf((given[0] as { readonly expression?: unknown } | undefined)?.expression);
  const require = called?.type === 'Identifier' && called.value === 'require';
  if (specifier === undefined || (called?.type !== 'Import' && !require)) return inner;
  return [...inner, { specifier, needed: false, require }];
}

function textOf(node: unknown): string | undefined {
  const { type, value } = (node ?? {}) as { readonly type?: string; readonly value?: unknown };
  return type === 'StringLiteral' && typeof value === 'string' ? value : undefined;
}

/** Is it a whole path, or a URL? It means the same on every machine, or nothing; petrel leaves it as it is. */
const isAddress = (specifier: string): boolean => specifier.startsWith('/') || /^[a-z]+:/.test(specifier);

/** Number of the first line that has the specifier in quotes. */
function lineOf(source: string, specifier: string): number {
  const quoted = [`'${specifier}'`, `"${specifier}"`];
  return source.split('\n').findIndex((line) => quoted.some((text) => line.includes(text))) + 1;
}
