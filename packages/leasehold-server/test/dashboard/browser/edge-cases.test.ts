import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { Dashboard, describeInBrowser } from './browser.ts'

/** As long as it takes on a machine that is busy with something else. */
const SOON = { timeout: 30_000 }

describeInBrowser('the dashboard with unusual data', () => {
  const dashboard = new Dashboard()

  it('shows a broken lease with a grace as lapsed only if it has', async () => {
    const scene = await dashboard.scene()
    const long = { ttl: 600_000, grace: 600_000 }
    const lease = await scene.lease('ada', ['jobs/1'], long)
    await scene.store.revoke({ target: { lease }, after: 500_000 })
    await scene.lease('bo', ['jobs/2'], { ttl: 1000, grace: 600_000 })
    const visit = await dashboard.openLive('')
    const { page } = visit
    await page.getByRole('link', { name: 'bo has lapsed' }).waitFor()
    expect(await page.getByRole('link', { name: 'ada has lapsed' }).count()).toBe(0)
    await visit.to('Leases')
    const left = (holder: string) =>
      page.getByRole('option', { name: holder }).locator('.drain-text').textContent()
    await expect.poll(() => left('bo'), SOON).toContain('lapsed')
    expect(await left('ada')).toMatch(/^[\d.]+ min$/)
  })

  it('fills the bar of a broken lease without a ttl by the rest of its life', async () => {
    const scene = await dashboard.scene()
    const lease = await scene.lease('ada', ['jobs/1'], { ttl: Infinity })
    await scene.store.revoke({ target: { lease }, after: 1_800_000 })
    const { page } = await dashboard.openLive(`leases/${lease}`)
    const fill = page.locator('.detail .drain-fill')
    await fill.waitFor({ state: 'attached' })
    const part = await fill.evaluate((it) => Number(/[\d.]+/.exec(it.style.transform)?.[0]))
    expect(part).toBeGreaterThan(0.9)
  })

  it('shows each digit of a value as it was written', async () => {
    const scene = await dashboard.scene()
    const claims = [
      { key: 'jobs/1', value: '{"id": 9007199254740993}' },
      { key: 'jobs/2', value: '{"id":1,"of":["a b"]}' },
    ]
    await scene.lease('ada', [], { claims })
    const { page } = await dashboard.openLive('keys/jobs%2F1')
    await page.locator('.value').waitFor()
    expect(await page.locator('.value').textContent()).toBe('{"id": 9007199254740993}')
    await page.getByRole('treeitem', { name: /^2/ }).click()
    const laidOut = '{\n  "id": 1,\n  "of": [\n    "a b"\n  ]\n}'
    await expect.poll(() => page.locator('.value').textContent(), SOON).toBe(laidOut)
  })

  it('shows a name for a key that ends with a slash', async () => {
    const scene = await dashboard.scene()
    await scene.lease('ada', ['jobs/', 'jobs/1', 'x//'])
    const { page } = await dashboard.openLive('keys')
    const names = page.getByRole('tree').locator('.key')
    await expect
      .poll(() => names.allInnerTexts(), SOON)
      .toEqual(['jobs/', 'jobs/', '1', 'x//', 'x//'])
  })

  it('counts all other leases of a holder, even those that it does not list', async () => {
    const scene = await dashboard.scene()
    const lease = await scene.lease('ada', [], { claims: undefined })
    for (let at = 0; at < 60; at++) await scene.lease('ada', [`jobs/${at}`])
    const { page } = await dashboard.openLive(`leases/${lease}`)
    const title = page.getByRole('heading', { name: /^Other leases of ada/ })
    await expect.poll(() => title.locator('.count').textContent(), SOON).toBe('60')
  })

  it('lets no period be chosen that has become too long while the dialog is open', async () => {
    const scene = await dashboard.scene()
    const lease = await scene.lease('ada', ['jobs/1'])
    await scene.store.revoke({ target: { lease }, after: 36_000 })
    const { page } = await dashboard.openLive(`leases/${lease}`)
    await page.getByRole('button', { name: 'Break it…' }).click()
    const period = page.getByRole('combobox')
    await period.waitFor()
    await period.getByRole('option', { name: '30 s' }).waitFor({ state: 'detached' })
    expect(await period.inputValue()).toBe('5000')
  })

  it('lets no period be chosen that is too long since somebody else broke the lease', async () => {
    const scene = await dashboard.scene()
    const lease = await scene.lease('ada', ['jobs/1'])
    const { page } = await dashboard.openLive(`leases/${lease}`)
    await page.getByRole('button', { name: 'Break it…' }).click()
    const period = page.getByRole('combobox')
    expect(await period.inputValue()).toBe('30000')
    await scene.store.revoke({ target: { lease }, after: 29_000 })
    await period.getByRole('option', { name: '30 s' }).waitFor({ state: 'detached' })
    expect(await period.inputValue()).toBe('5000')
  })

  it('does not scroll when a digit is pressed in a dialog', async () => {
    const scene = await dashboard.scene()
    const lease = await scene.lease('ada', ['jobs/1'])
    const { page } = await dashboard.openLive(`leases/${lease}`)
    await page.getByRole('button', { name: 'Break it…' }).click()
    await page.getByRole('button', { name: 'Cancel' }).press('2')
    expect(page.url()).toContain(`#/leases/${lease}`)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    await page.keyboard.press('2')
    await page.getByRole('tree').waitFor()
  })

  it('keeps the row under the pointer in place while others appear and vanish above it', async () => {
    const scene = await dashboard.scene()
    const keys = Array.from({ length: 80 }, (_, at) => `jobs/${100 + at}`)
    await scene.lease('ada', keys)
    const { page } = await dashboard.openLive('keys')
    const line = page.getByRole('treeitem', { name: /^110/ })
    await line.hover()
    const top = async () => Math.round((await line.boundingBox())!.y)
    const before = await top()
    const lease = await scene.lease('bo', ['a/1', 'jobs/001', 'jobs/002'])
    await page.getByRole('heading', { name: 'Keys 83' }).waitFor()
    await expect.poll(top, SOON).toBe(before)
    await scene.store.revoke({ target: { lease } })
    await page.getByRole('heading', { name: 'Keys 80' }).waitFor()
    await expect.poll(top, SOON).toBe(before)
  })

  it.each([
    ['has left the list', (page: Page) => page.getByRole('heading', { name: 'Keys 82' }).hover()],
    ['has rested for a while', async () => {}],
  ])('shows new rows again when the pointer %s', async (_, ends) => {
    const scene = await dashboard.scene()
    const keys = Array.from({ length: 80 }, (_, at) => `jobs/${100 + at}`)
    await scene.lease('ada', keys)
    const { page } = await dashboard.openLive('keys')
    await page.getByRole('treeitem', { name: /^103/ }).hover()
    await scene.lease('bo', ['a/1', 'a/2'])
    await page.getByRole('heading', { name: 'Keys 82' }).waitFor()
    const scrolled = () => page.getByRole('tree').evaluate(({ scrollTop }) => scrollTop)
    await expect.poll(scrolled, SOON).toBeGreaterThan(0)
    await ends(page)
    await expect.poll(scrolled, SOON).toBe(0)
  })

  it('stays in place when the arrow leaves a row that is in no folder', async () => {
    const scene = await dashboard.scene()
    await scene.lease('ada', ['/x/1', '/x/2', 'jobs/1', 'jobs/2'])
    const { page } = await dashboard.openLive('keys')
    await page.getByRole('tree').focus()
    for (const key of ['End', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft']) {
      await page.keyboard.press(key)
    }
    await page.getByRole('heading', { name: 'Keys 4' }).waitFor()
    await expect.poll(() => page.locator('.row.active .key').textContent(), SOON).toBe('jobs/')
  })
})
