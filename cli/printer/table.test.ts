import { describe, expect, it } from 'vitest';
import { renderTable } from './table.ts';

describe('a table', () => {
  it('has room for more rows than a call has for arguments: the metrics of a long run', () => {
    const rows = Array.from({ length: 200_000 }, (_, iteration) => ({ iteration }));
    const lines = renderTable(rows, [{ head: 'iteration', value: (row) => row.iteration }]).split('\n');
    expect(lines).toHaveLength(rows.length + 1);
    expect(lines.at(-1)).toBe('   199999');
  });
});
