/** The doors of the docs and the order of their pages, as docs/README.md lists them, and the links below each page. */
import { posix } from 'node:path';

export interface Door {
  readonly name: string;
  readonly pages: readonly DoorPage[];
}

export interface DoorPage {
  /** The path from docs/. */
  readonly path: string;
  readonly title: string;
}

/** The first line of the links below a page. */
const rule = '\n---\n\n';

/** Reads the doors from the text of docs/README.md. Links that leave docs/ are no pages. */
export function doorsOf(index: string): Door[] {
  return [...index.matchAll(/^## (.+)\n([\s\S]*?)(?=^## |$(?![\s\S]))/gm)].map(([, name = '', text = '']) => ({
    name,
    pages: [...text.matchAll(/^(?:-|\d+\.) \[([^\]]+)\]\(((?:[a-z-]+\/)?[a-z0-9-]+\.md)\)/gm)].map(
      ([, title = '', path = '']) => ({
        title,
        path,
      }),
    ),
  }));
}

/** The text of a page with the links to the pages before and after it in its door. */
export function withLinks(text: string, path: string, doors: readonly Door[]): string {
  return `${withoutLinks(text)}${rule}${linksOf(path, doors)}\n`;
}

/** The text of a page without these links. */
export function withoutLinks(text: string): string {
  const at = text.lastIndexOf(rule);
  return at < 0 ? text : text.slice(0, at);
}

function linksOf(path: string, doors: readonly Door[]): string {
  const door = doors.find(({ pages }) => pages.some((page) => page.path === path));
  if (door === undefined) throw new Error(`docs/README.md names no page ${path}`);
  const at = door.pages.findIndex((page) => page.path === path);
  const link = (word: string, page: DoorPage | undefined) =>
    page === undefined ? [] : [`${word}: [${page.title}](${posix.relative(posix.dirname(path), page.path)})`];
  const up = `[${door.name}](${posix.relative(posix.dirname(path), 'README.md')}#${door.name.toLowerCase().replaceAll(' ', '-')})`;
  return [...link('Previous', door.pages[at - 1]), up, ...link('Next', door.pages[at + 1])].join(' ·\n');
}
