/**
 * The interruption notice of a spot instance, from the machine's own metadata service (IMDSv2). `spot/instance-action`
 * is absent until EC2 decides to interrupt the machine. Then it gives the action and its time, usually two minutes
 * ahead.
 */
import { z } from 'zod';
import { linkLocal, MetadataService } from './ec2-metadata.ts';
import type { NoticeWatch } from './notice.ts';

const instanceAction = z.object({ action: z.string(), time: z.string() });

export interface Ec2NoticeOptions {
  readonly endpoint?: string | undefined;
  /** The notice comes two minutes ahead, and EC2 asks clients not to poll more often than needed. */
  readonly pollMs?: number;
  readonly now?: () => number;
  /** Called once when EC2 recommends to rebalance: an interruption is likely, often minutes before its notice. */
  readonly onRebalance?: (() => void) | undefined;
  /** Receives a line when the service does not answer properly, once per reason. */
  readonly log?: (line: string) => void;
}

export function ec2Notice({
  endpoint = linkLocal,
  pollMs = 2_000,
  now = Date.now,
  onRebalance,
  log = () => {},
}: Ec2NoticeOptions = {}): NoticeWatch {
  return (onNotice) => {
    const service = new MetadataService(endpoint);
    let timer: NodeJS.Timeout | undefined;
    let ended = false;
    let trouble: string | undefined;
    let tell = onRebalance;
    const look = async (): Promise<void> => {
      try {
        const text = await service.get('/latest/meta-data/spot/instance-action');
        const action = text === undefined ? undefined : instanceAction.parse(JSON.parse(text));
        if (tell !== undefined && (await service.get('/latest/meta-data/events/recommendations/rebalance'))) {
          tell();
          tell = undefined;
        }
        trouble = undefined;
        if (action !== undefined && !ended) {
          const { time } = action;
          return onNotice({
            reason: `EC2 will ${action.action} this machine at ${time}`,
            graceMs: Math.max(0, Date.parse(time) - now()),
          });
        }
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error);
        if (text !== trouble) log(`${endpoint} does not say whether this machine will be interrupted: ${text}`);
        trouble = text;
      }
      if (!ended) timer = setTimeout(() => void look(), pollMs);
    };
    void look();
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  };
}
