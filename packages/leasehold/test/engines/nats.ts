import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
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

/** Three servers, as they run in production. */
export class NatsCluster {
  readonly members: readonly Engine[]

  private constructor(members: readonly Engine[]) {
    this.members = members
  }

  static async start(): Promise<NatsCluster> {
    const ports = [await freePort(), await freePort(), await freePort()]
    const routes = ports.map((port) => `"nats://127.0.0.1:${port}"`).join(', ')
    const starting = ports.map((port, at) =>
      Engine.start(
        natsServer([
          `server_name: "s${at}"`,
          `cluster { name: "c", listen: "127.0.0.1:${port}", routes: [${routes}] }`,
        ]),
      ),
    )
    const settled = await Promise.allSettled(starting)
    const members = settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    const cluster = new NatsCluster(members)
    const failed = settled.find((each) => each.status === 'rejected')
    if (!failed) return cluster
    await cluster.stop()
    throw failed.reason
  }

  get servers(): string[] {
    return this.members.map(({ port }) => `127.0.0.1:${port}`)
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()))
  }
}
