import { Leasehold } from 'leasehold'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Scene } from '../scene.ts'

let scene: Scene
let leasehold: Leasehold
beforeEach(async () => {
  scene = await Scene.open()
  leasehold = await Leasehold.open(scene.server.url, { holder: 'program' })
})
afterEach(async () => {
  await leasehold.close()
  await scene.close()
})

const NAME = 'report/2026-11'
const ask = async (what: string, body?: unknown) =>
  (await scene.ask(what.replace(' ', ` /v1/once/${NAME}`), body)).body

describe('once over HTTP', () => {
  it('lets one caller do the work; all others, programs too, wait for its result', async () => {
    expect(await ask('GET ')).toEqual({ done: false })
    const { done, lease, token, remaining } = await ask('POST ?ttl=20s&holder=ada')
    expect([done, remaining]).toEqual([false, 20_000])
    expect(await ask('POST ')).toMatchObject({ code: 'busy', status: 409, holder: 'ada' })
    const other = ask('POST ?wait=20s')
    const program = leasehold.once(NAME, () => 'done by the program', { wait: '20s' })
    const finished = await ask(`PUT ?lease=${lease}&token=${token}`, { result: { rows: 7 } })
    expect(finished).toMatchObject({ done: true, result: { rows: 7 } })
    expect([finished.at, finished.until].map(Number.isInteger)).toEqual([true, true])
    expect(await other).toEqual(finished)
    expect(await program).toMatchObject({ ran: false, result: { rows: 7 } })
    expect(await ask('GET ')).toEqual(finished)
    // Nothing is left but the result.
    expect((await scene.store.read({ key: `once/run/${NAME}` })).count).toBe(0)
  })

  it('returns what a program has done, and forgets it', async () => {
    await leasehold.once(NAME, () => 5)
    expect(await ask('POST ')).toMatchObject({ done: true, result: 5, by: 'program' })
    expect(await ask('DELETE ')).toEqual({ forgotten: true })
    expect(await ask('DELETE ')).toEqual({ forgotten: false })
    expect(await ask('POST ')).toMatchObject({ done: false })
  })

  it('lets the next caller start if one fails or is too late', async () => {
    const { lease, token } = await ask('POST ')
    const next = ask('POST ?wait=20s')
    await scene.ask(`DELETE /v1/leases/${lease}`)
    expect(await next).toMatchObject({ done: false })
    const late = await ask(`PUT ?lease=${lease}&token=${token}`, { result: 'too late' })
    expect(late).toMatchObject({ code: 'lost', status: 410 })
    expect(await ask('GET ')).toEqual({ done: false })
  })

  it('answers a late caller with the result that was stored', async () => {
    const { lease, token } = await ask('POST ')
    await scene.ask(`DELETE /v1/leases/${lease}`)
    await leasehold.once(NAME, () => 'first')
    const late = await ask(`PUT ?lease=${lease}&token=${token}`, { result: 'second' })
    expect(late).toMatchObject({ done: true, result: 'first', by: 'program' })
  })
})
