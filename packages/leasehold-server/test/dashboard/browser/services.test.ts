import { expect, it } from 'vitest'
import type { Scene } from '../scene.ts'
import { Dashboard, describeInBrowser } from './browser.ts'

const SERVICES = 200
const INSTANCES = 20
/** A screen shows sixty frames a second: the work for one must take less. */
const FRAME_MS = 1000 / 60

interface Described {
  readonly tags?: readonly string[]
  readonly status?: 'passing' | 'critical'
  readonly load?: number
}

/** The content of an instance's claim. */
function description({ tags = [], status = 'passing', load = 0 }: Described): string {
  return JSON.stringify({
    ...{ endpoints: {}, capabilities: ['embed'], tags, metadata: {}, weight: 1, load },
    ...{ zone: 'a', report: { status, count: 1 } },
  })
}

async function register(scene: Scene, service: string, ids: readonly string[], like: Described) {
  const value = description(like)
  const claims = ids.map((id) => ({ key: `services/${service}/${id}`, value }))
  const granted = await scene.store.grant({ holder: `host-${service}`, ttl: 600_000, claims })
  if (granted.outcome === 'busy') throw new Error(`${service} is busy`)
  return granted
}

describeInBrowser('the services in a browser', () => {
  const dashboard = new Dashboard()

  it('are found by name, instance, status and tag, and are ordered and collapsed', async () => {
    const scene = await dashboard.scene()
    await register(scene, 'api', ['a-1', 'a-2', 'a-3'], { tags: ['blue'] })
    await register(scene, 'web', ['w-1'], { tags: ['green'] })
    await register(scene, 'web', ['w-2'], { tags: ['blue'], status: 'critical' })
    const visit = await dashboard.openLive('services')
    const { page } = dashboard
    const names = () => page.locator('.service h2 a').allInnerTexts()
    const ids = () => page.locator('.instance b').allInnerTexts()
    await expect.poll(names).toEqual(['api', 'web'])
    await page.getByText('5 instances of 2 services').waitFor()
    expect(await visit.complaints()).toEqual([])
    await page.getByLabel('Search services').fill('w-')
    await expect.poll(ids).toEqual(['w-1', 'w-2'])
    await page.getByLabel('Search services').fill('api')
    await expect.poll(ids).toEqual(['a-1', 'a-2', 'a-3'])
    await page.getByLabel('Search services').fill('')
    await page.getByRole('button', { name: 'critical' }).click()
    await expect.poll(ids).toEqual(['w-2'])
    await page.getByText('1 match').waitFor()
    await page.getByRole('button', { name: 'critical' }).click()
    await page.getByLabel('Tag or capability').selectOption('blue')
    await expect.poll(ids).toEqual(['a-1', 'a-2', 'a-3', 'w-2'])
    await page.getByLabel('Tag or capability').selectOption('')
    await page.getByLabel('Order').selectOption('most unhealthy first')
    await expect.poll(names).toEqual(['web', 'api'])
    await page.getByRole('button', { name: 'Close web' }).click()
    await expect.poll(ids).toEqual(['a-1', 'a-2', 'a-3'])
    await page.getByRole('button', { name: 'Open web' }).click()
    await expect.poll(ids).toEqual(['w-1', 'w-2', 'a-1', 'a-2', 'a-3'])
  })

  it(`are usable with ${SERVICES} of ${INSTANCES} instances, while they change`, async () => {
    const scene = await dashboard.scene()
    const ids = Array.from({ length: INSTANCES }, (_, at) => `i-${at}`)
    const made: ({ name: string } & Awaited<ReturnType<typeof register>>)[] = []
    for (let at = 0; at < SERVICES; at++) {
      const name = `service-${String(at).padStart(3, '0')}`
      made.push({ name, ...(await register(scene, name, ids, { tags: [`tag-${at % 7}`] })) })
    }
    const visit = await dashboard.openLive('')
    const { page } = dashboard
    const began = performance.now()
    await visit.to('Services')
    await page
      .locator('.service')
      .nth(SERVICES - 1)
      .waitFor()
    const drawn = performance.now() - began
    expect(await page.locator('.instance').count()).toBe(0)
    let isOver = false
    const change = async () => {
      for (let at = 0; !isOver; at++) {
        const { name, lease, token } = made[at % SERVICES]!
        const value = description({ load: at })
        await scene.store.update({ lease, key: `services/${name}/i-0`, token, value })
        if (at % 5 === 0) await new Promise((resolve) => setTimeout(resolve, 10))
      }
    }
    const chromium = await page.context().newCDPSession(page)
    await chromium.send('Performance.enable', { timeDomain: 'threadTicks' })
    const worked = async () => {
      const { metrics } = await chromium.send('Performance.getMetrics')
      const parts = ['ScriptDuration', 'LayoutDuration', 'RecalcStyleDuration']
      const sum = metrics.filter(({ name }) => parts.includes(name))
      return 1000 * sum.reduce((total, { value }) => total + value, 0)
    }
    const changing = change()
    const before = await worked()
    const frames = await page.evaluate(framesIn, 2000)
    const each = ((await worked()) - before) / frames
    isOver = true
    await changing
    console.info(
      `${SERVICES} services of ${INSTANCES} instances: drawn in ${Math.round(drawn)} ms; ${each.toFixed(1)} ms of work for each of ${frames} frames`,
    )
    expect(each).toBeLessThan(FRAME_MS)
    await page.getByLabel('Search services').fill('service-123')
    await expect.poll(() => page.locator('.instance').count()).toBe(INSTANCES)
    // The changes were shown.
    expect(await page.locator('.instance').first().textContent()).toMatch(/load [1-9]/)
  })
})

/** Runs in the page: the number of frames in a time. */
function framesIn(ms: number): Promise<number> {
  return new Promise((resolve) => {
    const begin = performance.now()
    let frames = 0
    const frame = (now: number) => {
      frames++
      if (now - begin < ms) requestAnimationFrame(frame)
      else resolve(frames)
    }
    requestAnimationFrame(frame)
  })
}
