/**
 * Modules whose names programs of these data sets use without importing them; runner.py has the same list (verl, APPS).
 */
const starred = [
  ...['string', 're', 'datetime', 'collections', 'heapq', 'bisect', 'copy', 'math', 'random', 'statistics'],
  ...['itertools', 'functools', 'operator', 'io', 'sys', 'json', 'builtins', 'typing'],
];

/** Python lines that a program can follow. */
export const preamble = [
  ...starred.map((name) => `from ${name} import *`),
  ...starred.slice(0, -2).map((name) => `import ${name}`),
].join('\n');
