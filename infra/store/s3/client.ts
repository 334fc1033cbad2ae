/** The S3 client: endpoint, region and credentials from the SDK's usual sources; petrel's own retries and timeouts. */
import { S3Client } from '@aws-sdk/client-s3';
import { InvalidInputError } from '../../../core/errors.ts';
import { outboundAgents } from '../../outbound/agents.ts';
import { usualPatience } from './patience.ts';
import type { Patience } from './patience.ts';

export interface S3Connection {
  readonly client: S3Client;
  /** undefined: AWS itself. */
  readonly endpoint: string | undefined;
  readonly patience: Patience;
}

/** Parallel connections: a few large transfers, each in parallel parts, and some records. */
const maxSockets = 64;
const connectMs = 5_000;

let shared: Promise<S3Connection> | undefined;

/** One client per process: it holds the connections and the credentials. */
export function sharedS3(): Promise<S3Connection> {
  shared ??= connectS3();
  shared.catch(() => (shared = undefined));
  return shared;
}

/**
 * A client with its own connections. `endpoint` overrides the environment's. Throws InvalidInputError without a region.
 */
export async function connectS3({
  endpoint,
  patience = usualPatience,
}: {
  readonly endpoint?: string;
  readonly patience?: Patience;
} = {}): Promise<S3Connection> {
  // the pinned SDK version runs on this Node
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';
  const usual = await usualPlaces();
  const at = endpoint ?? usual.endpoint;
  const region = usual.region ?? (at === undefined ? undefined : 'us-east-1');
  if (region === undefined) {
    throw new InvalidInputError('no region is set for the S3 store', {
      hint: 'Set AWS_REGION, or AWS_PROFILE to a profile with a region; AWS_ENDPOINT_URL for a server of your own',
    });
  }
  const client = new S3Client({
    region,
    ...(at === undefined ? {} : { endpoint: at, forcePathStyle: true }),
    followRegionRedirects: true,
    maxAttempts: 1,
    requestHandler: {
      ...outboundAgents({ keepAlive: true, maxSockets }),
      connectionTimeout: connectMs,
      socketTimeout: patience.idleMs,
      requestTimeout: patience.replyMs,
      throwOnRequestTimeout: true,
      socketAcquisitionWarningTimeout: patience.replyMs,
    },
  });
  return { client, endpoint: at, patience };
}

/** AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION and the profile's, as the SDK itself reads them. */
async function usualPlaces(): Promise<{ readonly endpoint: string | undefined; readonly region: string | undefined }> {
  const plain = new S3Client({});
  try {
    // The SDK checks this before each request, but petrel must know earlier whether the bucket goes into the path.
    const { serviceConfiguredEndpoint } = plain.config as {
      readonly serviceConfiguredEndpoint?: () => Promise<string | undefined>;
    };
    return {
      endpoint: await serviceConfiguredEndpoint?.(),
      region: await plain.config.region().catch(() => undefined),
    };
  } finally {
    plain.destroy();
  }
}
