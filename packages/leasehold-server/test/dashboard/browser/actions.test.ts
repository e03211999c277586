import { expect, it } from 'vitest'
import { Gate } from '../../setup/changed-store.ts'
import { TestClients } from '../test-clients.ts'
import { Dashboard, describeInBrowser, Visit } from './browser.ts'

describeInBrowser('actions in the dashboard', () => {
  const dashboard = new Dashboard()

  /** Gives the reason in the dialog and does it. */
  const confirm = async (button: string, why: string) => {
    const { page, visit } = dashboard
    const dialog = page.getByRole('dialog')
    await dialog.waitFor()
    expect(await visit.complaints()).toEqual([])
    const done = dialog.getByRole('button', { name: button })
    expect(await done.isDisabled()).toBe(true)
    await dialog.getByLabel('Reason').fill(why)
    await done.click()
    await dialog.waitFor({ state: 'hidden' })
  }

  it('ends a lease, after explaining the effect', async () => {
    const scene = await dashboard.scene()
    const lease = await scene.lease('ada', ['jobs/1', 'jobs/2'])
    await scene.lease('bo', ['jobs/1'])
    const { page } = await dashboard.openLive('leases')
    await page.getByRole('option', { name: /ada/ }).click()
    await page.getByRole('button', { name: 'End it now…' }).click()
    await page.getByText('It loses 2 claims: jobs/1, jobs/2.').waitFor()
    await page.getByText('bo is next in the queue for jobs/1 and holds it at once.').waitFor()
    await confirm('End it now', 'stuck since noon')
    await page.getByText(`It was revoked by dashboard: stuck since noon.`).waitFor()
    expect((await scene.store.read({ lease })).end).toMatchObject({ why: 'stuck since noon' })
    expect(scene.audit).toMatchObject([
      { action: 'revoke', why: 'stuck since noon', outcome: 'done' },
    ])
  })

  it('does nothing when it is cancelled, by button or by key', async () => {
    const scene = await dashboard.scene()
    const lease = await scene.lease('ada', ['jobs/1'])
    const { page } = await dashboard.openLive(`leases/${lease}`)
    await page.getByRole('button', { name: 'End it now…' }).click()
    await page.getByRole('dialog').getByLabel('Reason').fill('no')
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'End it now…' }).click()
    expect(await page.getByLabel('Reason').inputValue()).toBe('')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    expect((await scene.store.read({ lease })).lease).toBeDefined()
    expect(scene.audit).toEqual([])
  })

  it('leaves the next dialog open when the answer to a closed one arrives late', async () => {
    const scene = await dashboard.scene()
    const lease = await scene.lease('ada', ['jobs/1'])
    const { page } = await dashboard.openLive(`leases/${lease}`)
    const gate = new Gate()
    await page.route('**/dashboard/actions', async (route) => {
      await gate.opened
      await route.continue()
    })
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Break it…' }).click()
    await dialog.getByLabel('Reason').fill('slow')
    await dialog.getByRole('button', { name: 'Break it' }).click()
    await dialog.getByText('Working…').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'End it now…' }).click()
    await dialog.getByLabel('Reason').fill('enough')
    gate.open()
    await page.getByText(/The lease of ada ends in/).waitFor()
    expect(await dialog.getByLabel('Reason').inputValue()).toBe('enough')
    await dialog.getByRole('button', { name: 'End it now' }).click()
    await page.getByText(/The lease of ada has ended/).waitFor()
  })

  it('breaks a lease with a period', async () => {
    const scene = await dashboard.scene()
    const lease = await scene.lease('ada', ['jobs/1'])
    const { page } = await dashboard.openLive(`leases/${lease}`)
    await page.getByRole('button', { name: 'Break it…' }).click()
    await page.getByRole('combobox').selectOption('5 s')
    await confirm('Break it', 'the machine goes down')
    await page.getByText('The lease').getByText('has ended').waitFor()
    expect((await scene.store.read({ lease })).end).toMatchObject({ reason: 'broken' })
    expect(scene.audit).toMatchObject([{ action: 'break', target: { lease, after: 5000 } }])
  })

  it('takes a key from its holder, and the next has it', async () => {
    const scene = await dashboard.scene()
    await scene.lease('ada', ['jobs/1', 'jobs/2'])
    await scene.lease('bo', ['jobs/1'])
    const { page } = await dashboard.openLive('keys/jobs%2F1')
    await page.getByRole('button', { name: 'Take it away…' }).click()
    await confirm('Take it away', 'stuck')
    await page.locator('.detail').getByRole('link', { name: 'bo' }).waitFor()
    await page.locator('.history').getByText('by dashboard: stuck').waitFor()
    expect((await scene.store.read({ key: 'jobs/2' })).count).toBe(1)
    expect(scene.audit).toMatchObject([{ action: 'revoke', target: { key: 'jobs/1' } }])
  })

  it('drains an instance and returns it', async () => {
    const scene = await dashboard.scene()
    await using world = await TestClients.open(scene, 'ada')
    const { registry } = world.leasehold
    await registry.register('embedder', { id: 'i-1' })
    const { page } = await dashboard.openLive('services')
    await page.getByRole('button', { name: 'Drain…' }).click()
    await page.getByText('No healthy instance of embedder is left').waitFor()
    await confirm('Drain it', 'upgrade')
    await page.locator('.instance').getByText('drained', { exact: true }).waitFor()
    expect(await registry.find('embedder')).toEqual([])
    await page.getByRole('button', { name: 'Return…' }).click()
    await confirm('Return it', 'upgraded')
    await page.getByText('1 of 1 healthy').waitFor()
    expect(await registry.find('embedder')).toHaveLength(1)
    const actions = scene.audit.map(({ action, why }) => `${action}: ${why}`)
    expect(actions).toContain('drain: upgrade')
    expect(actions).toContain('return: upgraded')
  })

  it('ends a term and a session', async () => {
    const scene = await dashboard.scene()
    await using world = await TestClients.open(scene, 'ada')
    const other = await world.as('bo')
    const term = await world.leasehold.election('boss').campaign()
    const next = other.election('boss').campaign()
    await world.leasehold.sessions('web').create({ user: 'eve', data: {} })
    const visit = await dashboard.openLive('elections')
    const { page } = visit
    await page.getByRole('button', { name: 'End its term…' }).click()
    await confirm('End its term', 'it does not lead')
    expect((await next).leading).toBe(true)
    expect(term.leading).toBe(false)
    await visit.to('Sessions')
    await page.getByRole('button', { name: 'End the session of eve' }).click()
    await page.getByRole('heading', { name: 'End the session of eve' }).waitFor()
    await page.getByText('eve is logged out at once').waitFor()
    await confirm('End the session', 'left the company')
    await page.getByRole('status').getByText('eve is logged out').waitFor()
    await expect
      .poll(async () => (await world.leasehold.sessions('web').list('eve')).length)
      .toBe(0)
  })

  it('says that nothing was taken if the holder has changed meanwhile', async () => {
    const scene = await dashboard.scene()
    const ada = await scene.lease('ada', ['jobs/1'])
    await scene.lease('bo', ['jobs/1'])
    const visit = await dashboard.openLive('keys/jobs%2F1')
    const { page } = visit
    await page.getByRole('button', { name: 'Take it away…' }).click()
    await scene.store.revoke({ target: { lease: ada } })
    const dialog = page.getByRole('dialog')
    await dialog.getByText('ada no longer holds it: bo does now.').waitFor()
    visit.expected.push(/404/)
    await dialog.getByLabel('Reason').fill('stuck')
    await dialog.getByRole('button', { name: 'Take it away' }).click()
    await dialog.getByRole('alert').getByText('Not done: ada no longer holds it').waitFor()
    const { claims } = await scene.store.read({ key: 'jobs/1' })
    expect(claims.map(({ holder }) => holder)).toEqual(['bo'])
  })

  it('shows a break at once to all viewers, and heartbeats do not undo it', async () => {
    const scene = await dashboard.scene()
    const lease = await scene.lease('ada', ['jobs/1'])
    const visit = await dashboard.openLive(`leases/${lease}`)
    const { page } = visit
    const other = await Visit.open(dashboard.browser(), `${scene.url}/#/leases/${lease}`)
    await other.live()
    await other.page.getByText('when it is not renewed').waitFor()
    await page.getByRole('button', { name: 'Break it…' }).click()
    await page.getByRole('combobox').selectOption('30 s')
    await confirm('Break it', 'the machine goes down')
    await page.getByRole('status').getByText('The lease of ada ends in 30 s').waitFor()
    for (const one of [visit, other]) {
      const said = /^broken by dashboard: the machine goes down, ends in \d+ s$/
      await one.page.getByText(said).waitFor()
      await one.page.getByRole('button', { name: 'Break it sooner…' }).waitFor()
    }
    await scene.ask(`PUT /v1/leases/${lease}`)
    for (const one of [visit, other]) {
      await one.page.getByRole('img', { name: '1 heartbeat seen' }).waitFor()
      const left = await one.page.locator('.detail .drain-text').first().textContent()
      expect(Number.parseFloat(left!)).toBeLessThanOrEqual(30)
    }
    await other.end()
  })

  it('says that nothing was done if a break would come too late', async () => {
    const scene = await dashboard.scene()
    const lease = await scene.lease('ada', ['jobs/1'])
    const visit = await dashboard.openLive(`leases/${lease}`)
    const { page } = visit
    await page.getByRole('button', { name: 'Break it…' }).click()
    visit.expected.push(/400/)
    await page.getByRole('combobox').selectOption('60 s')
    await page.getByLabel('Reason').fill('too late')
    // While the request is on its way: a page that knows of the first break offers no longer period.
    await page.route('**/dashboard/actions', async (route) => {
      await scene.store.revoke({ target: { lease }, after: 20_000 })
      await route.continue()
    })
    await page.getByRole('dialog').getByRole('button', { name: 'Break it' }).click()
    await page.getByRole('alert').getByText('Not done: the lease already ends sooner').waitFor()
  })

  it('takes a shared key from any one of its holders, and names the remaining ones', async () => {
    const scene = await dashboard.scene()
    for (const holder of ['ada', 'bo']) {
      const claims = [{ key: 'jobs/1', mode: 'shared', value: `"of ${holder}"` }]
      await scene.lease(holder, [], { claims })
    }
    const { page } = await dashboard.openLive('keys/jobs%2F1')
    const held = (holder: string) => page.locator('.holding', { hasText: holder })
    await held('bo').getByText('"of bo"').waitFor()
    await expect.poll(() => page.locator('.history').getByText('holds').count()).toBe(2)
    await page.getByRole('button', { name: 'Take it away from bo…' }).click()
    await page.getByText('ada keeps holding it.').waitFor()
    await confirm('Take it away', 'stuck')
    await page.getByRole('status').getByText('bo has lost jobs/1').waitFor()
    const { claims } = await scene.store.read({ key: 'jobs/1' })
    expect(claims.map(({ holder }) => holder)).toEqual(['ada'])
    await page.locator('.history').getByText('by dashboard: stuck').waitFor()
  })

  it('says why something was not done, and leaves the reason to be sent again', async () => {
    const scene = await dashboard.scene()
    const lease = await scene.lease('ada', ['jobs/1'])
    const visit = await dashboard.openLive(`leases/${lease}`)
    const { page } = visit
    await page.getByRole('button', { name: 'End it now…' }).click()
    await scene.store.revoke({ target: { lease } })
    visit.expected.push(/410/)
    await page.getByLabel('Reason').fill('too late')
    await page.getByRole('dialog').getByRole('button', { name: 'End it now' }).click()
    await page
      .getByRole('alert')
      .getByText(/^Not done: /)
      .waitFor()
    expect(await page.getByLabel('Reason').inputValue()).toBe('too late')
  })
})
