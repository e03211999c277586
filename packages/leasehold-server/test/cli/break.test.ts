import { Leasehold } from 'leasehold'
import { remoteStore } from 'leasehold/remote'
import { afterAll, describe, expect, it } from 'vitest'
import { Scene } from '../http/scene.ts'
import { runLeasehold } from '../setup/run-leasehold.ts'
import { Place } from '../setup/server-process.ts'

const place = new Place()
afterAll(() => place.clean())

interface Tenure {
  readonly holder: string
  readonly end: { readonly reason: string; readonly by?: string; readonly why?: string }
}

/** Holds a key through a server, breaks it by the command line, and reads its history there. */
async function broken(url: string, tokens: { worker?: string; ops?: string } = {}) {
  const store = await remoteStore(url, { timeout: '20s', accessToken: tokens.worker })
  const leasehold = await Leasehold.open(store, { holder: 'render-1', callTimeout: '20s' })
  const env = { LEASEHOLD_URL: url, ...(tokens.ops && { LEASEHOLD_ACCESS_TOKEN: tokens.ops }) }
  const run = (...args: string[]) => runLeasehold(args, { env })
  const lock = await leasehold.lock('jobs/1', { ttl: '30s' })
  const ran = await run('break', 'jobs/1', '--after', '2s', '--why', 'too slow')
  expect(ran).toMatchObject({ code: 0, stderr: '' })
  await expect.poll(() => lock.state, { timeout: 20_000 }).toBe('lost')
  const read = async () => {
    const { stdout } = await run('history', 'jobs/1', '--json')
    return (JSON.parse(stdout) as Tenure[]).map(({ holder, end }) => ({ holder, ...end }))
  }
  await expect.poll(async () => (await read()).length, { timeout: 20_000 }).toBe(1)
  await leasehold.close()
  await store.close()
  return (await read())[0]
}

describe('leasehold break', () => {
  it.each([
    ['folder', undefined],
    ['memory', 'memory:'],
  ] as const)('is what the history tells, on a served %s', async (_name, url) => {
    const server = await place.server(url)
    expect(await broken(server.url)).toEqual({
      holder: 'render-1',
      reason: 'broken',
      by: expect.stringMatching(/by the command line$/),
      why: 'too slow',
    })
  })

  it('is shown with the name of the token that did it', async () => {
    const scene = await Scene.open()
    const ops = await scene.token('ops', 'all:')
    const worker = await scene.token('worker', 'claim:jobs/')
    const loss = await broken(scene.server.url, { worker, ops })
    expect(loss).toMatchObject({ reason: 'broken', by: 'ops', why: 'too slow' })
    await scene.close()
  })
})
