import { join } from 'node:path'
import { TcpProxy } from '../faults/tcp-proxy.ts'
import { Engine, type EngineSpec, findBuilt, findProgram, freePort } from './engine.ts'

/** One member of a cluster: `peers` are the addresses that the members use for each other. */
function member(
  at: number,
  listens: string,
  peers: readonly string[],
  program: string | undefined,
): EngineSpec {
  const cluster = peers.map((peer, index) => `m${index}=${peer}`).join(',')
  return {
    name: 'etcd',
    program,
    args: (folder, port) => {
      const client = `http://127.0.0.1:${port}`
      return [
        ['--name', `m${at}`, '--data-dir', join(folder, 'data'), '--log-level', 'info'],
        ['--listen-client-urls', client, '--advertise-client-urls', client],
        ['--listen-peer-urls', listens, '--initial-advertise-peer-urls', peers[at]!],
        ['--initial-cluster', cluster],
      ].flat()
    },
    ready: /ready to serve client requests|serving (insecure )?client/i,
  }
}

/** A single etcd. No member joins it, so its peer address is never used. */
const alone = (program: string | undefined) =>
  member(0, 'http://127.0.0.1:0', ['http://127.0.0.1:1'], program)
export const ETCD: EngineSpec = alone(findProgram('etcd'))

/** A release that Debian does not have yet. */
export const NEWER_ETCD: EngineSpec = {
  ...alone(findBuilt('etcd')),
  name: 'etcd 3.6',
  builtWith: 'go',
}

/**
 * Three members, as in production. They reach each other through proxies that can be cut, and clients
 * reach them through other proxies.
 */
export class EtcdCluster {
  readonly members: readonly Engine[]
  /** The proxies to each member, for the other members and for clients. */
  readonly peerLines: readonly TcpProxy[]
  readonly lines: readonly TcpProxy[]

  private constructor(
    members: readonly Engine[],
    peerLines: readonly TcpProxy[],
    lines: readonly TcpProxy[],
  ) {
    this.members = members
    this.peerLines = peerLines
    this.lines = lines
  }

  static async start({ program } = ETCD): Promise<EtcdCluster> {
    const ports = [await freePort(), await freePort(), await freePort()]
    const peerLines = await Promise.all(ports.map((port) => TcpProxy.to(port)))
    const peers = peerLines.map(({ port }) => `http://127.0.0.1:${port}`)
    const starting = ports.map((port, at) =>
      Engine.start(member(at, `http://127.0.0.1:${port}`, peers, program)),
    )
    const settled = await Promise.allSettled(starting)
    const members = settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    const failed = settled.find((each) => each.status === 'rejected')
    if (failed) {
      await new EtcdCluster(members, peerLines, []).stop()
      throw failed.reason
    }
    const lines = await Promise.all(members.map(({ port }) => TcpProxy.to(port)))
    return new EtcdCluster(members, peerLines, lines)
  }

  /** The addresses for clients, each through its proxy. */
  get endpoints(): string[] {
    return this.lines.map(({ port }) => `127.0.0.1:${port}`)
  }

  /** The number of the leader, as soon as there is one. */
  async leader(): Promise<number> {
    for (;;) {
      for (const [at, { port }] of this.members.entries()) {
        const status = (await etcdCall(port, 'maintenance/status', {}, 2000).catch(
          () => undefined,
        )) as
          | { readonly leader: string; readonly header: { readonly member_id: string } }
          | undefined
        if (status !== undefined && status.leader === status.header.member_id) return at
      }
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((each) => each.stop()))
    await Promise.all([...this.lines, ...this.peerLines].map((line) => line.close()))
  }
}

/** A call to one member by its HTTP gateway, for what the store does not need. */
export async function etcdCall(
  port: number,
  path: string,
  request: object = {},
  timeout = 20_000,
): Promise<unknown> {
  const answer = await fetch(`http://127.0.0.1:${port}/v3/${path}`, {
    method: 'POST',
    body: JSON.stringify(request),
    signal: AbortSignal.timeout(timeout),
  })
  if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`)
  return answer.json()
}

/** Compacts all revisions before this one. */
export async function compactEtcd(port: number, revision: number): Promise<void> {
  await etcdCall(port, 'kv/compaction', { revision, physical: true })
}
