export interface Suite {
  /** What it answers, for the page. */
  readonly about: string
  /** The files of its folder, in the order in which they are run. */
  readonly measurements: readonly string[]
}

export const SUITES: Readonly<Record<string, Suite>> = {
  uncontended: {
    about: 'Lock and unlock of keys that nobody else wants, by the client as a user has it.',
    measurements: ['memory', 'durable', 'embedded'],
  },
  contended: {
    about:
      '32 who wait for one key, each in a connection of its own, and hold it for 1 ms in turn.',
    measurements: ['drain', 'blocked'],
  },
  heartbeats: {
    about: 'Keeping leases alive: how many a second, and what many that live cost.',
    measurements: ['renewals', 'live', 'bytes'],
  },
  expiry: {
    about: 'How late a lease ends that nobody renews, alone and in a storm of its like.',
    measurements: ['lag', 'storm'],
  },
  failover: {
    about: 'From the death of a leader (kill -9) to the first write of the next, at a ttl of 2 s.',
    measurements: ['takeover'],
  },
  loss: {
    about:
      'How long a holder goes on believing that it holds, at a ttl of 2 s: after that it is wrong.',
    measurements: ['frozen', 'stalled'],
  },
  growth: {
    about: 'What one operation costs, by how many leases there are.',
    measurements: ['kernel', 'server'],
  },
  restart: {
    about: 'A server that is killed and started again, with its leases on the disk.',
    measurements: ['killed'],
  },
  kernel: {
    about: 'The state machine that memory, file and server share, without any network.',
    measurements: ['renewals', 'claims', 'client', 'memory', 'storm', 'lag', 'durable', 'restart'],
  },
  remote: {
    about: 'What the network between a client and the server costs.',
    measurements: ['embedded', 'pairs', 'renewals', 'round-trip'],
  },
  redis: {
    about: 'The store in Redis, against locks on the same Redis by others and by hand.',
    measurements: ['pairs', 'drain', 'expiry'],
  },
  server: {
    about: 'The server, against engines that do part of the same, and against its limits.',
    measurements: ['redis', 'etcd', '../remote/renewals', 'sequential', 'connections', 'expiry'],
  },
  postgres: {
    about: 'The store in PostgreSQL, against the least that a lock in a table can be.',
    measurements: ['pairs', 'heartbeats'],
  },
  zookeeper: {
    about: 'The store on a log in ZooKeeper, against the least that a lock in a node can be.',
    measurements: ['pairs'],
  },
  etcd: {
    about:
      'The store on a log in etcd, against its Lock service, its own leases, and the least that a lock in it can be.',
    measurements: ['pairs', 'hand-over', 'expiry', 'storm', 'renewals', 'join', 'servers'],
  },
  logs: {
    about:
      "Lock and unlock by our client on a replica of an engine's log, against the engine's own way, and against our native store where there is one.",
    measurements: ['nats', 'postgres', 'redis', 'azure', 'forms'],
  },
  adaptive: {
    about: 'A ttl that is learnt, against the best fixed one.',
    measurements: ['ttl'],
  },
  http: {
    about: 'The HTTP interface, against a server that does nothing.',
    measurements: ['lock'],
  },
}
