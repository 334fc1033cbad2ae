import { describe, it } from 'vitest';
import { startVersity, versityMissing } from '../s3-servers.ts';
import { s3Contract } from './s3.ts';

const missing = versityMissing();
if (missing === undefined) s3Contract('versitygw', startVersity);
else describe('versitygw', () => it.skip(missing, () => {}));
