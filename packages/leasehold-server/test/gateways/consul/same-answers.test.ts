import { expect, it } from 'vitest'
import { CONSUL, describeWith, Engine } from '../../../../leasehold/test/engines/index.ts'
import { openConsul } from './open-consul.ts'

/** A call: method, path and body. `$1` stands for the first session that the script created. */
type Step = readonly [method: string, path: string, body?: string | Buffer]

const BYTES = Buffer.from([0, 255, 10, 13, 200, 65])

/** Everything that the table in docs/consul.md does not list as different. */
const SCRIPT: readonly Step[] = [
  ['GET', 'kv/none'],
  ['GET', 'kv/?keys'],
  ['GET', 'kv/'],
  ['PUT', 'kv/'],
  ['POST', 'kv/a'],
  ['PUT', 'kv/a', 'one'],
  ['GET', 'kv/a'],
  ['GET', 'kv/a?raw'],
  ['PUT', 'kv/a?flags=42', 'two'],
  ['GET', 'kv/a?consistent'],
  ['GET', 'kv/a?stale'],
  ['PUT', 'kv/a?flags=x', 'no'],
  ['PUT', 'kv/bytes', BYTES],
  ['GET', 'kv/bytes'],
  ['GET', 'kv/bytes?raw'],
  ['PUT', 'kv/empty'],
  ['GET', 'kv/empty'],
  ['PUT', 'kv/d/e/f', 'x'],
  ['PUT', 'kv/d/g', 'y'],
  ['PUT', 'kv/with%20space/%C3%BC', 'z'],
  ['GET', 'kv/with%20space/%C3%BC'],
  ['GET', 'kv/?recurse'],
  ['GET', 'kv/d/?keys'],
  ['GET', 'kv/d/?keys&separator=/'],
  ['GET', 'kv/zzz?recurse'],
  ['GET', 'kv/zzz?keys'],
  ['PUT', 'kv/a?cas=1', 'no'],
  ['PUT', 'kv/a?cas=0', 'no'],
  ['PUT', 'kv/new?cas=0', 'yes'],
  ['PUT', 'kv/a?cas=x', 'no'],
  ['DELETE', 'kv/a?cas=0'],
  ['DELETE', 'kv/a?cas=1'],
  ['DELETE', 'kv/none'],
  ['DELETE', 'kv/d/?recurse'],
  ['GET', 'kv/?keys'],
  ['GET', 'kv/a?index=x'],
  ['GET', 'kv/a?index=1&wait=x'],
  ['GET', 'kv/a?index=1'],
  ['PUT', 'session/create', '{"TTL":"5s"}'],
  ['PUT', 'session/create', '{"TTL":"x"}'],
  ['PUT', 'session/create', '{"TTL":"25h"}'],
  ['PUT', 'session/create', '{"Behavior":"x"}'],
  ['PUT', 'session/create', '{"Node":"nobody"}'],
  ['PUT', 'session/create', '{"ttl":"10s","name":"one","LOCKDELAY":"0s"}'],
  ['PUT', 'session/create', '{"Name":"two","LockDelay":"5s","Behavior":"delete","TTL":"1m"}'],
  ['PUT', 'session/create', '{"LockDelay":3}'],
  ['PUT', 'session/create'],
  ['GET', 'session/info/$1'],
  ['GET', 'session/info/$2'],
  ['GET', 'session/info/$3'],
  ['GET', 'session/info/$4'],
  ['GET', 'session/info/00000000-0000-0000-0000-000000000000'],
  ['PUT', 'session/renew/$1'],
  ['PUT', 'session/renew/00000000-0000-0000-0000-000000000000'],
  ['PUT', 'kv/lock?acquire=$1', 'held'],
  ['GET', 'kv/lock'],
  ['PUT', 'kv/lock?acquire=$2', 'no'],
  ['PUT', 'kv/lock?acquire=$1', 'again'],
  ['GET', 'kv/lock'],
  ['PUT', 'kv/lock', 'plain'],
  ['GET', 'kv/lock'],
  ['PUT', 'kv/lock?release=$2', 'no'],
  ['PUT', 'kv/lock?release=00000000-0000-0000-0000-000000000000', 'no'],
  ['PUT', 'kv/lock?release=$1', 'free'],
  ['GET', 'kv/lock'],
  ['PUT', 'kv/lock?acquire=$2&flags=7', 'two'],
  ['GET', 'kv/lock'],
  ['PUT', 'kv/none?release=$1', 'no'],
  ['PUT', 'kv/lock?cas=1&acquire=$1', 'no'],
  ['PUT', 'session/destroy/$2'],
  ['PUT', 'session/destroy/$2'],
  ['GET', 'session/info/$2'],
  ['PUT', 'kv/lock?acquire=$1', 'delayed'],
  ['PUT', 'kv/kept?acquire=$1', 'x'],
  ['DELETE', 'kv/kept'],
  ['PUT', 'kv/kept?acquire=$3', 'x'],
  ['GET', 'kv/kept'],
  ['DELETE', 'kv/a?recurse&cas=1'],
  ['PUT', 'kv/a?cas=1&flags=3&release=$1', 'no'],
  ['GET', 'kv/a?raw=false'],
  ['GET', 'kv/?keys=false'],
  ['PUT', 'kv/a?flags=18446744073709551616', 'no'],
  ['PUT', 'kv/a?cas=', 'no'],
  ['GET', 'session/create'],
  ['POST', 'session/create', '{}'],
  ['PUT', 'session/list'],
  ['PUT', 'session/create', 'null'],
  ['PUT', 'session/create', '{"LockDelay":"x"}'],
  ['PUT', 'session/destroy/'],
  ['PUT', 'session/renew/'],
  ['GET', 'session/info/'],
  ['GET', 'session/node/'],
  ['GET', 'session/node/nobody'],
  ['GET', 'session/info/xyz'],
  ['PUT', 'session/destroy/xyz'],
  ['PUT', 'session/renew/xyz'],
  ['PUT', 'kv/z?release=xyz', 'no'],
  ['PUT', 'status/leader'],
  ['GET', 'status/leader?dc=other'],
  ['GET', 'catalog/datacenters'],
]

const HEADERS = [
  'content-type',
  'x-consul-knownleader',
  'x-consul-lastcontact',
  'content-security-policy',
]

/** The answers of a server, without what must differ: session ids, node names and index numbers. */
async function answersOf(url: string, node: string): Promise<unknown[]> {
  const sessions: string[] = []
  const indexes: number[] = []
  const answers: unknown[] = []
  for (const [method, path, body] of SCRIPT) {
    const real = path.replace(/\$(\d)/g, (_, at: string) => sessions[Number(at) - 1]!)
    const response = await fetch(`${url}/${real}`, {
      method,
      ...(body !== undefined && { body: body as string }),
    })
    const bytes = Buffer.from(await response.arrayBuffer())
    const created = path === 'session/create' && response.ok
    if (created) sessions.push((JSON.parse(bytes.toString()) as { ID: string }).ID)
    let text = bytes.toString('latin1')
    for (const [at, id] of sessions.entries()) text = text.replaceAll(id, `$${at + 1}`)
    text = text.replaceAll(`"Node":"${node}"`, '"Node":"node"')
    const found = [...text.matchAll(/"(?:Create|Modify)Index":(\d+)/g)].map((each) =>
      Number(each[1]),
    )
    indexes.push(...found)
    // Indexes are compared by their order, below.
    text = text.replaceAll(/"(Create|Modify)Index":\d+/g, '"$1Index":0')
    const index = response.headers.get('x-consul-index')
    const headers = HEADERS.map((name) => response.headers.get(name))
    answers.push([
      method,
      path,
      response.status,
      index !== null && Number(index) > 0,
      headers,
      text,
    ])
  }
  const order = [...new Set(indexes)].sort((a, b) => a - b)
  answers.push(indexes.map((index) => order.indexOf(index)))
  return answers
}

/** What clients read of the server itself, without what must differ. */
async function serverOf(url: string): Promise<unknown> {
  const json = async (path: string) => (await fetch(`${url}/${path}`)).json()
  const self = (await json('agent/self')) as Record<string, Record<string, unknown>>
  const members = (await json('agent/members')) as Record<string, unknown>[]
  const { Datacenter, PrimaryDatacenter, Revision, Server, Version } = self['Config']!
  const memberOf = (member: Record<string, unknown>) => {
    const { dc, role } = member['Tags'] as Record<string, string>
    return [
      member['Name'] === self['Config']!['NodeName'],
      member['Addr'],
      dc,
      role,
      member['Status'],
    ]
  }
  const address = /^127\.0\.0\.1:\d+$/
  return {
    config: { Datacenter, PrimaryDatacenter, Revision, Server, Version },
    self: memberOf(self['Member']!),
    members: members.map(memberOf),
    leader: address.test((await json('status/leader')) as string),
    peers: ((await json('status/peers')) as string[]).map((peer) => address.test(peer)),
  }
}

describeWith(CONSUL, 'the Consul API and Consul', () => {
  it('give the same answers to the same calls, field by field', async () => {
    const consul = await Engine.start(CONSUL)
    const scene = await openConsul()
    try {
      const theirs = await answersOf(`http://127.0.0.1:${consul.port}/v1`, 'alone')
      const ours = await answersOf(scene.url, 'leasehold')
      expect(ours).toEqual(theirs)
      const [our, their] = [scene.url, `http://127.0.0.1:${consul.port}/v1`]
      expect(await serverOf(our)).toEqual(await serverOf(their))
    } finally {
      await scene.gateway.close()
      await consul.stop()
    }
  }, 120_000)
})
