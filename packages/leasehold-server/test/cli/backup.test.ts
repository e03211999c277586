import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { LeaseStore } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { afterAll, describe, expect, it } from 'vitest'
import { runLeasehold } from '../setup/run-leasehold.ts'
import { Place } from '../setup/server-process.ts'

const place = new Place()
afterAll(() => place.clean())

async function hold(store: LeaseStore, key: string) {
  const granted = await store.grant({ holder: 'a', ttl: 600_000, claims: [{ key }] })
  if (granted.outcome === 'busy') throw new Error('busy')
  return granted
}

async function storeWithAccessToken() {
  const root = await place.folder()
  const data = join(root, 'data')
  const token = ['access-token', 'create', 'a', '--right', 'all:']
  await runLeasehold([...token, '--store', `file:${data}`])
  return { root, data }
}

describe('leasehold backup and restore', () => {
  it('restore all leases, from a server under load, and never give a token twice', async () => {
    const root = await place.folder()
    const [data, copy, restored] = ['data', 'copy', 'restored'].map((name) => join(root, name)) as [
      string,
      string,
      string,
    ]
    const server = await place.serverOn(`file:${data}`).start()
    const store = await remoteStore(server.url, { timeout: '30s' })
    const kept = await hold(store, 'kept')
    let stop = false
    let highest = 0
    const load = (async () => {
      for (let at = 0; !stop; at++) highest = (await hold(store, `load/${at}`)).token
    })()
    const backup = await runLeasehold(['backup', copy, '--store', `file:${data}`, '--json'])
    expect(backup).toMatchObject({ code: 0, stderr: '' })
    const { revision } = JSON.parse(backup.stdout) as { revision: number }
    expect(revision).toBeGreaterThanOrEqual(kept.token)
    // Time passes, tokens are given that the backup does not know, and then the disk is lost.
    const then = highest
    await expect
      .poll(() => highest, { timeout: 20_000 })
      .toBeGreaterThan(Math.max(then, revision) + 10)
    stop = true
    await load
    await store.close()
    await server.end('SIGKILL')

    const ran = await runLeasehold(['restore', copy, '--store', `file:${restored}`])
    expect(ran).toMatchObject({ code: 0, stderr: '' })
    expect(ran.stdout).toMatch(
      /restored .*: \d+ leases? with the full ttl again; tokens continue above \d+/,
    )
    const next = await place.serverOn(`file:${restored}`).start()
    const after = await remoteStore(next.url, { timeout: '30s' })
    expect((await after.read({ lease: kept.lease })).claims[0]).toMatchObject({ token: kept.token })
    const { token } = await hold(after, 'new')
    expect(token).toBeGreaterThan(highest)
    await after.close()
    expect(await next.end('SIGTERM')).toBe(0)

    // From the same backup again: above all tokens that were given since.
    const twice = join(root, 'twice')
    expect((await runLeasehold(['restore', copy, '--store', `file:${twice}`])).code).toBe(0)
    const third = await place.serverOn(`file:${twice}`).start()
    const last = await remoteStore(third.url, { timeout: '30s' })
    expect((await hold(last, 'new')).token).toBeGreaterThan(token)
    await last.close()
    expect(readFileSync(join(restored, 'secrets.key'))).toEqual(
      readFileSync(join(data, 'secrets.key')),
    )
    expect(statSync(join(copy, 'secrets.key')).mode & 0o777).toBe(0o600)
  }, 90_000)

  it('do not touch existing files, and leave nothing unfinished behind', async () => {
    const { root, data } = await storeWithAccessToken()
    const taken = await runLeasehold(['restore', data, '--store', `file:${data}`])
    expect(taken).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/is not empty: move it away first/),
    })
    const none = await runLeasehold(['backup', join(root, 'copy'), '--store', `file:${root}`])
    expect(none).toMatchObject({ code: 2, stderr: expect.stringMatching(/holds no store/) })
    expect(
      (await runLeasehold(['backup', join(root, 'copy'), '--store', 'memory:'])).stderr,
    ).toMatch(/has no folder/)
    const wrong = ['restore', data, '--store', `file:${root}/x`, '--tokens-above', '-1']
    expect((await runLeasehold(wrong)).code).toBe(2)
    expect(readdirSync(root)).toEqual(['data'])
  })

  it('take the highest token from the caller', async () => {
    const { root, data } = await storeWithAccessToken()
    const above = 8_000_000_000_000_000
    const to = `file:${join(root, 'to')}`
    const ran = await runLeasehold([
      'restore',
      data,
      '--store',
      to,
      '--tokens-above',
      String(above),
      '--json',
    ])
    expect(JSON.parse(ran.stdout)).toMatchObject({ tokensAbove: above, leases: 1 })
    const lock = await runLeasehold([
      'lock',
      'k',
      '--store',
      to,
      '--',
      'sh',
      '-c',
      'echo $LEASEHOLD_TOKEN',
    ])
    expect(Number(lock.stdout)).toBeGreaterThan(above)
  })

  it('create an empty store in place of a lost one, with higher tokens', async () => {
    const root = await place.folder()
    const data = join(root, 'data')
    const url = `file:${data}`
    const server = await place.serverOn(url).start()
    const store = await remoteStore(server.url, { timeout: '30s' })
    const { token } = await hold(store, 'k')
    await store.close()
    expect(await server.end('SIGTERM')).toBe(0)

    // The log is gone, or all but the key of lease secrets: an empty store would let anybody in.
    for (const lost of [/^log-/, /^(log-|manifest)/]) {
      for (const name of readdirSync(data)) if (lost.test(name)) rmSync(join(data, name))
      const refused = await runLeasehold(['serve', '--store', url, '--port', '0'])
      expect(refused.code).not.toBe(0)
      expect(refused.stderr).toMatch(/leasehold restore --empty/)
    }
    expect(readdirSync(data)).toEqual(['audit.log', 'secrets.key'])

    renameSync(data, join(root, 'lost'))
    expect((await runLeasehold(['restore', '--store', url])).code).toBe(2)
    expect((await runLeasehold(['restore', root, '--empty', '--store', url])).code).toBe(2)
    const ran = await runLeasehold(['restore', '--empty', '--store', url])
    expect(ran).toMatchObject({ code: 0, stderr: '' })
    expect(ran.stdout).toMatch(/created an empty store in .*; tokens continue above \d+/)
    const next = await place.serverOn(url).start()
    const after = await remoteStore(next.url, { timeout: '30s' })
    expect((await hold(after, 'k')).token).toBeGreaterThan(token)
    await after.close()
    expect(await next.end('SIGTERM')).toBe(0)
  }, 90_000)

  it('do not wait for a key of lease secrets that is not a file', async () => {
    const { root, data } = await storeWithAccessToken()
    rmSync(join(data, 'secrets.key'), { force: true })
    execFileSync('mkfifo', [join(data, 'secrets.key')])
    const ran = await runLeasehold(['backup', join(root, 'copy'), '--store', `file:${data}`])
    expect(ran).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/secrets.key.* is a named pipe, not a file/),
    })
    expect(readdirSync(root)).toEqual(['data'])
  })
})
