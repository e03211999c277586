import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TcpProxy } from '../faults/tcp-proxy.ts'
import { Engine, type EngineSpec, findProgram, freePort } from './engine.ts'

/** A NATS server with JetStream on files, by itself or as one of a cluster; `more` is configuration. */
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

/** What is asked for a leader: a client of the cluster. */
interface Asked {
  request(subject: string): Promise<{ json<T>(): T }>
}

/** Three servers, as they run in production. They speak to each other through lines that can be cut. */
export class NatsCluster {
  readonly members: readonly Engine[]
  /** The line to each server, for the others. */
  readonly peerLines: readonly TcpProxy[]

  private constructor(members: readonly Engine[], peerLines: readonly TcpProxy[]) {
    this.members = members
    this.peerLines = peerLines
  }

  static async start(): Promise<NatsCluster> {
    const ports = [await freePort(), await freePort(), await freePort()]
    const peerLines = await Promise.all(ports.map((port) => TcpProxy.to(port)))
    const peers = peerLines.map(({ port }) => `127.0.0.1:${port}`)
    const routes = peers.map((peer) => `"nats://${peer}"`).join(', ')
    const starting = ports.map((port, at) =>
      Engine.start(
        natsServer([
          `server_name: "s${at}"`,
          'cluster {',
          `  name: "c", listen: "127.0.0.1:${port}", advertise: "${peers[at]}"`,
          `  routes: [${routes}]`,
          '}',
        ]),
      ),
    )
    const settled = await Promise.allSettled(starting)
    const members = settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    const cluster = new NatsCluster(members, peerLines)
    const failed = settled.find((each) => each.status === 'rejected')
    if (!failed) return cluster
    await cluster.stop()
    throw failed.reason
  }

  get servers(): string[] {
    return this.members.map(({ port }) => `127.0.0.1:${port}`)
  }

  /** The server that leads a stream, as soon as one does. */
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
    await Promise.all(this.peerLines.map((line) => line.close()))
  }
}
