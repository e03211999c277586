import { expect, it } from 'vitest'
import { TestClients } from '../test-clients.ts'
import { Dashboard, describeInBrowser } from './browser.ts'

const LONG = 'tenants/acme-corporation/projects/2026-migration/customer-records/import-lock-0001'

describeInBrowser('the keys in a browser', () => {
  const dashboard = new Dashboard()

  it('hides internal keys until they are asked for, and groups them by what they belong to', async () => {
    const scene = await dashboard.scene()
    await using world = await TestClients.open(scene, 'world')
    await world.fill()
    await scene.lease('checker', ['health/embedder/i-1'])
    await world.leasehold.once('import', async () => 1)
    const visit = await dashboard.openLive('keys')
    const { page } = dashboard
    const items = page.getByRole('treeitem')
    await page.getByRole('treeitem', { name: /nightly/ }).waitFor()
    expect(await page.locator('#keys-title').textContent()).toBe('Keys 1')
    expect(await items.count()).toBe(2)
    await page.getByRole('button', { name: /^internal keys \d+/ }).click()
    await page.getByRole('treeitem', { name: /^election\/scheduler\// }).waitFor()
    expect(await page.getByRole('treeitem', { name: /nightly/ }).count()).toBe(0)
    const texts = await items.allInnerTexts()
    const flat = texts.map((text) => text.replace(/\s+/g, ' '))
    // The result of the checks is below its instance.
    const instance = flat.findIndex((text) => text.startsWith('i-1 '))
    expect(flat[instance + 1]).toMatch(/^health the result of its checks checker /)
    expect(flat.some((text) => /^done the stored result world /.test(text))).toBe(true)
    await page.getByRole('treeitem', { name: /^line the candidates/ }).click()
    const detail = page.locator('.detail')
    await detail.getByRole('heading', { name: 'election/scheduler/line' }).waitFor()
    expect(await visit.complaints()).toEqual([])
    await detail.getByRole('link', { name: 'election scheduler' }).click()
    await page.getByRole('heading', { name: 'Elections 1' }).waitFor()
  })

  it('shows that the only matches of a search are internal keys', async () => {
    const scene = await dashboard.scene()
    await scene.lease('ada', ['jobs/1'])
    await scene.lease('bo', ['pool/gpu/books'])
    await dashboard.openLive('keys')
    const { page } = dashboard
    await page.getByLabel('Search keys').fill('gpu')
    await page.getByText('No matching key or holder').waitFor()
    await page.getByRole('button', { name: '1 more in internal keys' }).click()
    await page.getByRole('option', { name: /pool\/gpu\/books/ }).waitFor()
  })

  it('cuts a long key in the middle, keeps both ends in sight, and copies all of it', async () => {
    const scene = await dashboard.scene()
    await scene.lease('ada', [LONG])
    await dashboard.openLive('keys')
    const { page } = dashboard
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByLabel('Search keys').fill('import')
    const row = page.getByRole('option')
    const key = row.getByTitle(LONG)
    await key.waitFor()
    await page.getByRole('option', { name: LONG }).waitFor()
    const parts = await key.locator('[aria-hidden]').allTextContents()
    expect(parts.join('')).toBe(LONG)
    const head = key.locator('.short-head')
    expect(await head.evaluate((it) => it.scrollWidth > it.clientWidth)).toBe(true)
    const [tail, cell] = [
      await key.locator('.short-tail').boundingBox(),
      await row.locator('.name-cell').boundingBox(),
    ]
    expect(tail!.x + tail!.width).toBeLessThanOrEqual(cell!.x + cell!.width + 1)
    await row.click()
    await page.getByRole('button', { name: 'Copy the key' }).click()
    await page.getByText('Copied').waitFor()
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(LONG)
  })

  it('are found in the search of leases, which shows them', async () => {
    const scene = await dashboard.scene()
    await scene.lease('ada', ['jobs/nightly'])
    await scene.lease('bo', ['mail/1'])
    await dashboard.openLive('leases')
    const { page } = dashboard
    await expect.poll(() => page.getByRole('option').count()).toBe(2)
    await page.getByLabel('Search holders').fill('nightly')
    await expect.poll(() => page.getByRole('option').count()).toBe(1)
    await page.getByRole('option', { name: /ada.*jobs\/nightly/ }).waitFor()
  })
})
