import type { Guarantees, Limits } from '../../port/index.ts'

/** How late etcd expires a lease when it is not busy with thousands: it looks every half second. */
const LATENESS_MS = 1500

/** For so long an answered request is remembered at least, and how an ended lease ended. */
export const REQUESTS_MS = 120_000
export const ENDS_MS = 7_200_000

export function etcdGuarantees({ ttlMin, ttlMax, requests }: Limits): Guarantees {
  return {
    engine: 'etcd',
    inProcess: false,
    durability: 'engine',
    tokensSurvive: 'failover',
    ttl: { min: ttlMin, max: ttlMax, step: 1000 },
    expiryLateness: LATENESS_MS,
    childLeases: false,
    requestsRemembered: requests,
    eventsKept: 0,
    notes: [
      'An answer is on the disks of a majority of the members; tokens are etcd revisions and never go back.',
      'etcd counts ttl and grace together in whole seconds, rounded up, and 2 s at least.',
      'A new leader, or a restart, gives every lease its full ttl again, and a limited life its full length.',
      'etcd expires at most 1,000 leases a second; beyond that an expiry is as late as those before it are many.',
      'A lease under a parent is refused: etcd cannot end leases together by itself.',
      'The end of a limited life, or of a break, is carried out by the processes that know of it; where all have died, etcd ends the lease one ttl and grace after its last renewal.',
      'A request is remembered for a minute at least, however many there are; a copy that comes later is refused.',
      'How a lease was ended by force is remembered for an hour at least; after that it is said to have expired.',
      'Events and the history of a key are kept until etcd is compacted; an expiry enters the history when somebody sees it.',
      'etcd has no clock to be asked: times that are shown are those of the processes that wrote them.',
      'A claim that was made through another process than the one that watches its lease is noticed there within 10 s.',
      'At most 100 claims are removed by one call of revoke by prefix or key.',
    ],
  }
}
