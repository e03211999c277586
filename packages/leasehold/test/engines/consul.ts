import { join } from 'node:path'
import { TcpProxy } from '../faults/tcp-proxy.ts'
import { Engine, type EngineSpec, findBuilt, freePort } from './engine.ts'

/** The ports of a server for other servers. */
interface Ports {
  readonly serf: number
  readonly raft: number
}

/** Elections as fast as Consul allows, and nothing that calls home. */
const SETTINGS = 'performance { raft_multiplier = 1 } disable_update_check = true'

/** A server. Its `ports` are the two after that for clients if it is alone. */
function consulServer(
  name: string,
  count: number,
  ports: Ports | undefined,
  join_: readonly number[] = [],
): EngineSpec {
  return {
    name: 'consul 1.16',
    program: findBuilt('consul'),
    builtWith: 'go',
    args: (folder, port) => {
      const { serf, raft } = ports ?? { serf: port + 1, raft: port + 2 }
      return [
        ['agent', '-server', `-bootstrap-expect=${count}`, `-node=${name}`, `-hcl=${SETTINGS}`],
        [`-data-dir=${join(folder, 'data')}`, '-bind=127.0.0.1', '-client=127.0.0.1'],
        [`-http-port=${port}`, `-serf-lan-port=${serf}`, `-server-port=${raft}`],
        ['-serf-wan-port=-1', '-dns-port=-1', '-grpc-port=-1', '-grpc-tls-port=-1'],
        join_.map((each) => `-retry-join=127.0.0.1:${each}`),
        ['-retry-interval=1s'],
      ].flat()
    },
    ready: /New leader elected|cluster leadership acquired/,
  }
}

export const CONSUL: EngineSpec = consulServer('alone', 1, undefined)

/** Three servers, as in production. Clients reach them through proxies that can be cut. */
export class ConsulCluster {
  readonly members: readonly Engine[]
  readonly lines: readonly TcpProxy[]

  private constructor(members: readonly Engine[], lines: readonly TcpProxy[]) {
    this.members = members
    this.lines = lines
  }

  static async start(): Promise<ConsulCluster> {
    const ports: Ports[] = []
    for (let at = 0; at < 3; at++) ports.push({ serf: await freePort(), raft: await freePort() })
    const serfs = ports.map(({ serf }) => serf)
    const settled = await Promise.allSettled(
      ports.map((own, at) => {
        // A server that comes back does not say that there is a leader.
        const ready = /Consul agent running/
        return Engine.start({ ...consulServer(`c${at}`, 3, own, serfs), ready })
      }),
    )
    const members = settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    const failed = settled.find((each) => each.status === 'rejected')
    if (failed) {
      await new ConsulCluster(members, []).stop()
      throw failed.reason
    }
    const lines = await Promise.all(members.map(({ port }) => TcpProxy.to(port)))
    return new ConsulCluster(members, lines)
  }

  /** The server that leads, as soon as there is one. */
  async leader(): Promise<Engine> {
    for (;;) {
      for (const member of this.members) {
        const stats = await selfOf(member.port).catch(() => undefined)
        if (stats?.Stats?.consul?.leader === 'true') return member
      }
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()))
    await Promise.all(this.lines.map((line) => line.close()))
  }
}

async function selfOf(port: number) {
  const answer = await fetch(`http://127.0.0.1:${port}/v1/agent/self`, {
    signal: AbortSignal.timeout(2000),
  })
  return (await answer.json()) as { Stats?: { consul?: { leader?: string } } }
}
