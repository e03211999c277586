import { expect, it } from 'vitest'
import { startAgent } from '../../agents/clients.ts'
import { openAgents } from '../agents-scene.ts'
import { Dashboard, describeInBrowser } from './browser.ts'

describeInBrowser('agents in the dashboard', () => {
  const dashboard = new Dashboard()

  it('shows each with its work, and who waits for whom', async () => {
    const scene = await dashboard.scene()
    await using _agents = await openAgents(scene.store)
    const visit = await dashboard.openLive('agents')
    const { page } = visit
    const ada = page.locator('.agent', { has: page.getByRole('link', { name: 'ada' }) }).first()
    await ada.getByText('the checkout').waitFor()
    await ada.getByText('rename Cart to Basket').waitFor()
    await ada.getByText(/^Asked back by bo .*: the demo is at noon$/).waitFor()
    await ada.getByText('bo, cy wait for it').waitFor()
    const waits = page.getByRole('table')
    await expect
      .poll(() => waits.getByRole('row').allInnerTexts())
      .toEqual([
        expect.stringMatching(/^Agent\s+Wants\s+Since\s+Waits for\s+Its work\s*$/),
        expect.stringMatching(/^bo\s+src\/cart\.ts\s+round prices\s.*ada\s+rename Cart/s),
        expect.stringMatching(/^cy\s+src\/cart\.ts\s+format the file\s.*ada\s+and 1 other/s),
      ])
    for (const width of [1280, 375]) {
      await page.setViewportSize({ width, height: 812 })
      expect(await visit.complaints()).toEqual([])
      const wide = await page.evaluate(() => document.documentElement.scrollWidth)
      expect(wide).toBeLessThanOrEqual(width)
    }
    await page.getByLabel('Search agents').fill('prices in')
    await expect.poll(() => page.locator('.agent').count()).toBe(1)
  })

  it('asks an agent back and breaks its hold, and its model reads both', async () => {
    const scene = await dashboard.scene()
    // The real process, started and asked as by an agent host.
    const ada = await startAgent('client 2', ['--server', scene.url, '--agent', 'ada'])
    await ada.call('acquire', { keys: ['deploy'], purpose: 'roll out 1.2' })
    const { page } = await dashboard.openLive('agents')
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Ask back deploy from ada' }).click()
    await dialog.getByLabel('Reason').fill('the demo is at noon')
    await dialog.getByRole('button', { name: 'Ask for it' }).click()
    await page.getByText(/^Asked back by dashboard .* the demo is at noon$/).waitFor()
    const { data } = await ada.call('mine')
    expect(data.notices).toMatchObject([
      { about: 'asked-back', text: expect.stringContaining('the demo is at noon') },
      { about: 'ceiling' },
    ])
    await page.getByRole('button', { name: 'Break, take deploy from ada' }).click()
    await dialog.getByText('Nobody waits for it.').waitFor()
    await dialog.getByRole('combobox').selectOption('5 s')
    await dialog.getByLabel('Reason').fill('it hangs')
    await dialog.getByRole('button', { name: 'Break it' }).click()
    await page.getByText('No agents').waitFor({ timeout: 60_000 })
    const after = await ada.call('mine')
    expect(after.data.holds).toMatchObject([
      { state: 'lost', why: expect.stringContaining('by dashboard: it hangs') },
    ])
    expect(scene.audit).toMatchObject([
      { action: 'ask', target: { key: 'deploy' }, why: 'the demo is at noon', outcome: 'done' },
      { action: 'break', why: 'it hangs', outcome: 'done' },
    ])
    await ada.close()
  })
})
