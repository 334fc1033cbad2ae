/**
 * What the workers of a machine that has joined may do in an S3 store, as a policy of AWS. They read what jobs name,
 * and create results and blobs. A trainer also reads the log of a run, which it applies again, and creates weights and
 * checkpoints. They never decide, delete, or see the key that proves claims (log/objects/claim-key.ts).
 */
import type { Role } from '../../../core/roles.ts';
import { usualRoles } from '../../../core/wire/join.ts';

export interface Statement {
  readonly Sid: string;
  readonly Effect: 'Allow' | 'Deny';
  /** Absent in a policy of an identity. */
  readonly Principal?: { readonly AWS: readonly string[] };
  readonly Action: readonly string[];
  readonly Resource: readonly string[];
  readonly Condition?: { readonly StringEquals: Readonly<Record<string, string>> };
}

export interface PolicyDocument {
  readonly Version: '2012-10-17';
  readonly Statement: readonly Statement[];
}

export interface PolicyPlace {
  readonly bucket: string;
  /** Empty, or ends in "/". */
  readonly prefix: string;
  /**
   * Principal of the policy of a bucket: an ARN, or the access key of a server that has no ARNs. Absent: the policy is
   * attached to an identity.
   */
  readonly principal?: string | undefined;
  /** What the machine's workers do; default: they do not train. */
  readonly roles?: readonly Role[] | undefined;
}

/** What jobs name: models, rows, the build, and blobs, weights and results of runs. */
const read = ['models/*', 'datasets/*', 'builds/*', 'runs/*/blobs/*', 'runs/*/weights/*', 'runs/*/results/*'];
const create = ['runs/*/blobs/*', 'runs/*/results/*'];
/** A trainer reads a run's decisions, and writes what it has computed. */
const trainerReads = ['runs/*/run.json', 'runs/*/status/*', 'runs/*/terms/*', 'runs/*/checkpoints/*'];
const trainerCreates = ['runs/*/weights/*', 'runs/*/checkpoints/*'];
/**
 * Decisions of the control process and what it derives from them, the key with which it checks results, and what it
 * buys and drives.
 */
const decisions = ['terms', 'revisions', 'status', 'retention', 'columns'].map((folder) => `runs/*/${folder}/*`);
const claims = ['claims/*', 'fleet/*', 'stacks/*'];

/**
 * S3 says "forbidden" instead of "missing" to who may not list, so workers may list the bucket: they see the names of
 * its objects. The denials hold also where another policy allows more.
 */
export function storePolicy({ bucket, prefix, principal, roles = usualRoles }: PolicyPlace): PolicyDocument {
  const trains = roles.includes('trainer');
  const objects = (keys: readonly string[]) => keys.map((key) => `arn:aws:s3:::${bucket}/${prefix}${key}`);
  const statement = (
    Sid: string,
    Effect: Statement['Effect'],
    Action: readonly string[],
    Resource: readonly string[],
  ): Statement => ({
    Sid,
    Effect,
    ...(principal !== undefined && { Principal: { AWS: [principal] } }),
    Action,
    Resource,
  });
  return {
    Version: '2012-10-17',
    Statement: [
      statement('List', 'Allow', ['s3:ListBucket'], [`arn:aws:s3:::${bucket}`]),
      statement('Read', 'Allow', ['s3:GetObject'], objects([...read, ...(trains ? trainerReads : [])])),
      statement(
        'Create',
        'Allow',
        ['s3:PutObject', 's3:AbortMultipartUpload', 's3:ListMultipartUploadParts'],
        objects([...create, ...(trains ? trainerCreates : [])]),
      ),
      statement(
        'NeverDecide',
        'Deny',
        ['s3:PutObject'],
        objects([...decisions, ...(trains ? [] : ['runs/*/checkpoints/*']), 'builds/*', 'models/*', 'datasets/*']),
      ),
      statement('NeverDelete', 'Deny', ['s3:DeleteObject'], objects(['*'])),
      statement('NeverProve', 'Deny', ['s3:GetObject', 's3:PutObject'], objects(claims)),
    ],
  };
}
