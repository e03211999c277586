import { execFile } from 'node:child_process'
import { Resolver } from 'node:dns/promises'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { memoryStore } from 'leasehold/memory'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeWith, findProgram } from '../../../../leasehold/test/engines/index.ts'
import { createServer, type LeaseServer } from '../../../src/index.ts'

const run = promisify(execFile)
const store = memoryStore()
let server: LeaseServer
let port: number

beforeAll(async () => {
  for (let at = 0; at < 100; at++) {
    const value = JSON.stringify({ address: `10.0.0.${at}:8080`, tags: at < 3 ? ['gpu'] : [] })
    await store.grant({
      holder: 't',
      ttl: 60_000,
      claims: [{ key: `services/web/i-${at}`, value }],
    })
  }
  const six = JSON.stringify({ address: '[fd00::6]:8080' })
  await store.grant({ holder: 't', ttl: 60_000, claims: [{ key: 'services/six/a', value: six }] })
  server = await createServer({ store, port: 0, gateways: { dns: { host: '127.0.0.1', port: 0 } } })
  port = server.dnsPort!
})
afterAll(async () => {
  await server.close()
  await store.close()
})

const program = (name: string) => ({
  name,
  program: findProgram(name),
  args: () => [],
  ready: /$/,
})

describeWith(program('dig'), 'dig', () => {
  const dig = async (...args: string[]) =>
    (await run('dig', ['@127.0.0.1', '-p', String(port), '+tries=1', ...args])).stdout

  it('gets all records, by TCP after a truncated answer', async () => {
    const text = await dig('SRV', 'web.leasehold')
    expect(text).toContain('ANSWER: 100')
    expect(text).toContain('(TCP)')
    expect(text).toContain('status: NOERROR')
    expect(text).not.toContain('Warning')
  })

  it('gets a part by UDP if it does not ask again', async () => {
    const text = await dig('SRV', 'web.leasehold', '+ignore', '+bufsize=1232')
    expect(text).toMatch(/flags: qr aa tc rd/)
    expect(text).toMatch(/ANSWER: [1-9]\d/)
  })

  it('gets names that do not exist, and types that a name does not have', async () => {
    expect(await dig('A', 'nothing.leasehold')).toMatch(/NXDOMAIN[\s\S]*SOA\tns\.leasehold\. host/)
    expect(await dig('AAAA', 'web.leasehold')).toMatch(/NOERROR[\s\S]*ANSWER: 0[\s\S]*SOA/)
    expect(await dig('A', 'example.com')).toContain('REFUSED')
  })

  it('gets a cookie option and DNSSEC flags ignored', async () => {
    expect(await dig('A', 'gpu.tag.web.leasehold', '+cookie', '+dnssec')).toContain('ANSWER: 3')
  })
})

describe("Node's resolver", () => {
  const resolver = () => {
    const it = new Resolver({ timeout: 5000, tries: 1 })
    it.setServers([`127.0.0.1:${port}`])
    return it
  }

  it('finds services by SRV, A and AAAA, by TCP if there are many', async () => {
    const found = await resolver().resolveSrv('_web._tcp.leasehold')
    expect(found).toHaveLength(100)
    expect(found).toContainEqual({
      ...{ name: 'i-7.instance.web.leasehold', port: 8080, priority: 0, weight: 65_535 },
    })
    expect((await resolver().resolve4('gpu.tag.web.leasehold')).sort()).toEqual([
      ...['10.0.0.0', '10.0.0.1', '10.0.0.2'],
    ])
    expect(await resolver().resolve4('i-7.instance.web.leasehold', { ttl: true })).toEqual([
      { address: '10.0.0.7', ttl: 0 },
    ])
    expect(await resolver().resolve6('six.leasehold')).toEqual(['fd00::6'])
  })

  it('tells missing names from missing types', async () => {
    await expect(resolver().resolve4('no.leasehold')).rejects.toMatchObject({ code: 'ENOTFOUND' })
    await expect(resolver().resolve6('web.leasehold')).rejects.toMatchObject({ code: 'ENODATA' })
  })
})

/**
 * glibc asks only port 53 of the servers in /etc/resolv.conf. So this needs root: for the port, and
 * for a mount namespace with its own file.
 */
const canUnshare = await run('unshare', ['--mount', 'true']).then(
  () => process.getuid?.() === 0,
  () => false,
)

describe.skipIf(!canUnshare)("glibc's resolver (skipped without root and unshare)", () => {
  it('finds services by getent, also those that need TCP', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-glibc-'))
    const host = '127.53.74.20'
    const onPort53 = await createServer({ store, port: 0, gateways: { dns: { host, port: 53 } } })
    try {
      writeFileSync(join(folder, 'resolv.conf'), `nameserver ${host}\noptions timeout:5\n`)
      writeFileSync(join(folder, 'nsswitch.conf'), 'hosts: dns\n')
      const getent = async (...args: string[]) => {
        const binds = ['resolv.conf', 'nsswitch.conf']
          .map((name) => `mount --bind ${join(folder, name)} /etc/${name}`)
          .join(' && ')
        const script = `${binds} && exec getent ${args.join(' ')}`
        return (await run('unshare', ['--mount', 'sh', '-c', script])).stdout
      }
      expect(await getent('ahostsv4', 'i-7.instance.web.leasehold')).toMatch(/^10\.0\.0\.7 /)
      expect(await getent('ahostsv6', 'six.leasehold')).toMatch(/^fd00::6 /)
      const all = await getent('ahostsv4', 'web.leasehold')
      expect(all.match(/ STREAM/g)).toHaveLength(100)
      // getent ends with 2 for a name that does not exist.
      await expect(getent('ahosts', 'no.leasehold')).rejects.toMatchObject({ code: 2 })
    } finally {
      await onPort53.close()
      rmSync(folder, { recursive: true })
    }
  }, 30_000)
})
