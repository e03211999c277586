import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { decode, encode } from 'dns-packet'
import { describe, expect, it } from 'vitest'
import { afterFile } from '../../../../leasehold/test/setup/after-file.ts'
import { startDnsGateway } from '../../../src/gateways/dns/dns-gateway.ts'
import { quiet } from '../view-scene.ts'
import { many, WEB, zoneWith } from './zone-scene.ts'

const FORMAT_ERROR = 1
const NAME_ERROR = 3

/** A query with these labels, as bytes: they may contain anything. */
function queryOf(labels: readonly (string | Buffer)[], type = 1, additionals: Buffer[] = []) {
  const parts = labels.map((label) => {
    const bytes = Buffer.from(label)
    return Buffer.concat([Buffer.from([bytes.length]), bytes])
  })
  const header = Buffer.from([0, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, additionals.length])
  return Buffer.concat([header, ...parts, Buffer.from([0, 0, type, 0, 1]), ...additionals])
}

/** A record for EDNS, at this name, with data of this length. */
function opt(size: number, { name = [0], length = 0, missing = 0 } = {}): Buffer {
  const fixed = Buffer.from([...name, 0, 41, size >> 8, size & 255, 0, 0, 0, 0, 0, length])
  return Buffer.concat([fixed, Buffer.alloc(length - missing)])
}

/** The same numbers in each run. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state >>> 8
  }
}

/** A damaged form of a query: some bytes changed, cut off, added, or repeated. */
function damaged(original: Buffer, next: () => number): Buffer {
  let bytes = Buffer.from(original)
  for (let change = 0; change <= next() % 4; change++) {
    const at = next() % (bytes.length + 1)
    const kind = next() % 4
    if (kind === 0 && at < bytes.length) bytes[at] = next() & 255
    else if (kind === 1) bytes = bytes.subarray(0, at)
    else if (kind === 2) bytes = Buffer.concat([bytes, Buffer.alloc(next() % 40, next() & 255)])
    else bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at >> 1)])
  }
  return bytes
}

const codeIn = (answer: Buffer) => answer[3]! & 15
const SAMPLES = [
  queryOf(['web', 'leasehold']),
  queryOf(['web', 'leasehold'], 33, [opt(1232)]),
  queryOf(['gpu', 'tag', 'eu-1', 'zone', 'web', 'leasehold'], 33, [opt(4096, { length: 12 })]),
  queryOf(['i-3', 'instance', 'web', 'leasehold'], 28),
  queryOf(['_web', '_tcp', 'leasehold'], 33),
  queryOf(['leasehold'], 6),
  queryOf(['no', 'leasehold'], 255, [opt(512), opt(512, { name: [1, 120, 0xc0, 12] })]),
  queryOf([]),
]

describe('a damaged DNS query', () => {
  it('gets a well-formed answer to its own question, or none: 40,000 of them', async () => {
    const { send } = await zoneWith({ ...WEB, ...many(60) })
    const next = seeded(42)
    const codes = new Set<number>()
    for (let run = 0; run < 40_000; run++) {
      const bytes = damaged(SAMPLES[run % SAMPLES.length]!, next)
      const limit = [512, 4096, 65_507][run % 3]!
      const answer = send(bytes, limit, run % 4 !== 0)
      if (answer === undefined) {
        const isSilent = bytes.length < 12 || bytes[2]! >= 128
        expect(isSilent, bytes.toString('hex')).toBe(true)
        continue
      }
      expect(answer.length).toBeLessThanOrEqual(limit)
      expect(answer.readUInt16BE(0)).toBe(bytes.readUInt16BE(0))
      expect(answer[2]! & 128).toBe(128)
      codes.add(codeIn(answer))
      const hasQuestion = answer.readUInt16BE(4) === 1
      if (!hasQuestion) expect(answer).toHaveLength(12)
      else {
        // All records can be read, to the last byte.
        decode(answer)
        expect(decode.bytes).toBe(answer.length)
        const end = answer.indexOf(0, 12) + 5
        expect(answer.subarray(12, end).equals(bytes.subarray(12, end))).toBe(true)
      }
    }
    expect([...codes].sort()).toEqual([0, 1, 3, 4, 5])
  })

  it.each([
    ['letters that become others in lower case', ['wee\u212a', 'leasehold']],
    ['letters of several bytes', ['\u0130\u00e9\u4e16', 'tag', 'wee\u006b', 'leasehold']],
    ['bytes that are no text', [Buffer.from([255, 254, 0, 128]), 'leasehold']],
    ['a dot inside a label', ['i-1.instance.wee\u006b', 'leasehold']],
    ['the whole name in one label', ['wee\u006b.leasehold']],
  ])('with %s is another name, and harms no later answer', async (_, labels) => {
    const { send, ask } = await zoneWith({ week: { 'i-1': { address: '10.0.0.1:80' } } })
    const { send: other } = await zoneWith({ week: { 'i-1': { address: '10.0.0.1:80' } } })
    ask('A', 'week.leasehold')
    for (let order = 0; order < 32; order++) {
      const answer = send(queryOf(labels))!
      expect([NAME_ERROR, 5]).toContain(codeIn(answer))
      decode(answer)
      expect(decode.bytes).toBe(answer.length)
      const plain = queryOf(['week', 'leasehold'])
      expect(send(plain)!.equals(other(plain)!)).toBe(true)
    }
  })

  const long = Array.from({ length: 5 }, () => 'x'.repeat(50))
  it.each([
    ['a name of more than 255 bytes', queryOf([...long, 'leasehold'])],
    ['EDNS at a name', queryOf(['web', 'leasehold'], 1, [opt(512, { name: [1, 120, 0] })])],
    ['EDNS twice', queryOf(['web', 'leasehold'], 1, [opt(512), opt(512)])],
    [
      'EDNS that is cut off',
      queryOf(['web', 'leasehold'], 1, [opt(512, { length: 9, missing: 1 })]),
    ],
    ['five additional records', queryOf(['web', 'leasehold'], 1, Array(5).fill(opt(512)))],
    ['fewer records than it says', queryOf(['web', 'leasehold'], 1, [opt(512), Buffer.alloc(0)])],
  ])('with %s gets a format error and nothing else', async (_, bytes) => {
    const { send } = await zoneWith(WEB)
    const answer = send(bytes)!
    expect(codeIn(answer)).toBe(FORMAT_ERROR)
    expect(answer).toHaveLength(12)
  })

  it.each([0, 1, 511, 65_535])('with an EDNS size of %s gets at least 512 bytes', async (size) => {
    const { send } = await zoneWith(many(250))
    const answer = send(queryOf(['web', 'leasehold'], 33, [opt(size)]))!
    expect(decode(answer).answers!.length).toBeGreaterThan(4)
    expect(answer.length).toBeLessThanOrEqual(Math.max(512, size))
  })
})

describe('an answer that could amplify', () => {
  it.each([
    ['ANY', ['web', 'leasehold'], 255, 2],
    ['a missing name', ['no', 'leasehold'], 33, 3.5],
    ['a missing type', ['web', 'leasehold'], 15, 3.5],
    ['a foreign name', ['example', 'com'], 255, 1],
    ['A without EDNS', ['web', 'leasehold'], 1, 17],
    ['SRV without EDNS', ['web', 'leasehold'], 33, 17],
  ])('to %s is short', async (_, labels, type, factor) => {
    const { send } = await zoneWith(many(250))
    const bytes = queryOf(labels as string[], type as number)
    expect(send(bytes, 4096)!.length).toBeLessThanOrEqual(bytes.length * (factor as number))
  })

  it('is never kept beyond 16 MiB, whatever sizes and names clients ask for', async () => {
    const { send, responder } = await zoneWith(many(250))
    for (let at = 0; at < 5000; at++) send(queryOf([`n-${at}`, 'leasehold']))
    expect(responder.cachedBytes).toBe(0)
    for (let size = 8000; size < 10_500; size++) {
      send(queryOf(['web', 'leasehold'], 33, [opt(size)]))
      if (size % 100 === 0) expect(responder.cachedBytes).toBeLessThanOrEqual(16 * 1024 * 1024)
    }
    expect(responder.cachedBytes).toBeGreaterThan(15 * 1024 * 1024)
  })
})

describe('a flood of names that do not exist', () => {
  it.each(['tag', 'zone', 'instance'])(
    'costs as much by %s with 1,000 instances as with 10',
    async (kind) => {
      const instance = (_: unknown, at: number) => [`i-${at}`, { tags: ['a', 'b'], zone: 'eu-1' }]
      const cost = async (count: number) => {
        const web = Object.fromEntries(Array.from({ length: count }, instance))
        const { send } = await zoneWith({ web })
        const times = Array.from({ length: 9 }, () => {
          const startedAt = performance.now()
          for (let at = 0; at < 500; at++) send(queryOf([`n-${at}`, kind, 'web', 'leasehold']))
          return performance.now() - startedAt
        })
        return times.sort((a, b) => a - b)[4]!
      }
      // A search through all instances took 50 times as long.
      expect((await cost(1000)) / (await cost(10))).toBeLessThan(5)
    },
  )
})

/** The gateway on real sockets, with 100 instances, on a clock that the test moves. */
async function gateway() {
  const { view, clock } = await zoneWith(many(100))
  const { port, close } = await startDnsGateway({
    ...{ view, clock, log: quiet, host: '127.0.0.1', port: 0 },
  })
  afterFile(close)
  const connect = async (): Promise<Socket> => {
    const socket = createConnection(port, '127.0.0.1')
    socket.on('error', () => {})
    await once(socket, 'connect')
    return socket
  }
  const isAlive = async () => {
    const resolver = new Resolver({ timeout: 5000, tries: 3 })
    resolver.setServers([`127.0.0.1:${port}`])
    expect(await resolver.resolveSrv('web.leasehold')).toHaveLength(100)
  }
  return { clock, port, connect, isAlive }
}

const QUERY = queryOf(['web', 'leasehold'], 33)
const framed = (message: Buffer) =>
  Buffer.concat([Buffer.from([message.length >> 8, message.length & 255]), message])

describe('hostile clients', () => {
  it('that send 5,000 damaged datagrams change nothing', async () => {
    const { port, isAlive } = await gateway()
    const udp = createSocket('udp4')
    const next = seeded(7)
    for (let run = 0; run < 5000; run++) {
      const bytes = damaged(SAMPLES[run % SAMPLES.length]!, next)
      await new Promise((resolve) => udp.send(bytes, port, '127.0.0.1', resolve))
    }
    udp.close()
    await isAlive()
  })

  it('that send damaged messages over TCP get error codes or are disconnected', async () => {
    const { connect, isAlive } = await gateway()
    const next = seeded(11)
    let answered = 0
    for (let run = 0; run < 200; run++) {
      const socket = await connect()
      const bytes = damaged(SAMPLES[run % SAMPLES.length]!, next)
      const isOver = Promise.race([
        once(socket, 'data').then(() => answered++),
        once(socket, 'close'),
      ])
      socket.write(framed(bytes))
      await isOver
      socket.destroy()
    }
    expect(answered).toBeGreaterThan(100)
    await isAlive()
  })

  it('that send queries and never read are paused, at a bounded size', async () => {
    const { connect, isAlive } = await gateway()
    const socket = await connect()
    socket.pause()
    const some = Buffer.concat(Array.from({ length: 1000 }, () => framed(QUERY)))
    for (let at = 0; at < 5; at++) socket.write(some)
    await isAlive()
    let received = 0
    socket.on('data', (chunk) => {
      received += chunk.length
    })
    socket.resume()
    await expect.poll(() => received, { timeout: 20_000 }).toBeGreaterThan(5000 * 6000)
    socket.destroy()
  }, 30_000)

  it('that answer instead of asking are disconnected', async () => {
    const { connect } = await gateway()
    const socket = await connect()
    socket.write(framed(encode({ type: 'response', id: 1 })))
    await once(socket, 'close')
  })

  it('that send half a message keep only their own connection', async () => {
    const { connect, isAlive } = await gateway()
    const socket = await connect()
    socket.write(framed(QUERY).subarray(0, 9))
    await isAlive()
    socket.write(framed(QUERY).subarray(9))
    await once(socket, 'data')
    socket.destroy()
  })

  it('that send a byte now and then are disconnected; those that ask are not', async () => {
    const { connect, clock } = await gateway()
    const [slow, good] = [await connect(), await connect()]
    const closed = once(slow, 'close')
    const message = framed(QUERY)
    for (let at = 0; at < 15; at++) {
      slow.write(message.subarray(at, at + 1))
      good.write(message)
      await once(good, 'data')
      await clock.advance(1000)
    }
    await closed
    good.write(message)
    await once(good, 'data')
    good.destroy()
  })

  it('that open more connections than allowed lose the oldest silent ones; those that ask stay', async () => {
    const { connect } = await gateway()
    const good = await connect()
    const sockets: Socket[] = []
    while (sockets.length < 600) {
      sockets.push(...(await Promise.all(Array.from({ length: 50 }, connect))))
      good.write(framed(QUERY))
      await once(good, 'data')
    }
    await expect.poll(() => sockets.filter(({ closed }) => closed).length).toBe(89)
    expect(sockets.slice(0, 50).every(({ closed }) => closed)).toBe(true)
    const late = await connect()
    late.write(framed(QUERY))
    await once(late, 'data')
    for (const socket of [...sockets, good, late]) socket.destroy()
  }, 30_000)
})
