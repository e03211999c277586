import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { FeedMessage } from '../../../src/dashboard/feed-messages.ts'
import { TestClients } from '../test-clients.ts'
import { Dashboard, describeInBrowser } from './browser.ts'

const { version } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
) as { version: string }

describeInBrowser('what the page says about its numbers', () => {
  const dashboard = new Dashboard()

  it('names the columns of its lists and the colours of its pictures', async () => {
    const scene = await dashboard.scene()
    await using world = await TestClients.open(scene, 'world')
    await world.fill()
    const visit = await dashboard.openLive('')
    const { page } = dashboard
    const columns = async (at = page.locator('.columns').first()) =>
      (await at.locator('span').allInnerTexts()).filter((name) => name !== '')
    await expect.poll(() => columns()).toEqual(['Time', 'Event', 'Key', 'Holder', 'Token'])
    await visit.to('Keys')
    await expect.poll(() => columns()).toEqual(['Key', 'Holder', 'Token', 'Time left', 'Waiting'])
    await page.getByText('grace begins here').waitFor()
    await page.getByRole('treeitem', { name: /nightly/ }).click()
    await page.getByRole('columnheader', { name: 'Held for' }).waitFor()
    const queue = page.locator('.columns.queued')
    await expect.poll(() => columns(queue)).toEqual(['No.', 'Waiter', 'Token', 'Waits for'])
    await visit.to('Leases')
    await expect.poll(() => columns()).toEqual(['Holder', 'Keys', 'Time left', 'Lease'])
    await visit.to('Services')
    await page.getByText('not registered').waitFor()
    await visit.to('Elections')
    await page.getByRole('columnheader', { name: 'Candidate' }).waitFor()
    await visit.to('Pools')
    await page.getByRole('columnheader', { name: 'Expected' }).waitFor()
    await visit.to('Sessions')
    await expect.poll(() => columns()).toEqual(['User', 'Session', 'Age', 'Time left'])
    // A cell is below the name of its column.
    await visit.to('Leases')
    await expect
      .poll(async () => {
        const left = (row: string) => page.locator(`${row} .drain`).first().boundingBox()
        const [head, cell] = [await left('.columns'), await left('.row')]
        return Math.abs((head?.x ?? 0) - (cell?.x ?? -100))
      })
      .toBeLessThan(2)
  })

  it('fills the plots from the minutes before it was opened, and says what each number is', async () => {
    const scene = await dashboard.scene()
    await scene.ask('POST /v1/locks/jobs/1?ttl=60s&holder=ada')
    await new Promise((resolve) => setTimeout(resolve, 4000))
    const visit = await dashboard.open('keys')
    const { page } = dashboard
    const first = await new Promise<FeedMessage>((resolve) => {
      page.on('websocket', (socket) => {
        if (!socket.url().endsWith('/dashboard/feed')) return
        socket.once('framereceived', ({ payload }) => resolve(JSON.parse(String(payload))))
      })
      void page.reload()
    })
    const samples = first.type === 'history' ? first.samples : []
    expect(samples.length).toBeGreaterThanOrEqual(3)
    expect(samples.some(({ claims }) => claims > 0)).toBe(true)
    await visit.to('Overview')
    const commits = page.locator('.plot', { hasText: 'Commit latency' }).locator('.plot-now')
    await expect.poll(() => commits.textContent()).toMatch(/median [\d.]+ ms.*\s*p99 [\d.]+ ms/)
  })

  it("shows the server's version, and leads to its documents", async () => {
    await dashboard.scene()
    await dashboard.openLive('')
    const { page } = dashboard
    expect(await page.locator('header .version').textContent()).toBe(version)
    await page.getByRole('link', { name: 'Docs' }).click()
    await page.waitForURL('**/docs')
    expect(await page.locator('body').textContent()).toContain('Leasehold')
  })
})
