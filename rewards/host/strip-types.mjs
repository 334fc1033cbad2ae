/**
 * `node --import strip-types.mjs …`: lets Node 20 load TypeScript modules by removing their types. Plain JavaScript.
 */
import { register } from 'node:module';

register('./strip-types-hooks.mjs', import.meta.url);
