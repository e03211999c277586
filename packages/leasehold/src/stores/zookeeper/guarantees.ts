import type { Guarantees, Limits } from '../../port/index.ts'

/** What is promised with an ensemble whose shortest session is `shortest` milliseconds. */
export function zookeeperGuarantees(limits: Limits, shortest: number): Guarantees {
  return {
    engine: 'zookeeper',
    inProcess: false,
    durability: 'engine',
    tokensSurvive: 'failover',
    ttl: { min: limits.ttlMin, max: limits.ttlMax, step: 0 },
    // Rounding to a tick here and at the leader, one ping, and the time between two reports to it.
    expiryLateness: 2 * shortest,
    childLeases: true,
    requestsRemembered: limits.requests,
    eventsKept: limits.events,
    notes: [
      'An answer is on the disks of a majority of the ensemble, unless it runs with forceSync=no.',
      'While the process that granted or last renewed a lease lives, its own monotonic clock ends it; when that process is gone, the end of its ZooKeeper session does, and whoever wants the key, waits for it or watches it carries it out.',
      'A lease that nobody wants or watches after its process died is found by a search that may take an hour.',
      'Where ttl and grace are longer than the ensemble grants a session (maxSessionTimeout, 20 ticks by default), the rest is waited for by whoever sees the session ended, counted from then.',
      'A new leader gives every session, and so every lease, its full time again.',
      'A family of leases whose end does not fit into one transaction of 1 MB ends from below, in several.',
      'When a lease that another process keeps will end is not known here: `until` is then the latest time possible.',
      'A shared claim says that it has held since it was made, also where it waited at first.',
      'A watch on a lease hears of claims that were made through the same store; of others it hears when it is opened.',
      'A long reading is taken again while it is being changed under, and after 16 tries leaves out claims that came or went meanwhile.',
      'The history of a key that nobody claims is forgotten when the server removes its node, after a minute or so.',
    ],
  }
}
