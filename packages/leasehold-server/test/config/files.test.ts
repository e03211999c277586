import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { isLeaseholdError } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { afterAll, describe, expect, it } from 'vitest'
import { AUDIT_FILES_KEPT } from '../../src/config/audit-log.ts'
import {
  AuditLog,
  keepSecretsKey,
  loadConfig,
  readSecretsKey,
  readTls,
} from '../../src/config/index.ts'
import { runLeasehold } from '../setup/run-leasehold.ts'
import { Place } from '../setup/server-process.ts'

const place = new Place()
afterAll(() => place.clean())

const KEY = `${Buffer.alloc(32, 1).toString('base64')}\n`
const modeOf = (file: string) => statSync(file).mode & 0o777

/** What is at the path instead of a file, and its name in the refusal. */
const ODD: readonly [string, RegExp, (file: string) => void][] = [
  ['a folder', /it is a folder, not a file/, (file) => mkdirSync(file)],
  ['a named pipe', /it is a named pipe, not a file/, (file) => execFileSync('mkfifo', [file])],
  ['an empty file', /it is empty/, (file) => writeFileSync(file, '')],
  [
    'a huge file',
    /it has 2000000 bytes; the maximum is 1048576/,
    (file) => {
      writeFileSync(file, Buffer.alloc(2_000_000, 'a'))
    },
  ],
]

/** Every file that the server reads. */
const READERS: readonly [string, (file: string) => void][] = [
  ['the key of lease secrets in the data', (file) => keepSecretsKey(file)],
  ['a key of lease secrets that is named', (file) => readSecretsKey(file, 'a test')],
  ['the configuration', (file) => loadConfig({ config: file }, {})],
  ['a certificate', (file) => readTls(loadConfig({ tlsCert: file, tlsKey: file }, {}))],
]

describe.each(READERS)('%s', (_, read) => {
  it.each(ODD)('is refused with a reason if it is %s', async (_kind, reason, make) => {
    const file = join(await place.folder(), 'file')
    make(file)
    const refusal = thrownBy(() => read(file))
    expect(isLeaseholdError(refusal, 'invalid-argument')).toBe(true)
    expect(refusal.message).toMatch(reason)
    expect(refusal.message).toContain(file)
  })
})

describe('the audit', () => {
  const open = (file: string, max?: number) =>
    new AuditLog(
      file,
      'a test',
      new TestClock(),
      (error) => {
        throw error
      },
      max,
    )

  it.each(ODD.slice(0, 2))('is refused if it would go to %s', async (_kind, reason, make) => {
    const file = join(await place.folder(), 'audit.log')
    make(file)
    expect(thrownBy(() => open(file)).message).toMatch(new RegExp(`${reason.source}|EISDIR|ENXIO`))
  })

  it('is bounded: a limited number of full files is kept, and no line is split', async () => {
    const folder = await place.folder()
    const file = join(folder, 'audit.log')
    const audit = open(file, 1000)
    for (let at = 0; at < 200; at++) {
      audit.record({ action: 'revoke', by: 'ann', target: { key: `k${at}` }, outcome: 'done' })
    }
    audit.close()
    const files = readdirSync(folder)
    expect(files).toHaveLength(AUDIT_FILES_KEPT + 1)
    let last = 199
    for (const name of files.sort()) {
      const text = readFileSync(join(folder, name), 'utf8')
      expect(text.length).toBeLessThanOrEqual(1000)
      expect(modeOf(join(folder, name))).toBe(0o600)
      const keys = text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).target.key)
      for (const key of keys.toReversed()) expect(key).toBe(`k${last--}`)
    }
  })

  it('continues the file after a restart, and makes it unreadable for others', async () => {
    const file = join(await place.folder(), 'audit.log')
    writeFileSync(file, `${'x'.repeat(899)}\n`, { mode: 0o644 })
    const audit = open(file, 1000)
    expect(modeOf(file)).toBe(0o600)
    audit.record({ action: 'revoke', by: 'ann', outcome: 'done', why: 'y'.repeat(100) })
    audit.close()
    expect(readFileSync(`${file}.1`, 'utf8')).toHaveLength(900)
    expect(readFileSync(file, 'utf8')).toContain('"ann"')
  })

  it('cuts long values that a client sent', async () => {
    const file = join(await place.folder(), 'audit.log')
    const audit = open(file)
    const target = { lease: 'a'.repeat(1_000_000) }
    audit.record({ action: 'renew', by: 'eve', target, outcome: 'forbidden' })
    audit.close()
    expect(statSync(file).size).toBeLessThan(2000)
    expect(JSON.parse(readFileSync(file, 'utf8')).target.lease).toMatch(
      /^a+… \(1000000 characters\)$/,
    )
  })
})

describe('the key of lease secrets', () => {
  it('is taken from the eyes of others if it is the server’s own, and warned of if it is not', async () => {
    const file = join(await place.folder(), 'secrets.key')
    writeFileSync(file, KEY)
    chmodSync(file, 0o644)
    const warnings: string[] = []
    const named = readSecretsKey(file, 'a test', (message) => warnings.push(message))
    expect(warnings).toEqual([
      expect.stringMatching(/every user of this machine can read .* chmod 600/),
    ])
    expect(keepSecretsKey(file)).toEqual(named)
    expect(modeOf(file)).toBe(0o600)
    readSecretsKey(file, 'a test', (message) => warnings.push(message))
    expect(warnings).toHaveLength(1)
  })

  it('is written completely, even after a crash during an earlier attempt', async () => {
    const folder = await place.folder()
    const file = join(folder, 'secrets.key')
    writeFileSync(`${file}.new`, 'half')
    const key = keepSecretsKey(file)
    expect(key).toHaveLength(32)
    expect(keepSecretsKey(file)).toEqual(key)
    expect([modeOf(file), existsSync(`${file}.new`)]).toEqual([0o600, false])
  })

  it('is in a backup for its owner alone, even if it was open to others', async () => {
    const folder = await place.folder()
    const from = join(folder, 'data')
    const make = ['access-token', 'create', 'ann', '--right', 'all:', '--store', `file:${from}`]
    expect((await runLeasehold(make)).code).toBe(0)
    writeFileSync(join(from, 'secrets.key'), KEY)
    chmodSync(join(from, 'secrets.key'), 0o644)
    const to = join(folder, 'backup')
    expect((await runLeasehold(['backup', to, '--store', `file:${from}`])).code).toBe(0)
    expect([modeOf(to), modeOf(join(to, 'secrets.key'))]).toEqual([0o700, 0o600])
    expect(readFileSync(join(to, 'secrets.key'), 'utf8')).toBe(KEY)
  })
})

function thrownBy(call: () => unknown): Error {
  try {
    call()
  } catch (error) {
    return error as Error
  }
  throw new Error('nothing was thrown')
}
