import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { scaleOf } from '../../../dashboard/parts/plot.tsx'
import { Scene } from '../scene.ts'
import { TestClients } from '../test-clients.ts'
import { describeInBrowser, useBrowser, Visit } from './browser.ts'

const NARROW = { viewport: { width: 390, height: 844 } }

describeInBrowser('the dashboard, read closely', () => {
  const browser = useBrowser()
  let scene: Scene
  let visit: Visit

  afterEach(() => visit.end())

  const begin = async (hash = '', options = {}): Promise<Page> => {
    visit = await Visit.open(browser(), `${scene.url}/${hash}`, options)
    await visit.live()
    return visit.page
  }

  describe('on a server that is used', () => {
    let world: TestClients

    beforeAll(async () => {
      scene = await Scene.open()
      world = await TestClients.open(scene, 'world')
      await world.fill()
    })

    afterAll(async () => {
      await world[Symbol.asyncDispose]()
      await scene.close()
    })

    it('skips to the content of the view that is shown', async () => {
      const page = await begin('#/pools')
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await soon(() => page.evaluate(() => document.activeElement?.id)).toBe('main')
      expect(await page.evaluate(() => location.hash)).toBe('#/pools')
      expect(await page.title()).toBe('Pools · Leasehold')
      await page.getByRole('heading', { name: /^Pools/ }).waitFor()
      // Nor does a fragment that names no view lead anywhere.
      await page.evaluate(() => {
        location.hash = '#main'
      })
      await page.waitForTimeout(100)
      await page.getByRole('heading', { name: /^Pools/ }).waitFor()
    })

    it('filters events even while they are paused', async () => {
      const page = await begin()
      await scene.lease('pia', ['paused/1'])
      await scene.lease('quin', ['paused/2'])
      const events = page.getByRole('listbox', { name: 'Events, the latest first' })
      await events.getByText('paused/2').waitFor()
      await page.getByRole('button', { name: 'Pause' }).click()
      await page.getByLabel('Filter events').fill('pia')
      await soon(() => events.getByRole('option').count()).toBe(1)
      await page.getByRole('button', { name: 'held' }).click()
      await page.getByText('No such events').waitFor()
      await page.getByRole('button', { name: 'held' }).click()
      await scene.lease('pia', ['paused/3'])
      await page.waitForTimeout(300)
      expect(await events.getByRole('option').allInnerTexts()).toHaveLength(1)
      await page.getByRole('button', { name: 'Paused' }).click()
      await soon(() => events.getByRole('option').count()).toBe(2)
    })

    it('shows the last commit on a quiet server, as a dot and with its age', async () => {
      const page = await begin()
      await scene.ask('POST /v1/locks/quiet/1?ttl=60s&holder=uma')
      const plot = page.locator('.plot', { hasText: 'Commit latency' })
      await soon(() => plot.locator('.plot-now').textContent()).toMatch(/median \S+ ms, \d/)
      expect(await plot.locator('.plot-now').textContent()).not.toContain('–')
      expect(await plot.locator('.plot-dot').first().getAttribute('d')).toMatch(/^M.*h0$/)
    })

    it('follows the selected event, whatever happens meanwhile', async () => {
      const page = await begin()
      await scene.lease('rae', ['kept/here'])
      const events = page.getByRole('listbox', { name: 'Events, the latest first' })
      await events.getByText('kept/here').waitFor()
      await events.focus()
      await page.keyboard.press('Home')
      for (let at = 0; at < 5; at++) await scene.lease('sam', [`other/${at}`])
      await events.getByText('other/4').waitFor()
      expect(await events.locator('.row.active').textContent()).toContain('kept/here')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'kept/here' }).waitFor()
    })

    it('goes from a key to its folder and back by arrows, and chooses by space', async () => {
      await scene.lease('ada', ['jobs/weekly'])
      const page = await begin('#/keys')
      const tree = page.getByRole('tree')
      await tree.getByRole('treeitem', { name: /nightly/ }).click()
      await tree.focus()
      const active = () => tree.locator('.row.active').textContent()
      await soon(active).toMatch(/^nightly/)
      await page.keyboard.press('ArrowLeft')
      await soon(active).toMatch(/^jobs\//)
      await page.keyboard.press('ArrowRight')
      await soon(active).toMatch(/^nightly/)
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Space')
      await page.getByRole('heading', { name: 'jobs/weekly' }).waitFor()
      await scene.lease('ada', ['jobs/a-first'])
      await tree.getByText('a-first').waitFor()
      await soon(active).toMatch(/^weekly/)
      await page.keyboard.press('ArrowLeft')
      await page.keyboard.press('Space')
      const folder = tree.getByRole('treeitem', { name: /^jobs\// })
      await soon(() => folder.getAttribute('aria-expanded')).toBe('false')
    })

    it('shows an entry deep in the tree in one row, with its name', async () => {
      const deep = `a/very/deep/${Array.from({ length: 20 }, (_, at) => `level-${at}`).join('/')}`
      await scene.lease('ada', [`${deep}/tail-1`])
      const page = await begin('#/keys')
      const tree = page.getByRole('tree')
      const line = tree.getByRole('treeitem', { name: /^a\/very\/deep\// })
      await line.waitFor()
      expect(await line.getAttribute('aria-level')).toBe('1')
      await tree.getByRole('treeitem', { name: /^tail-1/ }).click()
      await page.getByRole('heading', { name: `${deep}/tail-1` }).waitFor()
      expect(await line.locator('.short-tail').evaluate(endIsSeen)).toBe(true)
      await scene.lease('bo', [`${deep}/tail-2`])
      await soon(() => tree.getByRole('treeitem', { name: /^tail-/ }).count()).toBe(2)
      await page.getByLabel('Search keys').fill('level-19/tail-2')
      await page.getByRole('option', { name: /tail-2/ }).click()
      await page.getByRole('heading', { name: `${deep}/tail-2` }).waitFor()
    })

    it('distinguishes tokens and leases by their last characters', async () => {
      const page = await begin('#/keys/jobs%2Fnightly')
      const token = page.getByRole('treeitem', { name: /nightly/ }).locator('.token')
      const { claims } = await scene.store.read({ key: 'jobs/nightly' })
      expect(await token.getAttribute('title')).toContain(String(claims[0]!.token))
      expect(await token.evaluate(endIsSeen)).toBe(true)
      await visit.to('Leases')
      expect(await page.locator('.lease-line .lease-id').first().evaluate(endIsSeen)).toBe(true)
    })

    it('shows only keys with waiters, from a link on their number', async () => {
      const page = await begin()
      await page.locator('.tiles').getByRole('link', { name: 'Waiting' }).click()
      const found = page.getByRole('listbox', { name: 'Found keys' })
      await found.getByText('jobs/nightly').waitFor()
      expect(await found.getByText('jobs/weekly').count()).toBe(0)
      await found.getByText('jobs/nightly').click()
      await page.getByRole('heading', { name: 'jobs/nightly' }).waitFor()
      await found.waitFor()
      await page.getByRole('button', { name: 'with waiters' }).click()
      await page.getByRole('tree').waitFor()
    })

    it('draws how many leases, keys, holders and waiters there were', async () => {
      const page = await begin()
      await visit.to('Keys')
      await page.waitForTimeout(2500)
      await visit.to('Overview')
      for (const name of ['Leases', 'Keys', 'Holders', 'Waiting', 'Clients', 'Memory']) {
        const plot = page.locator('.tile', { hasText: name }).getByRole('img')
        await plot.waitFor()
        // More than one second is shown at once, because another view counted too.
        expect(await plot.locator('path').first().getAttribute('d')).toContain('L')
      }
    })

    it('shows on a phone the reason of an event, and the user of a session', async () => {
      const lease = await scene.lease('tom', ['ended/here'])
      await scene.store.revoke({ target: { lease }, by: 'ops', why: 'stuck for long' })
      const page = await begin('', NARROW)
      const events = page.getByRole('listbox', { name: 'Events, the latest first' })
      await events.getByText('stuck for long').first().waitFor()
      expect(await events.getByText('stuck for long').first().isVisible()).toBe(true)
      await visit.to('Sessions')
      const row = page.getByRole('listitem').filter({ hasText: 'eve@example' })
      expect(await row.getByText(/at most 24 h/).isVisible()).toBe(true)
      await row.getByRole('link').click()
      await page.locator('.detail').getByText('session/web/id/').first().waitFor()
    })

    it('links from a pool and an election to holders and waiters', async () => {
      const page = await begin('#/pools')
      const tile = page.locator('.resource', { hasText: 'research: train' })
      await tile.getByRole('link', { name: 'ada' }).click()
      await page.locator('.detail').getByText('pool/gpu').first().waitFor()
      await visit.to('Pools')
      await tile.getByRole('link', { name: /^gpu-/ }).click()
      await page.getByRole('heading', { name: /^pool\/gpu\/.*gpu-/ }).waitFor()
      await visit.to('Pools')
      await page.locator('.terms').getByRole('link', { name: 'cy' }).click()
      await page.locator('.detail').getByText('pool/gpu/line').first().waitFor()
      await visit.to('Elections')
      const panel = page.locator('.panel', { hasText: 'scheduler' })
      const { claims } = await scene.store.read({ key: 'election/scheduler/line' })
      await panel.locator('.candidates').getByRole('link').first().waitFor()
      const { token, holder } = claims[0]!
      const target = { key: 'election/scheduler/line', token }
      await scene.store.revoke({ target, by: 'ops', why: 'it was stuck' })
      const term = panel.locator('.past tbody tr').first()
      await term.getByText('by ops: it was stuck').waitFor()
      expect(await term.locator('time').first().textContent()).toMatch(/^\d\d:\d\d:\d\d/)
      await panel.locator('.candidates').getByRole('link').first().click()
      await page.locator('.detail').getByText('election/scheduler/line').first().waitFor()
      expect(holder).not.toBe('')
    })
  })
})

/** Waits for longer than a second, the interval of samples. */
function soon<Value>(look: () => Promise<Value>) {
  return expect.poll(look, { timeout: 10_000 })
}

/** Runs in the page: whether the last letter of a long entry is visible. */
function endIsSeen(element: Element): boolean {
  const range = document.createRange()
  const text = document.createTreeWalker(element, NodeFilter.SHOW_TEXT).nextNode()!
  const { length } = text.textContent!
  range.setStart(text, length - 1)
  range.setEnd(text, length)
  const [letter, box] = [range.getBoundingClientRect(), element.getBoundingClientRect()]
  return letter.left >= box.left - 1 && letter.right <= box.right + 1
}

describe('the axis of a plot', () => {
  const scale = (...values: (number | undefined)[]) =>
    scaleOf([{ name: '', tone: 'main', values }], 1)

  it('ends at the highest value, for few or many values', () => {
    expect(scale()).toEqual({ top: 1, peak: 1 })
    expect(scale(undefined, 5, undefined)).toEqual({ top: 5, peak: 5 })
    expect(scale(0, 50, 0, 0, 50, 0)).toEqual({ top: 50, peak: 50 })
    expect(scale(...Array.from({ length: 100 }, (_, at) => at))).toEqual({ top: 99, peak: 99 })
  })

  it('leaves out a spike that would flatten the other values', () => {
    const { top, peak } = scale(...Array(100).fill(2), 300, ...Array(50).fill(2.5))
    expect(peak).toBe(300)
    expect(top).toBeLessThan(5)
    expect(top).toBeGreaterThan(2.5)
  })
})
