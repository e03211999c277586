import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Scene } from '../scene.ts'
import { TestClients } from '../test-clients.ts'
import { describeInBrowser, useBrowser, Visit } from './browser.ts'

const VIEWS = ['Overview', 'Keys', 'Leases', 'Services', 'Elections', 'Pools', 'Sessions', 'Agents']

describeInBrowser('the dashboard in a browser', () => {
  const browser = useBrowser()
  let scene: Scene
  let visit: Visit

  describe('on a server that is used', () => {
    let world: TestClients

    beforeAll(async () => {
      scene = await Scene.open()
      world = await TestClients.open(scene, 'world')
      await world.fill()
    })

    afterEach(() => visit.end())

    afterAll(async () => {
      await world[Symbol.asyncDispose]()
      await scene.close()
    })

    const begin = async (options = {}) => {
      visit = await Visit.open(browser(), scene.url, options)
      await visit.live()
      return visit.page
    }

    it('shows figures, charts, the attention list and events', async () => {
      const page = await begin()
      const tile = (name: string) => page.locator('.tile', { hasText: name }).locator('b')
      const { keys } = await scene.store.read({ prefix: '', limit: 1000 })
      await expect.poll(() => tile('Keys').textContent()).toBe(String(keys.length))
      await expect.poll(() => tile('Waiting').textContent()).not.toBe('0')
      await page.getByRole('img', { name: /^Renewals: / }).waitFor()
      await page.getByRole('img', { name: /^Expiry lag: / }).waitFor()
      await page.getByRole('link', { name: 'embedder: 1 of 2 healthy' }).waitFor()
      const events = page.getByRole('listbox', { name: 'Events, the latest first' })
      await scene.lease('zoe', ['news/1'])
      await events.getByText('news/1').waitFor()
      await page.getByRole('button', { name: 'held' }).click()
      await expect.poll(() => events.getByText('news/1').count()).toBe(0)
      await page.getByRole('button', { name: 'held' }).click()
      await page.getByLabel('Filter events').fill('zoe')
      await expect.poll(() => events.getByRole('option').count()).toBe(1)
    })

    it('shows a key with its holder, its queue, its value and its history, by keyboard alone', async () => {
      const page = await begin()
      await page.keyboard.press('2')
      await page.getByRole('tree').focus()
      await page.keyboard.press('End')
      await page.keyboard.press('Home')
      await page.keyboard.press('/')
      await page.keyboard.type('nightly')
      await page.getByText('1 match').waitFor()
      await page.getByRole('listbox', { name: 'Found keys' }).focus()
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'jobs/nightly' }).waitFor()
      const queue = page.getByRole('list', { name: 'The queue, in order' })
      await expect
        .poll(() => queue.getByRole('listitem').allInnerTexts())
        .toEqual([expect.stringMatching(/^1\s+bo/), expect.stringMatching(/^2\s+cy/)])
      const detail = page.locator('.detail')
      await detail.getByRole('link', { name: 'ada' }).waitFor()
      await detail
        .getByText(/^\d+(\.\d)? s$/)
        .first()
        .waitFor()
      await page.keyboard.press('/')
      await page.keyboard.press('Control+A')
      await page.keyboard.type('scheduler/line')
      await page.getByRole('button', { name: '1 more in internal keys' }).click()
      await page.getByRole('option', { name: /scheduler/ }).click()
      await page.getByRole('heading', { name: 'Value' }).waitFor()
      await detail.getByText('"leads": true').waitFor()
    })

    it('opens and closes the tree of keys by arrows', async () => {
      const page = await begin()
      await visit.to('Keys')
      const item = page.getByRole('treeitem', { name: /^jobs\// })
      expect(await item.getAttribute('aria-expanded')).toBe('true')
      await page.getByRole('tree').focus()
      const active = () => page.getByRole('tree').getAttribute('aria-activedescendant')
      for (let steps = 0; steps < 60; steps++) {
        const before = await active()
        if (before === (await item.getAttribute('id'))) break
        await page.keyboard.press('ArrowDown')
        await expect.poll(active).not.toBe(before)
      }
      await page.keyboard.press('ArrowLeft')
      await expect.poll(() => item.getAttribute('aria-expanded')).toBe('false')
      expect(await page.getByRole('treeitem', { name: /nightly/ }).count()).toBe(0)
      await page.keyboard.press('ArrowRight')
      await page.getByRole('treeitem', { name: /nightly/ }).waitFor()
    })

    it("shows a holder's whole footprint: claims, leases under it, heartbeats", async () => {
      const page = await begin()
      await visit.to('Leases')
      await page.getByLabel('Search holders').fill('ada')
      await page.getByRole('option', { name: /machine-1/ }).click()
      const detail = page.locator('.detail')
      await detail.getByRole('heading', { name: 'Leases under it' }).waitFor()
      await detail.getByText('services/embedder/i-1').first().waitFor()
      const { leases } = await scene.store.read({ leases: true, limit: 1000 })
      const node = leases.find(
        ({ labels }) => labels['node'] === 'machine-1' && labels['service'] === undefined,
      )!
      // Heartbeats arrive through the server that is viewed, as from any client.
      for (let beat = 0; beat < 4; beat++) {
        await scene.ask(`PUT /v1/leases/${node.id}`)
        // At least: if the test takes long, its holder sends some too.
        const name = new RegExp(`^([${beat + 1}-9]|\\d\\d) heartbeats? seen`)
        const seen = detail.getByRole('img', { name })
        await seen.waitFor()
      }
      await detail.getByText(/with a jitter of/).waitFor()
      await detail.getByText(/^\d+ ms ago|^\d(\.\d)? s ago/).waitFor()
    })

    it('shows instances with health, zone, capabilities and their checks over time', async () => {
      const page = await begin()
      await visit.to('Services')
      await page.getByText('1 of 2 healthy').waitFor()
      const [well, ill] = [page.locator('.instance').nth(0), page.locator('.instance').nth(1)]
      await well.getByText('zone b').waitFor()
      await well.getByText('embed', { exact: true }).waitFor()
      await ill.getByText('out of memory').waitFor()
      await ill.getByRole('img', { name: /2 changes, now critical/ }).waitFor()
    })

    it('shows the leader, its term, and the waiters', async () => {
      const page = await begin()
      await visit.to('Elections')
      const panel = page.locator('.panel', { hasText: 'scheduler' })
      await panel.getByRole('img', { name: /^Terms of scheduler/ }).waitFor()
      await expect.poll(() => panel.getByText('Waiting candidates 2').count()).toBe(1)
      await panel.getByText(':9000').first().waitFor()
    })

    it('shows a pool by tenant, its queue with the expected wait, and learnt values', async () => {
      const page = await begin()
      await visit.to('Pools')
      await page.getByText('0 of 2 free').waitFor()
      await page.locator('.resource', { hasText: 'research: train' }).waitFor()
      const tenants = page.getByRole('table', { name: 'Tenants of gpu' })
      const headings = await tenants.getByRole('columnheader').allTextContents()
      expect(headings).toEqual(['Tenant', 'Holds', 'Guaranteed', 'Waiting', 'Used lately'])
      await page.getByRole('row', { name: /vision 1/ }).waitFor()
      await page.getByText(/in about .*, as booked/).waitFor()
      await page.getByRole('img', { name: /Hold times of train/ }).waitFor()
    })

    it('shows sessions with their users', async () => {
      const page = await begin()
      await visit.to('Sessions')
      const row = page.getByRole('listitem').filter({ hasText: 'eve@example' })
      await row.waitFor()
      await row.getByText(/at most 24 h/).waitFor()
    })

    it.each([
      ['light', 1280],
      ['dark', 1280],
      ['light', 375],
    ] as const)('can be used by everybody, %s and %i wide', async (colorScheme, width) => {
      const page = await begin({ colorScheme, viewport: { width, height: 812 } })
      for (const view of VIEWS) {
        await visit.to(view)
        if (view === 'Keys') await page.getByRole('treeitem', { name: /nightly/ }).click()
        if (view === 'Leases') await page.getByRole('option', { name: /machine-1/ }).click()
        await page.waitForTimeout(150)
        expect(await visit.complaints(), view).toEqual([])
        const wide = await page.evaluate(() => document.documentElement.scrollWidth)
        expect(wide, `${view} does not scroll sideways`).toBeLessThanOrEqual(width)
      }
    })

    it('remembers the light or dark theme', async () => {
      const page = await begin({ colorScheme: 'light' })
      const ground = () =>
        page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
      const light = await ground()
      await page.getByRole('button', { name: 'Colours: system' }).click()
      await page.getByRole('button', { name: 'Colours: light' }).click()
      expect(await ground()).not.toBe(light)
      await page.reload()
      await visit.live()
      expect(await ground()).not.toBe(light)
    })
  })

  describe('on an empty server', () => {
    beforeAll(async () => {
      scene = await Scene.open()
    })

    afterEach(() => visit.end())
    afterAll(() => scene.close())

    it('shows three commands that take, keep and release a lock, and they do', async () => {
      visit = await Visit.open(browser(), scene.url)
      await visit.live()
      const { page } = visit
      await page.getByRole('heading', { name: 'Nothing is held yet' }).waitFor()
      const commands = await page.locator('.command pre').allInnerTexts()
      expect(commands).toHaveLength(3)
      expect(await visit.complaints()).toEqual([])
      const bash = promisify(execFile)
      const run = async (text: string) => (await bash('bash', ['-c', text])).stdout
      const lease = await run(`${commands[0]}; printf %s "$lease"`)
      await page.getByRole('link', { name: 'Keys', exact: true }).first().click()
      await page.getByRole('treeitem', { name: /nightly/ }).waitFor()
      expect(await run(`lease=${lease}; ${commands[1]}`)).toContain('"remaining":60000')
      await run(`lease=${lease}; ${commands[2]}`)
      await page.getByText('No key is claimed').waitFor()
    })

    it('explains each empty view', async () => {
      visit = await Visit.open(browser(), scene.url)
      await visit.live()
      for (const [view, words] of [
        ['Keys', 'No key is claimed'],
        ['Services', 'No instance is registered'],
        ['Elections', 'No elections'],
        ['Pools', 'No pool is defined'],
        ['Sessions', 'No sessions'],
        ['Agents', 'No agents'],
      ] as const) {
        await visit.to(view)
        await visit.page.getByText(words).waitFor()
        expect(await visit.complaints(), view).toEqual([])
      }
    })

    it('starts a demo, marks it, and ends it with one click', async () => {
      visit = await Visit.open(browser(), scene.url)
      await visit.live()
      const { page } = visit
      await page.getByRole('button', { name: 'Try it' }).click()
      await page.getByText('A demo is running in this server').waitFor()
      await visit.to('Services')
      await page.getByRole('heading', { name: /demo-embedder demo/ }).waitFor()
      await visit.to('Pools')
      await page.getByRole('heading', { name: /demo-gpu demo/ }).waitFor()
      await page.locator('.resource').first().waitFor()
      await visit.to('Agents')
      await page.getByRole('heading', { name: /demo:iris demo/ }).waitFor()
      await page.getByRole('button', { name: 'End it' }).click()
      await page.getByText('No agents').waitFor()
      await visit.to('Overview')
      await page.getByRole('heading', { name: 'Nothing is held yet' }).waitFor()
    })
  })
})
