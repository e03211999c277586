import { type DecodedPacket, decode, encode } from 'dns-packet'
import { describe, expect, it } from 'vitest'
import { MessageWriter } from '../../../src/gateways/dns/message-writer.ts'
import { many, WEB, zoneWith } from './zone-scene.ts'

const data = ({ answers }: DecodedPacket) =>
  answers!.map((answer) => (answer as { data: unknown }).data)
const codeOf = (packet: DecodedPacket) => (packet as unknown as { rcode: string }).rcode

describe('a DNS answer', () => {
  it('has a service with its ports, proportional weights, and the addresses of the targets', async () => {
    const { ask } = await zoneWith(WEB)
    const answer = ask('SRV', 'web.leasehold', 4096)
    expect(codeOf(answer)).toBe('NOERROR')
    expect(answer).toMatchObject({ id: 7, flag_aa: true, flag_rd: true, flag_tc: false })
    const target = (id: string) => `${id}.instance.web.leasehold`
    expect(data(answer)).toEqual([
      { priority: 0, weight: 16_384, port: 80, target: target('i-1') },
      { priority: 0, weight: 32_768, port: 81, target: target('i-2') },
      { priority: 0, weight: 65_535, port: 82, target: target('i-3') },
    ])
    expect(answer.additionals).toMatchObject([
      { type: 'A', name: target('i-1'), data: '10.0.0.1', ttl: 0 },
      { type: 'A', name: target('i-2'), data: '10.0.0.2' },
      { type: 'AAAA', name: target('i-3'), data: 'fd00::3' },
      { type: 'OPT' },
    ])
    expect(answer.answers!.every((each) => 'ttl' in each && each.ttl === 0)).toBe(true)
  })

  it.each([
    ['A', 'web.leasehold', ['10.0.0.1', '10.0.0.2']],
    ['AAAA', 'web.leasehold', ['fd00::3']],
    ['A', 'gpu.tag.web.leasehold', ['10.0.0.1', '10.0.0.2']],
    ['A', 'big.tag.web.leasehold', ['10.0.0.1']],
    ['A', 'eu-2.zone.web.leasehold', ['10.0.0.2']],
    ['A', 'gpu.tag.eu-1.zone.web.leasehold', ['10.0.0.1']],
    ['A', 'i-2.instance.web.leasehold', ['10.0.0.2']],
    ['AAAA', 'i-3.instance.web.leasehold', ['fd00::3']],
    ['A', '_web._tcp.leasehold', ['10.0.0.1', '10.0.0.2']],
    ['A', 'WEB.LeaseHold', ['10.0.0.1', '10.0.0.2']],
  ])('to %s %s', async (type, name, addresses) => {
    const { ask } = await zoneWith(WEB)
    expect(data(ask(type, name)).sort()).toEqual(addresses)
  })

  it('repeats the letters of the question, because resolvers compare them', async () => {
    const { ask } = await zoneWith(WEB)
    ask('A', 'web.leasehold')
    expect(ask('A', 'wEb.LEASEHOLD').questions![0]!.name).toBe('wEb.LEASEHOLD')
  })

  it('gives each client another first address', async () => {
    const { ask } = await zoneWith(WEB)
    const first = Array.from({ length: 10 }, () => data(ask('A', 'web.leasehold'))[0])
    expect(first.filter((address) => address === '10.0.0.1')).toHaveLength(5)
  })

  it('is never older than the registry, although answers are kept', async () => {
    const { ask, registered, clock } = await zoneWith(WEB)
    const asked = () => Array.from({ length: 40 }, () => data(ask('A', 'web.leasehold')).length)
    expect(new Set(asked())).toEqual(new Set([2]))
    await registered.get('i-1')!.release()
    await clock.advance(10)
    expect(new Set(asked())).toEqual(new Set([1]))
  })

  it('has only instances that are in use, and is empty if there are none', async () => {
    const { ask, registered, clock } = await zoneWith(WEB)
    await registered.get('i-1')!.report('critical')
    await clock.advance(10)
    expect(data(ask('A', 'web.leasehold'))).toEqual(['10.0.0.2'])
    await registered.get('i-2')!.maintenance(true)
    await clock.advance(10)
    const empty = ask('A', 'web.leasehold')
    expect(codeOf(empty)).toBe('NOERROR')
    expect(empty.answers).toEqual([])
    expect(empty.authorities).toMatchObject([
      { type: 'SOA', name: 'leasehold', ttl: 1, data: { minimum: 1, mname: 'ns.leasehold' } },
    ])
  })

  it('says that a name does not exist, with an SOA record, also after it existed', async () => {
    const { ask, registered, clock } = await zoneWith(WEB)
    const gone = ['i-1', 'i-2', 'i-3']
    expect(codeOf(ask('SRV', 'web.leasehold'))).toBe('NOERROR')
    for (const id of gone) await registered.get(id)!.release()
    await clock.advance(10)
    for (const name of ['web.leasehold', 'other.leasehold', 'i-1.instance.web.leasehold']) {
      const answer = ask('SRV', name)
      expect(codeOf(answer)).toBe('NXDOMAIN')
      expect(answer.authorities).toMatchObject([{ type: 'SOA', data: { minimum: 1 } }])
    }
  })

  it.each([
    ['MX', 'web.leasehold', 'NOERROR'],
    ['A', 'leasehold', 'NOERROR'],
    ['A', 'tag.web.leasehold', 'NOERROR'],
    ['A', '_tcp.leasehold', 'NOERROR'],
    ['A', 'no.tag.web.leasehold', 'NXDOMAIN'],
    ['A', 'x.y.web.leasehold', 'NXDOMAIN'],
    ['A', 'constructor.web.leasehold', 'NXDOMAIN'],
    ['A', `${'gpu.tag.'.repeat(5)}web.leasehold`, 'NXDOMAIN'],
    ['A', 'web._tcp.leasehold', 'NXDOMAIN'],
    ['A', 'example.com', 'REFUSED'],
    ['A', '.', 'REFUSED'],
  ])('to %s %s is %s without records', async (type, name, code) => {
    const { ask } = await zoneWith(WEB)
    const answer = ask(type, name)
    expect(codeOf(answer)).toBe(code)
    expect(answer.answers).toEqual([])
    expect(answer.authorities).toHaveLength(code === 'REFUSED' ? 0 : 1)
  })

  it('has the SOA and NS records of the domain, and refuses to amplify ANY', async () => {
    const { ask, view } = await zoneWith(WEB)
    expect(data(ask('SOA', 'leasehold'))).toMatchObject([{ serial: view.revision, minimum: 1 }])
    expect(data(ask('NS', 'leasehold'))).toEqual(['ns.leasehold'])
    expect(ask('ANY', 'web.leasehold').answers).toMatchObject([{ type: 'HINFO' }])
  })

  it('reaches names with unusual characters, and keeps two with the same label apart', async () => {
    const { ask } = await zoneWith({
      'My.Service': { 'a.b': { address: '10.0.0.1:1' }, 'a-b': { address: '10.0.0.2:1' } },
      ['x'.repeat(100)]: { one: { address: '10.0.0.3:1' } },
    })
    const answer = ask('SRV', 'my-service.leasehold', 4096)
    expect(data(answer).map((each) => (each as { target: string }).target)).toEqual([
      'a-b.instance.my-service.leasehold',
      expect.stringMatching(/^a-b-[0-9a-f]{8}\.instance\.my-service\.leasehold$/),
    ])
    for (const { data: address, name } of answer.additionals!.slice(0, 2) as never as {
      data: string
      name: string
    }[]) {
      expect(data(ask('A', name))).toEqual([address])
    }
    expect(data(ask('A', `${'x'.repeat(63)}.leasehold`))).toEqual(['10.0.0.3'])
  })

  it('names hosts as targets, and leaves out what has no port or no host', async () => {
    const { ask } = await zoneWith({
      web: {
        a: { address: 'https://embed-3.example' },
        b: { address: '10.0.0.2' },
        c: { address: 'unix:///run/x' },
        d: {},
      },
    })
    expect(data(ask('SRV', 'web.leasehold'))).toMatchObject([
      { target: 'embed-3.example', port: 443 },
    ])
    expect(data(ask('A', 'web.leasehold'))).toEqual(['10.0.0.2'])
  })

  it('has each address once', async () => {
    const { ask } = await zoneWith({
      web: { a: { address: '10.0.0.1:80' }, b: { address: '10.0.0.1:81' } },
    })
    expect(data(ask('A', 'web.leasehold'))).toEqual(['10.0.0.1'])
    expect(data(ask('SRV', 'web.leasehold'))).toHaveLength(2)
  })

  it('has weight 0 for an instance of weight 0, and equal weights if all have 0', async () => {
    const weights = async (...given: number[]) => {
      const instances = given.map((weight, at) => [`i-${at}`, { weight, address: '10.0.0.1:1' }])
      const { ask } = await zoneWith({ web: Object.fromEntries(instances) })
      return data(ask('SRV', 'web.leasehold')).map((each) => (each as { weight: number }).weight)
    }
    expect(await weights(0, 3)).toEqual([0, 65_535])
    expect(await weights(0, 0)).toEqual([1, 1])
    expect(await weights(0.000001, 1000)).toEqual([1, 65_535])
  })
})

describe('a long DNS answer', () => {
  it('of 40 instances with their addresses fits into 3 kB', async () => {
    const { ask } = await zoneWith(many(40))
    const answer = ask('SRV', 'web.leasehold', 8192)
    expect(answer.answers).toHaveLength(40)
    expect(answer.additionals).toHaveLength(41)
    expect(answer.bytes).toBeLessThan(3000)
  })

  it.each([undefined, 100, 512, 1232, 4096])(
    'is never longer than the client accepts (%s), and never empty',
    async (edns) => {
      const { ask } = await zoneWith(many(250))
      const answer = ask('SRV', 'web.leasehold', edns)
      expect(answer.bytes).toBeLessThanOrEqual(Math.max(512, edns ?? 0))
      expect(answer.flag_tc).toBe(true)
      expect(answer.answers!.length).toBeGreaterThan(4)
    },
  )

  it('leaves out addresses before answers, which is no truncation', async () => {
    const { ask } = await zoneWith(many(40))
    const answer = ask('SRV', 'web.leasehold', 2300)
    expect(answer.flag_tc).toBe(false)
    expect(answer.answers).toHaveLength(40)
    expect(answer.additionals!.length).toBeLessThan(40)
  })

  it('never points to a name that had no space', () => {
    const question = Buffer.from([1, 120, 0, 0, 1, 0, 1])
    const writer = new MessageWriter(60, question, 'x', 0)
    const data = { type: 'A', address: '10.0.0.1' } as const
    const long = `${'a'.repeat(30)}.b.x`
    expect(writer.add('answers', { name: long, ttl: 0, data })).toBe(false)
    expect(writer.add('answers', { name: 'b.x', ttl: 0, data })).toBe(true)
    expect(decode(writer.finish(0x8000)).answers).toMatchObject([{ name: 'b.x', data: '10.0.0.1' }])
  })

  it('is whole over TCP', async () => {
    const { ask } = await zoneWith(many(250))
    const answer = ask('SRV', 'web.leasehold', undefined, false)
    expect(answer.flag_tc).toBe(false)
    expect(answer.answers).toHaveLength(250)
    expect(answer.additionals).toHaveLength(250)
  })

  it('has one answer even if all names are as long as they can be', async () => {
    const long = 'x'.repeat(63)
    const host = `${'h'.repeat(63)}.${'h'.repeat(63)}.${'h'.repeat(63)}.${'h'.repeat(61)}`
    const { ask } = await zoneWith({
      [long]: { [long]: { address: `${host}:80`, zone: long, tags: ['t'] } },
    })
    const answer = ask('SRV', `t.tag.${long}.zone.${long}.leasehold`, 512)
    expect(answer.answers).toHaveLength(1)
    expect(answer.bytes).toBeLessThanOrEqual(512)
  })

  it('goes beyond 16 kB, where names can no longer be pointed to', async () => {
    const { ask } = await zoneWith(many(700))
    const answer = ask('SRV', 'web.leasehold', undefined, false)
    expect(answer.bytes).toBeGreaterThan(2 ** 15)
    expect(answer.additionals).toHaveLength(700)
    expect(new Set(answer.additionals!.map(({ name }) => name)).size).toBe(700)
  })
})

describe('a malformed or unsupported query', () => {
  it('gets no answer if it is too short or is itself an answer', async () => {
    const { send } = await zoneWith(WEB)
    expect(send(Buffer.alloc(0))).toBeUndefined()
    expect(send(Buffer.alloc(11))).toBeUndefined()
    const question = [{ type: 'A', name: 'web.leasehold' }] as const
    expect(send(encode({ type: 'response', questions: [...question] }))).toBeUndefined()
  })

  const query = (more: object = {}) =>
    encode({ type: 'query', id: 9, questions: [{ type: 'A', name: 'web.leasehold' }], ...more })
  const changed = (change: (bytes: Buffer) => void) => {
    const bytes = query()
    change(bytes)
    return bytes
  }

  it.each([
    ['a name that points to itself', changed((bytes) => bytes.writeUInt16BE(0xc00c, 12)), 1],
    ['two questions', changed((bytes) => bytes.writeUInt16BE(2, 4)), 1],
    ['no question', changed((bytes) => bytes.writeUInt16BE(0, 4)), 1],
    ['answers', changed((bytes) => bytes.writeUInt16BE(1, 6)), 1],
    ['65,535 additional records', changed((bytes) => bytes.writeUInt16BE(65_535, 10)), 1],
    ['an end within its name', query().subarray(0, 16), 1],
    ['an update', changed((bytes) => bytes.writeUInt8(5 << 3, 2)), 4],
    ['the class CHAOS', changed((bytes) => bytes.writeUInt8(3, bytes.length - 1)), 5],
  ])('with %s gets a code and nothing else', async (_, bytes, code) => {
    const { send } = await zoneWith(WEB)
    const answer = send(bytes)!
    expect(answer.readUInt16BE(0)).toBe(9)
    expect(answer[3]! & 15).toBe(code)
    expect(answer).toHaveLength(12)
  })

  it('with a later version of EDNS gets BADVERS', async () => {
    const { send } = await zoneWith(WEB)
    const opt = { type: 'OPT', name: '.', udpPayloadSize: 1232, ednsVersion: 1, options: [] }
    const answer = decode(send(query({ additionals: [opt] }))!)
    expect(answer.answers).toEqual([])
    expect(answer.additionals).toMatchObject([{ extendedRcode: 1, ednsVersion: 0 }])
  })
})
