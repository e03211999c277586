import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TcpProxy } from '../faults/tcp-proxy.ts'
import { Engine, type EngineSpec, findBuilt, findProgram, freePort } from './engine.ts'

/** A NATS server with JetStream on files, alone or in a cluster; `more` is configuration. */
export function natsServer(more: readonly string[] = []): EngineSpec {
  return {
    name: 'nats',
    program: findProgram('nats-server', ['/usr/sbin']),
    args: (folder, port) => {
      const file = join(folder, 'nats.conf')
      const settings = [
        `listen: "127.0.0.1:${port}"`,
        `jetstream { store_dir: "${join(folder, 'data')}" }`,
        ...more,
      ]
      writeFileSync(file, `${settings.join('\n')}\n`)
      return ['-c', file]
    },
    ready: /Server is ready/,
  }
}

export const NATS: EngineSpec = natsServer()

/** A release that Debian does not have yet. Copies of Debian's differ after a freeze: docs/nats.md. */
export const NEWER_NATS: EngineSpec = {
  ...NATS,
  program: findBuilt('nats-server'),
  name: 'nats-server 2.12',
  builtWith: 'go',
}

/** A client of the cluster, which is asked for the leader. */
interface Asked {
  request(subject: string): Promise<{ json<T>(): T }>
}

/** The proxy by which one server reaches another. */
interface Line {
  readonly from: number
  readonly to: number
  readonly proxy: TcpProxy
}

/** All proxies of one server, from and to the others. */
interface PeerLines {
  cut(): void
  heal(): void
}

/** Servers know each other by configuration. They must not advertise addresses that bypass the proxies. */
const NOWHERE = '127.0.0.1:1'

/**
 * Three servers, as in production. Two servers have several connections, and either may have opened
 * each of them. So each server has its own proxy to each other one, and both can be cut.
 */
export class NatsCluster {
  readonly members: readonly Engine[]
  readonly peerLines: readonly PeerLines[]
  readonly #lines: readonly Line[]

  private constructor(members: readonly Engine[], lines: readonly Line[]) {
    this.members = members
    this.#lines = lines
    this.peerLines = members.map((_, at) => {
      const own = lines.filter(({ from, to }) => from === at || to === at)
      return {
        cut: () => own.forEach(({ proxy }) => void proxy.cut()),
        heal: () => own.forEach(({ proxy }) => void proxy.heal()),
      }
    })
  }

  static async start(): Promise<NatsCluster> {
    const ports = [await freePort(), await freePort(), await freePort()]
    const lines: Line[] = []
    for (const from of ports.keys()) {
      for (const [to, port] of ports.entries()) {
        if (from !== to) lines.push({ from, to, proxy: await TcpProxy.to(port) })
      }
    }
    const starting = ports.map((port, at) => {
      const routes = lines.flatMap(({ from, proxy }) =>
        from === at ? [`"nats://127.0.0.1:${proxy.port}"`] : [],
      )
      const member = natsServer([
        `server_name: "s${at}"`,
        'cluster {',
        `  name: "c", listen: "127.0.0.1:${port}", advertise: "${NOWHERE}"`,
        `  routes: [${routes}]`,
        '}',
      ])
      return Engine.start({ ...member, program: NEWER_NATS.program })
    })
    const settled = await Promise.allSettled(starting)
    const members = settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    const cluster = new NatsCluster(members, lines)
    const failed = settled.find((each) => each.status === 'rejected')
    if (!failed) return cluster
    await cluster.stop()
    throw failed.reason
  }

  get servers(): string[] {
    return this.members.map(({ port }) => `127.0.0.1:${port}`)
  }

  /** The leader of a stream, as soon as there is one. */
  async leader(client: Asked, stream: string): Promise<Engine> {
    for (;;) {
      const info = await client.request(`$JS.API.STREAM.INFO.${stream}`).catch(() => undefined)
      const leader = info?.json<{ cluster?: { leader?: string } }>().cluster?.leader
      if (leader) return this.members[Number(leader.slice(1))]!
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()))
    await Promise.all(this.#lines.map(({ proxy }) => proxy.close()))
  }
}
