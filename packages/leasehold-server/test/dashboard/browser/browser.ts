import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { LeaseStore } from 'leasehold/port'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { BROWSER_ARGS, findBrowser } from '../../../../../scripts/browser.js'
import { Scene } from '../scene.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/**
 * A group of tests that need a browser. Without one they are skipped, and the reason is printed.
 * Continuous integration must have one, so there it is a failure.
 */
export function describeInBrowser(name: string, tests: () => void): void {
  if (findBrowser() !== undefined) {
    describe(name, tests)
    return
  }
  const reason = 'chromium is not on this machine: scripts/engines.sh installs it'
  if (process.env['CI'] === 'true') {
    describe(name, () => {
      it('has its browser', () => {
        throw new Error(reason)
      })
    })
    return
  }
  console.warn(`left out: ${name}, because ${reason}`)
  describe.skipIf(findBrowser() === undefined)(`${name} (${reason})`, tests)
}

/** Launches a browser before a group of tests and closes it after them. */
export function useBrowser(): () => Browser {
  let browser: Browser
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: findBrowser()!, args: [...BROWSER_ARGS] })
  })
  afterAll(() => browser?.close())
  return () => browser
}

/** A page, and all that went wrong on it. */
export class Visit {
  readonly page: Page
  /** The browser's complaints, and requests to other hosts. */
  readonly faults: string[] = []
  /** Faults that a test expects, because it breaks something. */
  readonly expected: RegExp[] = []

  private constructor(page: Page, origin: string) {
    this.page = page
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') this.#fault(message.text())
    })
    page.on('pageerror', (error) => this.#fault(String(error)))
    page.on('request', (request) => {
      const { host, protocol } = new URL(request.url())
      if (host !== new URL(origin).host) this.#fault(`asked ${protocol}//${host}`)
    })
    page.on('websocket', (socket) => {
      if (new URL(socket.url()).host !== new URL(origin).host) this.#fault(`asked ${socket.url()}`)
    })
  }

  static async open(
    browser: Browser,
    url: string,
    options: BrowserContextOptions = {},
  ): Promise<Visit> {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 860 },
      reducedMotion: 'reduce',
      ...options,
    })
    // As long as a test may take, on a machine that is busy with something else.
    context.setDefaultTimeout(80_000)
    const page = await context.newPage()
    const visit = new Visit(page, url)
    await page.goto(url)
    return visit
  }

  /** Waits until the page shows the current state. */
  async live(): Promise<void> {
    await this.page.locator('.line', { hasText: 'live' }).waitFor()
  }

  async to(view: string): Promise<void> {
    await this.page.getByRole('navigation').getByRole('link', { name: view }).click()
  }

  /** The accessibility faults, by the rules of WCAG 2.2 AA. */
  async complaints(): Promise<string[]> {
    // By the browser's own door: the page itself lets no script in.
    await this.page.evaluate(AXE)
    return this.page.evaluate(async () => {
      // biome-ignore lint/suspicious/noExplicitAny: it was put there a moment ago.
      const { violations } = await (globalThis as any).axe.run(document, {
        runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
      })
      return violations.map(
        (it: { id: string; nodes: { html: string; failureSummary: string }[] }) =>
          `${it.id}: ${it.nodes.map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary}`).join('\n')}`,
      )
    })
  }

  /** Ends the visit; fails if anything unexpected went wrong. */
  async end(): Promise<void> {
    await this.page.context().close()
    expect(this.faults).toEqual([])
  }

  #fault(text: string): void {
    if (!this.expected.some((pattern) => pattern.test(text))) this.faults.push(text)
  }
}

/** For a group of tests with a scene and a visit each: it ends both after each test. */
export class Dashboard {
  readonly browser = useBrowser()
  #scene!: Scene
  #visit!: Visit

  constructor() {
    afterEach(async () => {
      await this.#visit.end()
      await this.#scene.close()
    })
  }

  get visit(): Visit {
    return this.#visit
  }

  get page(): Page {
    return this.#visit.page
  }

  async scene(store?: LeaseStore): Promise<Scene> {
    this.#scene = await Scene.open(store)
    return this.#scene
  }

  /** Opens the page of a view. */
  async open(view: string): Promise<Visit> {
    this.#visit = await Visit.open(this.browser(), `${this.#scene.url}/#/${view}`)
    return this.#visit
  }

  /** Opens the page of a view and waits until it shows the current state. */
  async openLive(view: string): Promise<Visit> {
    const visit = await this.open(view)
    await visit.live()
    return visit
  }

  async signIn(token: string): Promise<void> {
    await this.page.getByLabel('Access token').fill(token)
    await this.page.getByRole('button', { name: 'Sign in' }).click()
  }
}
