import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isLeaseholdError, systemClock } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { afterAll, describe, expect, it } from 'vitest'
import { AccessTokens, parseRight } from '../../src/access/index.ts'
import { flagOf, SETTING_NAMES, SETTINGS, variableOf } from '../../src/config/index.ts'
import { openStore } from '../../src/index.ts'
import { runLeasehold } from '../setup/run-leasehold.ts'
import { Place } from '../setup/server-process.ts'

const place = new Place()
afterAll(() => place.clean())

const certificate = (name: string) =>
  fileURLToPath(new URL(`../certificates/${name}`, import.meta.url))
const pem = (name: string) => readFileSync(certificate(name))
const TLS = ['--tls-cert', certificate('server.pem'), '--tls-key', certificate('server.key')]

describe('leasehold serve --help', () => {
  it('names every setting, by flag and by variable', async () => {
    const { stdout, code } = await runLeasehold(['serve', '--help'])
    expect(code).toBe(0)
    for (const name of SETTING_NAMES) {
      expect(stdout).toContain(flagOf(SETTINGS[name]))
      expect(stdout.replaceAll(/\s+/g, ' ')).toContain(`[${variableOf(SETTINGS[name])}]`)
    }
  })
})

describe('leasehold serve, configured', () => {
  it('reads leasehold.json in its working directory', async () => {
    const cwd = await place.folder()
    writeFileSync(join(cwd, 'leasehold.json'), '{ "prot": 7420 }')
    const { code, stderr } = await runLeasehold(['serve'], { cwd })
    expect(code).toBe(2)
    expect(stderr).toMatch(/^leasehold: "prot" in leasehold\.json is not a setting\. .*\n$/)
  })

  it.each<[string, string[], RegExp]>([
    [
      'a key without a certificate',
      ['--tls-key', 'x'],
      /tlsKey is "x" \(from --tls-key\) but --tls-cert is missing/,
    ],
    [
      'authorities without a certificate',
      ['--tls-ca', 'x'],
      /tlsCa is "x" \(from --tls-ca\) but --tls-cert is missing/,
    ],
    [
      'a certificate that is not there',
      ['--tls-cert', 'no.pem', '--tls-key', 'x'],
      /tlsCert is "no\.pem" \(from --tls-cert\) and cannot be read/,
    ],
    [
      'a key of another certificate',
      [...TLS.slice(0, 3), certificate('worker.key')],
      /tlsKey is .* and cannot be used: .* the key must match the certificate/,
    ],
    [
      'an audit in a folder that is not there',
      ['--audit', 'no/such/audit.log'],
      /audit is "no\/such\/audit\.log" \(from --audit\) and cannot be written/,
    ],
    [
      'a key of secrets that is too short',
      ['--secrets-key-file', certificate('README.md')],
      /must contain at least 32 bytes in base64/,
    ],
    [
      'a network without protection',
      ['--host', '0.0.0.0'],
      /host is "0\.0\.0\.0" \(from --host\), which other machines can reach, and anybody .*\(use --tls-ca, or serve 'file:<folder>' .* --store file:<folder>'.*; and traffic, including access tokens, can be read.*use --insecure-open-network/,
    ],
    [
      'a network with TLS but without tokens',
      ['--host', '0.0.0.0', ...TLS],
      /and anybody who reaches it can take and end every lease \(use --tls-ca, or serve [^;]*$/,
    ],
  ])('refuses %s', async (_name, args, message) => {
    const cwd = await place.folder()
    const ran = await runLeasehold(['serve', '--store', 'memory:', '--port', '0', ...args], { cwd })
    expect(ran.stderr).toMatch(message)
    expect(ran.stderr.trimEnd().split('\n')).toHaveLength(1)
    expect(ran.code).toBe(2)
  })

  it('listens on a network without tokens if that is explicitly allowed', async () => {
    const server = await place.server('memory:', ['--host', '0.0.0.0', '--insecure-open-network'])
    expect(await server.end('SIGTERM')).toBe(0)
  })

  it('listens on a network once there are TLS and a token', async () => {
    const folder = await place.folder()
    const { store } = await openStore(`file:${folder}`)
    const book = await AccessTokens.open(store, systemClock)
    await book.create({ name: 'admin', rights: [parseRight('all:')] })
    book.close()
    await store.close()
    const server = place.serverOn(`file:${folder}`, ['--host', '0.0.0.0', ...TLS])
    await server.start()
    expect(await server.end('SIGTERM')).toBe(0)
  })

  it('keeps the key of lease secrets in the folder, for its owner alone, and uses it again', async () => {
    const server = await place.server()
    const folder = server.store.slice('file:'.length)
    const file = join(folder, 'secrets.key')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const key = readFileSync(file, 'utf8')
    const open = await remoteStore(server.url, { timeout: '20s' })
    const book = await AccessTokens.open(open, systemClock)
    const rights = ['claim,read:', 'admin:leasehold/'].map(parseRight)
    const token = await book.create({ name: 'worker', rights })
    book.close()
    await open.close()
    // Ids with their secrets, as they go over the wire.
    const store = await remoteStore(server.url, { headers: { authorization: `Bearer ${token}` } })
    const granted = await store.grant({ holder: 'a', ttl: 60_000 })
    if (granted.outcome !== 'granted') throw new Error('not granted')
    expect(granted.lease).toContain('~')
    await server.end('SIGTERM')
    await server.start()
    expect(readFileSync(file, 'utf8')).toBe(key)
    expect((await store.renew([granted.lease])).lost).toEqual([])
    await store.close()
  })

  it('records ends by force, and opens a new file on the signal that the old one was moved', async () => {
    const server = await place.server()
    const file = join(server.store.slice('file:'.length), 'audit.log')
    const store = await remoteStore(server.url)
    await store.grant({ holder: 'a', ttl: 60_000, claims: [{ key: 'k' }] })
    const revoke = (why: string) => store.revoke({ target: { key: 'k' }, by: 'ops', why })
    await revoke('it hangs')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const [line] = readFileSync(file, 'utf8').split('\n')
    expect(JSON.parse(line!)).toEqual({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      action: 'revoke',
      by: 'ops',
      target: { key: 'k' },
      why: 'it hangs',
      outcome: 'done',
    })
    await rename(file, `${file}.1`)
    server.signal('SIGHUP')
    await expect.poll(() => statSync(file, { throwIfNoEntry: false })?.size).toBe(0)
    await revoke('again')
    expect(readFileSync(file, 'utf8')).toContain('"again"')
    expect(readFileSync(`${file}.1`, 'utf8')).not.toContain('"again"')
    await store.close()
  })
})

describe('leasehold serve with TLS', () => {
  it('serves the stream and HTTP over TLS, and nothing without it', async () => {
    const server = await place.server('memory:', TLS)
    expect(server.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
    const store = await remoteStore(server.url, { tls: { ca: pem('ca.pem') } })
    expect((await store.grant({ holder: 'a', ttl: 1000 })).outcome).toBe('granted')
    await store.close()
    await expect(remoteStore(server.url, { timeout: '1s' })).rejects.toThrow(/certificate|signed/)
    await expect(fetch(server.url.replace('https', 'http'))).rejects.toThrow()
  })

  it('identifies a client by its certificate, and refuses clients without one', async () => {
    const server = await place.server('memory:', [...TLS, '--tls-ca', certificate('ca.pem')])
    const as = (name: string) =>
      remoteStore(server.url, {
        timeout: '2s',
        tls: { ca: pem('ca.pem'), cert: pem(`${name}.pem`), key: pem(`${name}.key`) },
      })
    const store = await as('worker')
    const book = await AccessTokens.open(store, systemClock)
    await book.create({
      name: 'job-runner',
      rights: ['claim,read:jobs/', 'admin:leasehold/'].map(parseRight),
      certificate: 'worker',
    })
    book.close()
    await store.close()
    const worker = await as('worker')
    const hold = (key: string) =>
      worker.grant({ holder: 'a', ttl: 60_000, claims: [{ key }] }).then((it) => it.outcome)
    expect(await hold('jobs/1')).toBe('granted')
    await expect(hold('other')).rejects.toThrow(/"job-runner" has no right to claim "other"/)
    await worker.close()
    await expect(as('stranger')).rejects.toSatisfy((error) => isLeaseholdError(error, 'timeout'))
    const bare = remoteStore(server.url, { timeout: '1s', tls: { ca: pem('ca.pem') } })
    await expect(bare).rejects.toSatisfy((error) => isLeaseholdError(error, 'timeout'))
  })

  it('reloads the certificates on a signal, and keeps the old ones if the new ones are invalid', async () => {
    const folder = await place.folder()
    const paths = ['cert', 'key'].map((name) => join(folder, name))
    const install = (name: string) => {
      writeFileSync(paths[0]!, pem(`${name}.pem`))
      writeFileSync(paths[1]!, pem(`${name}.key`))
    }
    install('server')
    const args = ['--tls-cert', paths[0]!, '--tls-key', paths[1]!, '--log-level', 'info']
    const server = await place.server('memory:', args)
    const connects = () =>
      remoteStore(server.url, { timeout: '1s', tls: { ca: pem('ca.pem') } }).then(
        (store) => store.close().then(() => true),
        () => false,
      )
    expect(await connects()).toBe(true)
    writeFileSync(paths[0]!, 'no certificate')
    server.signal('SIGHUP')
    await server.said(/keeping the previous certificates/)
    expect(await connects()).toBe(true)
    install('stranger')
    server.signal('SIGHUP')
    await server.said(/reloaded the certificates/)
    expect(await connects()).toBe(false)
  })
})
