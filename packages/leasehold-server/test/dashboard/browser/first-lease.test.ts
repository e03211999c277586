import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Scene } from '../scene.ts'
import { describeInBrowser, useBrowser, Visit } from './browser.ts'

describeInBrowser('the first lease, step by step', () => {
  const browser = useBrowser()
  let scene: Scene
  let visit: Visit

  beforeEach(async () => {
    scene = await Scene.open()
  })

  afterEach(async () => {
    await visit.end()
    await scene.close()
  })

  const begin = async (): Promise<Page> => {
    visit = await Visit.open(browser(), scene.url)
    await visit.live()
    return visit.page
  }

  const signedIn = async (...rights: string[]) => {
    await scene.token('root', 'all:')
    const token = await scene.token('ann', ...rights)
    visit = await Visit.open(browser(), scene.url)
    await visit.page.getByLabel('Access token').fill(token)
    await visit.page.getByRole('button', { name: 'Sign in' }).click()
    await visit.live()
    return { page: visit.page, token }
  }

  const run = async (text: string, env: Record<string, string> = {}) =>
    (await promisify(execFile)('bash', ['-c', text], { env: { ...process.env, ...env } })).stdout

  const done = (page: Page) => page.locator('.first li.done').count()

  it('stays until the last step is done, and ticks off each as it happens', async () => {
    const page = await begin()
    const [take, keep, give] = await page.locator('.command pre').allInnerTexts()
    expect(await done(page)).toBe(0)
    const lease = await run(`${take}; printf %s "$lease"`)
    await soon(() => done(page)).toBe(1)
    const first = page.locator('.first li').first()
    await first.locator('.drain-text').waitFor()
    expect(await page.locator('.command pre').allInnerTexts()).toEqual([take, keep, give])
    expect(await visit.complaints()).toEqual([])
    await page.reload()
    await visit.live()
    await soon(() => done(page)).toBe(1)
    await page.locator('.first li').first().locator('.drain-text').waitFor()
    await page.waitForTimeout(1000)
    await run(`lease=${lease}; ${keep}`)
    await soon(() => done(page)).toBe(2)
    await visit.to('Keys')
    await visit.to('Overview')
    expect(await done(page)).toBe(2)
    await run(`lease=${lease}; ${give}`)
    await soon(() => done(page)).toBe(3)
    await page.getByRole('button', { name: 'Start over' }).click()
    await soon(() => done(page)).toBe(0)
  })

  it('leads to the lease that was taken, and can be put away', async () => {
    const page = await begin()
    const [take] = await page.locator('.command pre').allInnerTexts()
    await run(take!)
    await page.locator('.first li').first().getByRole('link', { name: 'reports/nightly' }).waitFor()
    await page.getByRole('button', { name: 'Hide the steps' }).click()
    await soon(() => page.locator('.first').count()).toBe(0)
    await page.getByRole('heading', { name: 'Events' }).waitFor()
    await visit.to('Keys')
    await visit.to('Overview')
    expect(await page.locator('.first').count()).toBe(0)
  })

  it('has commands for a key that the viewer may claim, with the environment variable', async () => {
    const { page, token } = await signedIn('claim,read,watch:jobs/')
    await page.getByText('Nothing that you may see is held yet').waitFor()
    await page.getByText('LEASEHOLD_ACCESS_TOKEN', { exact: true }).waitFor()
    const [take, keep, give] = await page.locator('.command pre').allInnerTexts()
    expect(take).toContain('/v1/locks/jobs/')
    expect(take).toContain('Bearer $LEASEHOLD_ACCESS_TOKEN')
    const lease = await run(`${take}; printf %s "$lease"`, { LEASEHOLD_ACCESS_TOKEN: token })
    await soon(() => done(page)).toBe(1)
    await page.locator('.first li').first().locator('.drain-text').waitFor()
    await run(`lease=${lease}; ${keep}`, { LEASEHOLD_ACCESS_TOKEN: token })
    await page.evaluate(() => dispatchEvent(new Event('focus')))
    await soon(() => done(page)).toBe(2)
    await run(`lease=${lease}; ${give}`, { LEASEHOLD_ACCESS_TOKEN: token })
    await soon(() => done(page)).toBe(3)
  })

  it('has no commands for a viewer that may claim nothing', async () => {
    const { page } = await signedIn('read,watch:')
    await page.getByRole('heading', { name: 'Nothing is held yet' }).waitFor()
    await page.getByText(/may not claim any key that this page shows/).waitFor()
    expect(await page.locator('.command').count()).toBe(0)
  })

  it('does not mention a token if the server requires none', async () => {
    const page = await begin()
    await page.getByRole('heading', { name: 'Nothing is held yet' }).waitFor()
    expect(await page.locator('.first').textContent()).not.toContain('LEASEHOLD_')
  })

  it('shows the empty state again after the demo, and nothing of it later', async () => {
    await scene.store.grant({ holder: 'demo:bare', ttl: Infinity })
    for (let time = 0; time < 3; time++) {
      const lease = await scene.lease('demo:flappy', ['demo/x'], { ttl: 50 })
      await soon(async () => (await scene.store.read({ lease })).lease === undefined).toBe(true)
    }
    const page = await begin()
    await page.getByRole('button', { name: 'Remove it' }).first().click()
    await page.getByRole('heading', { name: 'Nothing is held yet' }).waitFor()
    await page.getByRole('button', { name: 'Try it' }).click()
    await page.getByText('A demo is running in this server').waitFor()
    await page.getByRole('heading', { name: 'Events' }).waitFor()
    await page.getByRole('button', { name: 'End it' }).click()
    await page.getByRole('heading', { name: 'Nothing is held yet' }).waitFor()
    await soon(() => page.getByText('A demo is running in this server').count()).toBe(0)
    await soon(() => page.getByText('A demo was not removed').count()).toBe(0)
    await soon(() => page.locator('.tile', { hasText: 'Holders' }).locator('b').textContent()).toBe(
      '0',
    )
    await scene.lease('ada', ['jobs/1'])
    await page.getByRole('option', { name: /jobs\/1/ }).waitFor()
    expect(await page.getByRole('option').count()).toBe(1)
    expect(await page.getByText(/demo:/).count()).toBe(0)
  })

  it('says that the demo is over if it left something behind', async () => {
    await scene.lease('demo:ada', ['pool/demo-gpu/definition'], { ttl: Infinity })
    const page = await begin()
    const remains = page.locator('.demo-control')
    await remains.getByRole('heading', { name: 'A demo was not removed' }).waitFor()
    expect(await remains.textContent()).not.toContain('a fleet in this server')
    await remains.getByRole('button', { name: 'Remove it' }).click()
    await page.getByRole('heading', { name: 'Nothing is held yet' }).waitFor()
  })
})

/** Waits for longer than a second, on a machine that is busy with something else. */
function soon<Value>(look: () => Promise<Value>) {
  return expect.poll(look, { timeout: 10_000 })
}
