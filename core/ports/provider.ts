/**
 * A provider of instances: a cloud. A provider has no memory. The request stands in the store before the provider gets
 * it, so a process that finds an unanswered launch may ask again.
 */
import type { Place } from '../fleet/types.ts';

/** How a provider starts an instance of a pool. Only the provider of this kind reads more of it. */
export interface ProviderMachine {
  /** The provider's word in fleet.yaml: `ec2`. */
  readonly kind: string;
  readonly region: string;
}

/** One call for equal instances at one place. */
export interface Launch {
  /**
   * A token of at most 64 characters. The same token never buys twice: a second call returns the instances of the
   * first.
   */
  readonly token: string;
  readonly place: Place;
  /** The most instances that are wanted; a cloud may give fewer. */
  readonly count: number;
  readonly machine: ProviderMachine;
  /** A script, at most 16 KB, without secrets. */
  readonly userData: string;
  /** Stack, pool, number of the launch, and expiry: what `list` returns. */
  readonly tags: InstanceTags;
}

export interface InstanceTags {
  /** Id of the stack. */
  readonly stack: string;
  readonly pool: string;
  /** Number of the launch decision of the pool. */
  readonly launch: number;
  /** ISO time after which the instance ends itself. */
  readonly expires: string;
}

export interface CloudInstance {
  readonly id: string;
  readonly type: string;
  readonly zone: string;
  readonly market: Place['market'];
  readonly state: 'pending' | 'running' | 'ending' | 'ended';
  /** The cloud's own word for why it ends or has ended: `Server.SpotInstanceTermination`. */
  readonly reason?: string;
  /** ISO time. */
  readonly launchedAt: string;
  readonly tags: InstanceTags;
  /** The cloud took it back: a spot instance. */
  readonly interrupted?: boolean;
}

/**
 * Why nothing was launched. `capacity`: nothing is free at this place now. `limit`: the account may not have more.
 * `configuration`: the pool's settings or the account's rights are wrong, and only a person can mend them.
 */
export interface LaunchRefusal {
  readonly kind: 'capacity' | 'limit' | 'configuration';
  /** The cloud's own word. */
  readonly code: string;
  readonly message: string;
}

export interface LaunchAnswer {
  readonly instances: readonly CloudInstance[];
  /** Why there are fewer than asked for; absent when there are all, or the cloud does not say. */
  readonly refused?: LaunchRefusal;
}

export interface SpotPrice {
  readonly type: string;
  readonly zone: string;
  readonly usdPerHour: number;
}

/**
 * Each call throws UnfitError when this process has no credentials, and each but `launch` when they do not allow it.
 */
export interface Provider {
  /** Throws RetryableError when the answer is not known (network, throttling): ask again with the same token. */
  launch(launch: Launch): Promise<LaunchAnswer>;
  /** Ends instances; those that do not exist any more count as ended. Throws RetryableError. */
  terminate(region: string, ids: readonly string[]): Promise<void>;
  /**
   * The instances of a stack, also those that have ended lately. May lack one that was launched some seconds ago.
   * Throws RetryableError.
   */
  list(region: string, stack: string): Promise<readonly CloudInstance[]>;
  /** Dollars per hour of spot instances at present; places without a price are left out. Throws RetryableError. */
  spotPrices(region: string, types: readonly string[]): Promise<readonly SpotPrice[]>;
  /**
   * Checks a pool's settings without buying: types, zones, image, subnets, and the rights to launch for this stack.
   * Throws InvalidInputError with the key of fleet.yaml in `where`, and RetryableError.
   */
  check(machine: ProviderMachine, types: readonly string[], zones: readonly string[], stack: string): Promise<void>;
}
