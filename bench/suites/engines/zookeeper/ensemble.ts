import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Engine, freePort, startEngine } from '../../../engines/start.js'

const JARS = ['zookeeper', 'slf4j-log4j12', 'log4j-1.2'].map(
  (name) => `/usr/share/java/${name}.jar`,
)

/** Prints only when it leads or follows. */
const LOGGING = [
  'log4j.rootLogger=ERROR, CONSOLE',
  'log4j.logger.org.apache.zookeeper.server.quorum.QuorumPeer=INFO',
  'log4j.appender.CONSOLE=org.apache.log4j.ConsoleAppender',
  'log4j.appender.CONSOLE.layout=org.apache.log4j.PatternLayout',
  'log4j.appender.CONSOLE.layout.ConversionPattern=%m%n',
]

/** Three servers, as in production: a change is on two disks before the answer. */
export async function startEnsemble(): Promise<readonly Engine[] | undefined> {
  const missing = JARS.find((jar) => !existsSync(jar))
  if (missing !== undefined) {
    process.stderr.write(`left out: ${missing} is not on this machine\n`)
    return undefined
  }
  const peers: string[] = []
  for (let at = 0; at < 3; at++) {
    peers.push(`server.${at + 1}=127.0.0.1:${await freePort()}:${await freePort()}`)
  }
  const started = await Promise.all(peers.map((_, at) => startMember(at + 1, peers)))
  const members = started.filter((member) => member !== undefined)
  return members.length === peers.length ? members : undefined
}

function startMember(id: number, peers: readonly string[]): Promise<Engine | undefined> {
  return startEngine('java', /(following|leading) - broadcast/, (folder, [port]) => {
    const data = join(folder, 'data')
    mkdirSync(data, { recursive: true })
    writeFileSync(join(data, 'myid'), `${id}`)
    writeFileSync(join(folder, 'log4j.properties'), LOGGING.join('\n'))
    const settings = [
      ...['tickTime=500', 'initLimit=60', 'syncLimit=20', `dataDir=${data}`],
      ...[`clientPort=${port}`, 'clientPortAddress=127.0.0.1', 'maxClientCnxns=0'],
      ...['admin.enableServer=false', ...peers],
    ]
    writeFileSync(join(folder, 'zoo.cfg'), settings.join('\n'))
    return [
      ...['-Xmx512m', '-cp', [folder, ...JARS].join(':')],
      ...['org.apache.zookeeper.server.quorum.QuorumPeerMain', join(folder, 'zoo.cfg')],
    ]
  })
}
