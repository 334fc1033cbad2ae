/** The table of filters: one entry, one filter. */
import type { Filter } from './filters/filter.ts';
import { listFilters } from './filters/lists.ts';
import { numberFilters } from './filters/numbers.ts';
import { textFilters } from './filters/text-filters.ts';

export const filters: ReadonlyMap<string, Filter> = new Map(
  Object.entries({ ...textFilters, ...listFilters, ...numberFilters }),
);
