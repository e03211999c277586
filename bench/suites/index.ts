export interface Suite {
  /** The folder in bench/suites that contains the folder of the suite. */
  readonly group: 'comparisons' | 'engines' | 'parts'
  /** What it measures, for the page of results. */
  readonly about: string
  /** The files of its folder, in the order in which they run. */
  readonly measurements: readonly string[]
}

export const SUITES: Readonly<Record<string, Suite>> = {
  uncontended: {
    group: 'comparisons',
    about: 'Lock and unlock of keys that nobody else wants, with the client that users have.',
    measurements: ['memory', 'durable', 'embedded'],
  },
  contended: {
    group: 'comparisons',
    about: '32 waiters for one key, each on its own connection; each holds it for 1 ms in turn.',
    measurements: ['drain', 'blocked'],
  },
  heartbeats: {
    group: 'comparisons',
    about: 'Keeping leases alive: how many per second, and what many live leases cost.',
    measurements: ['renewals', 'live', 'bytes'],
  },
  expiry: {
    group: 'comparisons',
    about: 'How late a lease ends that nobody renews, alone and when many end together.',
    measurements: ['lag', 'storm'],
  },
  failover: {
    group: 'comparisons',
    about:
      'From the death of a leader (kill -9) to the first write of the next one, with a ttl of 2 s.',
    measurements: ['takeover'],
  },
  loss: {
    group: 'comparisons',
    about:
      'How long a holder believes that it holds, with a ttl of 2 s. Longer than that is wrong.',
    measurements: ['frozen', 'stalled'],
  },
  growth: {
    group: 'comparisons',
    about: 'What one operation costs, by the number of leases.',
    measurements: ['kernel', 'server'],
  },
  restart: {
    group: 'comparisons',
    about: 'A server that is killed and restarted, with its leases on the disk.',
    measurements: ['killed'],
  },
  kernel: {
    group: 'parts',
    about: 'The state machine that memory, file and server share, without a network.',
    measurements: ['renewals', 'claims', 'client', 'memory', 'storm', 'lag', 'durable', 'restart'],
  },
  remote: {
    group: 'parts',
    about: 'What the network between a client and the server costs.',
    measurements: ['embedded', 'pairs', 'renewals', 'round-trip'],
  },
  redis: {
    group: 'engines',
    about:
      'The store in Redis, against other lock libraries and hand-written locks on the same Redis.',
    measurements: ['pairs', 'drain', 'expiry'],
  },
  server: {
    group: 'parts',
    about:
      'The server, against engines that do part of the same work, and against physical limits.',
    measurements: ['redis', 'etcd', '../remote/renewals', 'sequential', 'connections', 'expiry'],
  },
  postgres: {
    group: 'engines',
    about: 'The store in PostgreSQL, against the minimum for a lock in a table.',
    measurements: ['pairs', 'heartbeats'],
  },
  zookeeper: {
    group: 'engines',
    about: 'The store on a log in ZooKeeper, against the minimum for a lock in a node.',
    measurements: ['pairs'],
  },
  etcd: {
    group: 'engines',
    about:
      'The store on a log in etcd, against its Lock service, its own leases, and the minimum for a lock in it.',
    measurements: ['pairs', 'hand-over', 'expiry', 'storm', 'renewals', 'join', 'servers'],
  },
  logs: {
    group: 'engines',
    about:
      "Lock and unlock by our client on a replica of an engine's log, against the engine's own locks, and against our native store if there is one.",
    measurements: ['nats', 'postgres', 'redis', 'azure', 'forms'],
  },
  adaptive: {
    group: 'parts',
    about: 'A learnt ttl, against the best fixed one.',
    measurements: ['ttl'],
  },
  http: {
    group: 'parts',
    about: 'The HTTP API, against a server that does nothing.',
    measurements: ['lock'],
  },
  dns: {
    group: 'parts',
    about: 'Answers of the DNS gateway, against a UDP socket that sends every datagram back.',
    measurements: ['answers'],
  },
  xds: {
    group: 'parts',
    about: 'How soon 1,000 xDS streams, each on its own connection, know of a registration.',
    measurements: ['streams'],
  },
}
