import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { describeInBrowser, launch, Visit } from './browser.ts'
import { Scene } from './scene.ts'

/** As long as it takes on a machine that is busy with something else. */
const SOON = { timeout: 30_000 }

describeInBrowser('what the dashboard says of things that are odd', () => {
  let browser: Browser
  let scene: Scene
  let visit: Visit
  let page: Page

  beforeAll(async () => {
    browser = await launch()
  })

  beforeEach(async () => {
    scene = await Scene.open()
  })

  afterEach(async () => {
    await visit.end()
    await scene.close()
  })

  afterAll(() => browser?.close())

  const begin = async (view: string) => {
    visit = await Visit.open(browser, `${scene.url}/#/${view}`)
    await visit.live()
    page = visit.page
  }

  it('shows a broken lease with a grace as lapsed only if it has', async () => {
    const long = { ttl: 600_000, grace: 600_000 }
    const lease = await scene.lease('ada', ['jobs/1'], long)
    await scene.store.revoke({ target: { lease }, after: 500_000 })
    await scene.lease('bo', ['jobs/2'], { ttl: 1000, grace: 600_000 })
    await begin('')
    await page.getByRole('link', { name: 'bo has lapsed' }).waitFor()
    expect(await page.getByRole('link', { name: 'ada has lapsed' }).count()).toBe(0)
    await visit.to('Leases')
    const left = (holder: string) =>
      page.getByRole('option', { name: holder }).locator('.drain-text').textContent()
    await expect.poll(() => left('bo'), SOON).toContain('lapsed')
    expect(await left('ada')).toMatch(/^[\d.]+ min$/)
  })

  it('fills the bar of a broken lease without a ttl by the rest of its life', async () => {
    const lease = await scene.lease('ada', ['jobs/1'], { ttl: Infinity })
    await scene.store.revoke({ target: { lease }, after: 1_800_000 })
    await begin(`leases/${lease}`)
    const fill = page.locator('.detail .drain-fill')
    await fill.waitFor({ state: 'attached' })
    const part = await fill.evaluate((it) => Number(/[\d.]+/.exec(it.style.transform)?.[0]))
    expect(part).toBeGreaterThan(0.9)
  })

  it('shows each digit of a value as it was written', async () => {
    const claims = [
      { key: 'jobs/1', value: '{"id": 9007199254740993}' },
      { key: 'jobs/2', value: '{"id":1,"of":["a b"]}' },
    ]
    await scene.lease('ada', [], { claims })
    await begin('keys/jobs%2F1')
    await page.locator('.value').waitFor()
    expect(await page.locator('.value').textContent()).toBe('{"id": 9007199254740993}')
    await page.getByRole('treeitem', { name: /^2/ }).click()
    const laidOut = '{\n  "id": 1,\n  "of": [\n    "a b"\n  ]\n}'
    await expect.poll(() => page.locator('.value').textContent(), SOON).toBe(laidOut)
  })

  it('shows a name for a key that ends with a slash', async () => {
    await scene.lease('ada', ['jobs/', 'jobs/1', 'x//'])
    await begin('keys')
    const names = page.getByRole('tree').locator('.key')
    await expect
      .poll(() => names.allInnerTexts(), SOON)
      .toEqual(['jobs/', 'jobs/', '1', 'x//', 'x//'])
  })

  it('counts all other leases of a holder, even those that it does not list', async () => {
    const lease = await scene.lease('ada', [], { claims: undefined })
    for (let at = 0; at < 60; at++) await scene.lease('ada', [`jobs/${at}`])
    await begin(`leases/${lease}`)
    const title = page.getByRole('heading', { name: /^Other leases of ada/ })
    await expect.poll(() => title.locator('.count').textContent(), SOON).toBe('60')
  })

  it('lets no period be chosen that has become too long while the dialog is open', async () => {
    const lease = await scene.lease('ada', ['jobs/1'])
    await scene.store.revoke({ target: { lease }, after: 36_000 })
    await begin(`leases/${lease}`)
    await page.getByRole('button', { name: 'Break it…' }).click()
    const period = page.getByRole('combobox')
    await period.getByRole('option', { name: '30 s' }).waitFor({ state: 'detached' })
    expect(await period.inputValue()).toBe('5000')
  })

  it('does not scroll when a digit is pressed in a dialog', async () => {
    const lease = await scene.lease('ada', ['jobs/1'])
    await begin(`leases/${lease}`)
    await page.getByRole('button', { name: 'Break it…' }).click()
    await page.getByRole('button', { name: 'Cancel' }).press('2')
    expect(page.url()).toContain(`#/leases/${lease}`)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    await page.keyboard.press('2')
    await page.getByRole('tree').waitFor()
  })

  it('keeps the row under the pointer in place while others appear and vanish above it', async () => {
    const keys = Array.from({ length: 80 }, (_, at) => `jobs/${100 + at}`)
    await scene.lease('ada', keys)
    await begin('keys')
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
    const keys = Array.from({ length: 80 }, (_, at) => `jobs/${100 + at}`)
    await scene.lease('ada', keys)
    await begin('keys')
    await page.getByRole('treeitem', { name: /^103/ }).hover()
    await scene.lease('bo', ['a/1', 'a/2'])
    await page.getByRole('heading', { name: 'Keys 82' }).waitFor()
    const scrolled = () => page.getByRole('tree').evaluate(({ scrollTop }) => scrollTop)
    await expect.poll(scrolled, SOON).toBeGreaterThan(0)
    await ends(page)
    await expect.poll(scrolled, SOON).toBe(0)
  })

  it('stays in place when the arrow leaves a row that is in no folder', async () => {
    await scene.lease('ada', ['/x/1', '/x/2', 'jobs/1', 'jobs/2'])
    await begin('keys')
    await page.getByRole('tree').focus()
    for (const key of ['End', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft']) {
      await page.keyboard.press(key)
    }
    await page.getByRole('heading', { name: 'Keys 4' }).waitFor()
    await expect.poll(() => page.locator('.row.active .key').textContent(), SOON).toBe('jobs/')
  })
})
