import { memoryStore } from 'leasehold/memory'
import type { LeaseStore } from 'leasehold/port'
import { expect, it } from 'vitest'
import { changedStore, Gate } from '../../setup/changed-store.ts'
import { Dashboard, describeInBrowser } from './browser.ts'

/** Chromium's message for a request that a test has broken. */
const BROKEN = /ERR_FAILED|Failed to load/

describeInBrowser('the dashboard while a request is pending', () => {
  const dashboard = new Dashboard()

  /** A store of which the keys cannot be listed until the gate is opened. */
  const slowStore = (gate: Gate): LeaseStore => {
    const store = memoryStore()
    const read = async (query: { readonly prefix?: string }) => {
      if (query.prefix === '') await gate.opened
      return store.read(query as never)
    }
    return changedStore(store, { read: read as never })
  }

  it('says that the sign-out failed if the server did not answer', async () => {
    const scene = await dashboard.scene()
    const token = await scene.token('ann', 'all:')
    const visit = await dashboard.open('')
    const { page } = visit
    await dashboard.signIn(token)
    await visit.live()
    visit.expected.push(BROKEN)
    await page.route('**/dashboard/session', (route) => route.abort())
    await page.getByRole('button', { name: 'sign out' }).click()
    const said = page.getByRole('alert').getByText('not signed out: the server did not answer')
    await said.waitFor()
    await page.setViewportSize({ width: 360, height: 700 })
    const beyond = () => document.documentElement.scrollWidth - innerWidth
    await expect.poll(() => page.evaluate(beyond), { timeout: 20_000 }).toBe(0)
    await page.unroute('**/dashboard/session')
    await page.getByRole('button', { name: 'sign out' }).click()
    await page.getByLabel('Access token').waitFor()
  })

  it('shows the outcome of an action whose dialog was closed meanwhile, even if it failed', async () => {
    const scene = await dashboard.scene()
    const lease = await scene.lease('ada', ['jobs/1'])
    const visit = await dashboard.open(`leases/${lease}`)
    const { page } = visit
    await visit.live()
    visit.expected.push(BROKEN)
    const gate = new Gate()
    await page.route('**/dashboard/actions', async (route) => {
      await gate.opened
      await route.abort()
    })
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'End it now…' }).click()
    await dialog.getByLabel('Reason').fill('slow')
    await dialog.getByRole('button', { name: 'End it now' }).click()
    await dialog.getByText('Working…').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    gate.open()
    const said = /^End the lease of ada: The outcome is unknown/
    await page.getByText(said).waitFor({ timeout: 20_000 })
  })

  it('goes to the sign-in at once after a sign-out during the first read', async () => {
    const gate = new Gate()
    const scene = await dashboard.scene(slowStore(gate))
    const token = await scene.token('ann', 'all:')
    await scene.lease('ada', ['jobs/1'])
    const visit = await dashboard.open('')
    const { page } = visit
    await dashboard.signIn(token)
    await page.getByRole('button', { name: 'sign out' }).click()
    const alert = page.getByRole('alert')
    await page.getByLabel('Access token').or(alert).waitFor()
    expect(await alert.count()).toBe(0)
    gate.open()
    await dashboard.signIn(token)
    await visit.live()
  })

  it('shows "loading", not "not found", before the first read', async () => {
    const gate = new Gate()
    const scene = await dashboard.scene(slowStore(gate))
    const lease = await scene.lease('ada', ['jobs/1'])
    const free = await scene.lease('bo', [], { claims: undefined })
    const visit = await dashboard.open('keys/jobs%2F1')
    const { page } = visit
    await page.locator('.detail').waitFor()
    expect(await page.getByText(/Nobody claims it|No key is claimed/).count()).toBe(0)
    await visit.to('Overview')
    await page.getByRole('heading', { name: 'Needs attention' }).waitFor()
    expect(await page.getByText('All is well').count()).toBe(0)
    const views = ['Leases', 'Services', 'Elections', 'Pools', 'Sessions']
    for (const view of views) {
      await visit.to(view)
      await page.getByText('Loading…').first().waitFor()
    }
    for (const id of [lease, free]) {
      await page.evaluate((hash) => location.assign(hash), `#/leases/${id}`)
      await page.locator('.detail').waitFor()
      expect(await page.getByText('has ended').count()).toBe(0)
    }
    gate.open()
    await page.locator('.detail').getByText('Last heartbeat').waitFor()
    await visit.to('Services')
    await page.getByText('No instance is registered').waitFor()
  })

  it('hides from each user how much another has seen', async () => {
    const scene = await dashboard.scene()
    await scene.lease('me', ['mail/1', 'mail/2', 'mail/3'])
    const all = await scene.token('ann', 'read,watch:')
    const part = await scene.token('bob', 'read,watch:jobs/')
    await scene.lease('me', ['jobs/1'])
    const visit = await dashboard.open('')
    const { page } = visit
    const spark = page.getByRole('img', { name: /^Keys: / })
    await dashboard.signIn(all)
    await visit.live()
    await expect.poll(() => spark.getAttribute('aria-label'), { timeout: 20_000 }).toContain('to 4')
    await page.getByRole('button', { name: 'sign out' }).click()
    await page.getByLabel('Access token').waitFor()
    await dashboard.signIn(part)
    await visit.live()
    const own = 'from 1 to 1 in'
    await expect.poll(() => spark.getAttribute('aria-label'), { timeout: 20_000 }).toContain(own)
  })

  it('does not blame the server for a token that cannot be sent', async () => {
    const scene = await dashboard.scene()
    await scene.token('ann', 'all:')
    const { page } = await dashboard.open('')
    await dashboard.signIn('lh_ann_…')
    await page
      .getByRole('alert')
      .getByText('an access token has no spaces or special characters')
      .waitFor({ timeout: 20_000 })
  })

  it('shows the events of several prefixes in the order in which they happened', async () => {
    const scene = await dashboard.scene()
    for (const key of ['jobs/1', 'mail/1', 'jobs/2', 'mail/2']) await scene.lease('ada', [key])
    const token = await scene.token('ann', 'read,watch:jobs/', 'read,watch:mail/')
    const visit = await dashboard.open('')
    const { page } = visit
    await dashboard.signIn(token)
    await visit.live()
    const keys = page.getByRole('listbox', { name: /^Events/ }).locator('.key')
    const order = ['mail/2', 'jobs/2', 'mail/1', 'jobs/1']
    await expect.poll(() => keys.allInnerTexts(), { timeout: 20_000 }).toEqual(order)
  })

  it("knows the server's time even for viewers that may not see its figures", async () => {
    const scene = await dashboard.scene()
    const lease = await scene.lease('ada', ['jobs/1'], { ttl: 600_000 })
    const token = await scene.token('ann', 'read,watch:jobs/')
    const visit = await dashboard.open(`leases/${lease}`)
    const { page } = visit
    // The clock of this browser is an hour late.
    await page.addInitScript(() => {
      const timeOrigin = performance.timeOrigin - 3_600_000
      Object.defineProperty(performance, 'timeOrigin', { value: timeOrigin })
    })
    await page.reload()
    await dashboard.signIn(token)
    await visit.live()
    const left = page.locator('.detail .drain-text')
    await left.waitFor()
    expect(Number.parseInt((await left.textContent())!, 10)).toBeLessThanOrEqual(10)
  })
})
