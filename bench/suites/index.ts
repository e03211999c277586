export interface Suite {
  /** What it measures, for the page of results. */
  readonly about: string
  /** The files of its folder, in the order in which they run. */
  readonly measurements: readonly string[]
}

export const SUITES: Readonly<Record<string, Suite>> = {
  uncontended: {
    about: 'Lock and unlock of keys that nobody else wants, with the client that users have.',
    measurements: ['memory', 'durable', 'embedded'],
  },
  contended: {
    about: '32 waiters for one key, each on its own connection; each holds it for 1 ms in turn.',
    measurements: ['drain', 'blocked'],
  },
  heartbeats: {
    about: 'Keeping leases alive: how many per second, and what many live leases cost.',
    measurements: ['renewals', 'live', 'bytes'],
  },
  expiry: {
    about: 'How late a lease ends that nobody renews, alone and when many end together.',
    measurements: ['lag', 'storm'],
  },
  failover: {
    about:
      'From the death of a leader (kill -9) to the first write of the next one, with a ttl of 2 s.',
    measurements: ['takeover'],
  },
  loss: {
    about:
      'How long a holder believes that it holds, with a ttl of 2 s. Longer than that is wrong.',
    measurements: ['frozen', 'stalled'],
  },
  growth: {
    about: 'What one operation costs, by the number of leases.',
    measurements: ['kernel', 'server'],
  },
  restart: {
    about: 'A server that is killed and restarted, with its leases on the disk.',
    measurements: ['killed'],
  },
  kernel: {
    about: 'The state machine that memory, file and server share, without a network.',
    measurements: ['renewals', 'claims', 'client', 'memory', 'storm', 'lag', 'durable', 'restart'],
  },
  remote: {
    about: 'What the network between a client and the server costs.',
    measurements: ['embedded', 'pairs', 'renewals', 'round-trip'],
  },
  redis: {
    about:
      'The store in Redis, against other lock libraries and hand-written locks on the same Redis.',
    measurements: ['pairs', 'drain', 'expiry'],
  },
  server: {
    about:
      'The server, against engines that do part of the same work, and against physical limits.',
    measurements: ['redis', 'etcd', '../remote/renewals', 'sequential', 'connections', 'expiry'],
  },
  postgres: {
    about: 'The store in PostgreSQL, against the minimum for a lock in a table.',
    measurements: ['pairs', 'heartbeats'],
  },
  zookeeper: {
    about: 'The store on a log in ZooKeeper, against the minimum for a lock in a node.',
    measurements: ['pairs'],
  },
  etcd: {
    about:
      'The store on a log in etcd, against its Lock service, its own leases, and the minimum for a lock in it.',
    measurements: ['pairs', 'hand-over', 'expiry', 'storm', 'renewals', 'join', 'servers'],
  },
  logs: {
    about:
      "Lock and unlock by our client on a replica of an engine's log, against the engine's own locks, and against our native store if there is one.",
    measurements: ['nats', 'postgres', 'redis', 'azure', 'forms'],
  },
  adaptive: {
    about: 'A learnt ttl, against the best fixed one.',
    measurements: ['ttl'],
  },
  http: {
    about: 'The HTTP API, against a server that does nothing.',
    measurements: ['lock'],
  },
}
