// Writes the screenshots of the dashboard for the documents: starts a server with the demo,
// opens it in Chromium, and ends both. `npm run screenshots` builds first.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { memoryStore } from 'leasehold/memory'
import { createServer } from 'leasehold-server'
import { chromium } from 'playwright-core'
import { BROWSER_ARGS, findBrowser } from './browser.js'

const FOLDER = join(fileURLToPath(new URL('..', import.meta.url)), 'docs/images')
/** How long the demo runs before the screenshots: long enough for a crash and a new leader. */
const PLAY_MS = Number(process.env.PLAY_MS ?? 75_000)
const VIEWS = ['overview', 'keys', 'leases', 'services', 'elections', 'pools', 'sessions', 'agents']
/** The screenshots in the documents; others need their names, such as `dark` or `wall-overview`. */
const DOCUMENTED = [
  'empty-overview',
  'light-',
  'dark-overview',
  'narrow-overview',
  'narrow-services',
  'narrow-agents',
]
const only = process.argv.length > 2 ? process.argv.slice(2) : DOCUMENTED

const executablePath = findBrowser()
if (executablePath === undefined) throw new Error('chromium is missing: bash scripts/engines.sh')
mkdirSync(FOLDER, { recursive: true })

const store = memoryStore()
const server = await createServer({ store, port: 0 })
const browser = await chromium.launch({ executablePath, args: BROWSER_ARGS })
try {
  await shoot('empty', { colorScheme: 'light', width: 1280, height: 860 }, ['overview'])
  await fetch(`${server.url}/dashboard/demo`, { method: 'PUT' })
  // Keep a page open meanwhile, so that the charts have data.
  const watching = await browser.newPage()
  await watching.goto(server.url)
  await pause(PLAY_MS)
  await shoot('light', { colorScheme: 'light', width: 1280, height: 860 }, VIEWS)
  await shoot('dark', { colorScheme: 'dark', width: 1280, height: 860 }, VIEWS)
  await shoot('narrow', { colorScheme: 'light', width: 390, height: 844 }, VIEWS)
  await shoot('wall', { colorScheme: 'dark', width: 2560, height: 1440 }, ['overview'])
} finally {
  await browser.close()
  await server.close()
  await store.close()
}

async function shoot(name, { colorScheme, width, height }, views) {
  const context = await browser.newContext({ colorScheme, viewport: { width, height } })
  const page = await context.newPage()
  for (const view of views) {
    if (!only.some((it) => `${name}-${view}`.includes(it))) continue
    await page.goto(`${server.url}/#/${view === 'overview' ? '' : view}`)
    await page.reload()
    await page.getByText('live', { exact: true }).waitFor()
    if (width > 1000) await choose(page, view)
    await pause(2500)
    await page.screenshot({ path: join(FOLDER, `${name}-${view}.png`) })
  }
  await context.close()
}

/** Selects an entry with something to show. */
async function choose(page, view) {
  // Use the address: rows move while the demo runs.
  if (view === 'keys') {
    const key = encodeURIComponent('election/demo-scheduler/line')
    await page.goto(`${server.url}/#/keys/${key}`)
  }
  if (view === 'leases')
    await page
      .getByRole('option', { name: /demo:ada/ })
      .first()
      .click()
  if (view === 'keys' || view === 'leases') await pause(6000)
}
