// @module-tag long
import { startSeaweed } from '../s3-servers.ts';
import { s3Contract } from './s3.ts';

s3Contract('SeaweedFS', startSeaweed);
