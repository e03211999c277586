import { Leasehold } from 'leasehold'
import { expect, it } from 'vitest'
import { Dashboard, describeInBrowser } from './browser.ts'

describeInBrowser('the filters of a view', () => {
  const dashboard = new Dashboard()

  /** Elections, pools and sessions with these names. */
  async function fill(holder: string, ...names: string[]): Promise<Leasehold> {
    const { store } = await dashboard.scene()
    const leasehold = await Leasehold.open(store, { holder })
    for (const name of names) {
      await leasehold.election(name).campaign()
      const pool = leasehold.pool(name, { resources: [{ name }] })
      await pool.take({ tenant: name, kind: name })
      await leasehold.sessions(name).create({ user: name, data: {} })
      await leasehold.lock(`jobs/${name}`, { ttl: '60s' })
    }
    return leasehold
  }

  it('are in the address: they survive a reload, a chosen key and the way back', async () => {
    await using _leasehold = await fill('ada', 'alpha', 'beta')
    await dashboard.openLive('keys')
    const { page, visit } = dashboard
    const search = page.getByLabel('Search keys and holders')
    await search.fill('alph')
    await expect.poll(() => page.url()).toMatch(/#\/keys\?search=alph$/)
    await page.getByRole('option', { name: /alpha/ }).click()
    await expect.poll(() => page.url()).toMatch(/#\/keys\/jobs%2Falpha\?search=alph$/)
    await page.reload()
    await visit.live()
    expect(await search.inputValue()).toBe('alph')
    await expect.poll(() => page.getByRole('option').count()).toBe(1)
    // Another view begins without them, and the way back has them again.
    await visit.to('Leases')
    await page.getByLabel('Search holders, keys and leases').waitFor()
    expect(page.url()).toMatch(/#\/leases$/)
    await page.goBack()
    await expect.poll(() => search.inputValue()).toBe('alph')
    await search.fill('')
    await expect.poll(() => page.url()).toMatch(/#\/keys\/jobs%2Falpha$/)
  })

  it('of services and events are in the address too', async () => {
    await using leasehold = await fill('ada', 'alpha')
    await leasehold.registry.register('web', { id: 'one', address: 'a:1', tags: ['blue'] })
    await dashboard.openLive('services?search=we&status=passing&tag=blue&order=size')
    const { page } = dashboard
    await page.getByText('1 instance of 1 service').waitFor()
    expect(await page.getByLabel('Search services and instances').inputValue()).toBe('we')
    expect(await page.getByLabel('Order').inputValue()).toBe('size')
    await page.getByRole('button', { name: 'passing' }).click()
    await page.getByRole('button', { name: 'critical' }).click()
    await page.getByText('0 instances of 0 services').waitFor()
    expect(page.url()).toMatch(/[?&]status=critical(&|$)/)
    await page.goto(`${new URL(page.url()).origin}/#/?events=expired&search=alpha`)
    const expired = page.getByRole('button', { name: 'expired' })
    await expired.waitFor()
    expect(await expired.getAttribute('aria-pressed')).toBe('true')
    const held = page.getByRole('button', { name: 'held', exact: true })
    expect(await held.getAttribute('aria-pressed')).toBe('false')
    await page.getByText('No such events yet.').waitFor()
    await held.click()
    await expect.poll(() => page.url()).toMatch(/events=expired%2Cheld&search=alpha$/)
  })

  it.each([
    ['elections', 'elections and candidates', '#election-alpha', '#election-beta'],
    ['pools', 'pools', '#pool-alpha', '#pool-beta'],
    ['sessions', 'users and sessions', '[title*=lease] >> nth=0', '[title*=lease] >> nth=1'],
  ])('find %s by name', async (view, what, kept, gone) => {
    await using _leasehold = await fill('ada', 'alpha', 'beta')
    await dashboard.openLive(view)
    const { page } = dashboard
    await page.locator(gone).waitFor()
    // The key `/` goes to the search.
    await page.keyboard.press('/')
    await page.keyboard.type('ALPH')
    expect(await page.getByLabel(`Search ${what}`).inputValue()).toBe('ALPH')
    await expect.poll(() => page.locator(gone).count()).toBe(0)
    expect(await page.locator(kept).count()).toBe(1)
  })

  it.each([1280, 390])('leave no name that is wider than a page of %s pixels', async (width) => {
    await using _leasehold = await fill('h'.repeat(190), 'n'.repeat(100))
    await dashboard.openLive('elections')
    const { page, visit } = dashboard
    await page.setViewportSize({ width, height: 860 })
    for (const view of ['Elections', 'Pools', 'Sessions', 'Keys', 'Leases']) {
      await visit.to(view)
      await page.getByText('nnn').first().waitFor()
      const tooWide = () =>
        page.evaluate(() => {
          const boxes = [
            ...document.querySelectorAll('main .panel, main .panel h2, main .resource'),
          ]
          return boxes.filter((it) => it.scrollWidth > it.clientWidth + 1).map((it) => it.className)
        })
      expect(await tooWide(), view).toEqual([])
    }
  })
})
