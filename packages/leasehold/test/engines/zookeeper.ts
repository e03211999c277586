import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Engine, type EngineSpec, findProgram, freePort } from './engine.ts'

const JARS = ['zookeeper', 'slf4j-log4j12', 'log4j-1.2'].map(
  (name) => `/usr/share/java/${name}.jar`,
)
const isThere = JARS.every((jar) => existsSync(jar))

/** A short tick allows short sessions: half a second is the minimum. */
const TICK_MS = 250

/** Logs only when the server leads, follows, or listens alone. */
const LOGGING = [
  'log4j.rootLogger=ERROR, CONSOLE',
  'log4j.logger.org.apache.zookeeper.server.quorum.QuorumPeer=INFO',
  'log4j.logger.org.apache.zookeeper.server.NIOServerCnxnFactory=INFO',
  'log4j.appender.CONSOLE=org.apache.log4j.ConsoleAppender',
  'log4j.appender.CONSOLE.layout=org.apache.log4j.PatternLayout',
  'log4j.appender.CONSOLE.layout.ConversionPattern=%m%n',
]

/** One server of an ensemble, whose servers reach each other by the ports in `peers`; or one alone. */
function member(id: number, peers: readonly (readonly [number, number])[]): EngineSpec {
  return {
    name: 'zookeeper',
    program: isThere ? findProgram('java') : undefined,
    args: (folder, port) => {
      const data = join(folder, 'data')
      mkdirSync(data, { recursive: true })
      writeFileSync(join(data, 'myid'), `${id}`)
      writeFileSync(join(folder, 'log4j.properties'), LOGGING.join('\n'))
      const settings = [
        `tickTime=${TICK_MS}`,
        'initLimit=60',
        'syncLimit=16',
        `dataDir=${data}`,
        `clientPort=${port}`,
        'clientPortAddress=127.0.0.1',
        'maxClientCnxns=0',
        'admin.enableServer=false',
        '4lw.commands.whitelist=srvr',
        'preAllocSize=4096',
        ...peers.map(([quorum, vote], at) => `server.${at + 1}=127.0.0.1:${quorum}:${vote}`),
      ]
      writeFileSync(join(folder, 'zoo.cfg'), settings.join('\n'))
      return [
        ...[
          '-Xmx128m',
          // How many of the last transactions it keeps in memory; 500 by default.
          '-Dzookeeper.commitLogCount=50',
          '-XX:+UseSerialGC',
          '-XX:TieredStopAtLevel=1',
          '-cp',
          [folder, ...JARS].join(':'),
        ],
        ...['org.apache.zookeeper.server.quorum.QuorumPeerMain', join(folder, 'zoo.cfg')],
      ]
    },
    ready: peers.length > 0 ? /(following|leading) - broadcast/ : /binding to port/,
  }
}

/** A single server. */
export const ZOOKEEPER: EngineSpec = member(1, [])

/** Three servers, as in production. */
export class Ensemble {
  readonly members: readonly Engine[]

  private constructor(members: readonly Engine[]) {
    this.members = members
  }

  static async start(): Promise<Ensemble> {
    const peers: [number, number][] = []
    for (let at = 0; at < 3; at++) peers.push([await freePort(), await freePort()])
    const starting = peers.map((_, at) => Engine.start(member(at + 1, peers)))
    const settled = await Promise.allSettled(starting)
    const members = settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    const failed = settled.find((each) => each.status === 'rejected')
    if (failed) {
      await new Ensemble(members).stop()
      throw failed.reason
    }
    return new Ensemble(members)
  }

  get servers(): string {
    return this.members.map(({ port }) => `127.0.0.1:${port}`).join(',')
  }

  /** The leader, as soon as there is one. */
  async leader(): Promise<Engine> {
    for (;;) {
      const roles = await Promise.all(this.members.map(({ port }) => ask(port, 'srvr')))
      const leader = this.members[roles.findIndex((said) => /Mode: leader/.test(said))]
      if (leader) return leader
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()))
  }
}

/** Sends a four-letter command. The answer is empty if the server is down or frozen. */
async function ask(port: number, word: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.setTimeout(1000, () => socket.destroy())
  let said = ''
  socket.on('error', () => {})
  socket.on('connect', () => socket.write(word))
  socket.on('data', (bytes) => {
    said += bytes
  })
  await once(socket, 'close')
  return said
}
