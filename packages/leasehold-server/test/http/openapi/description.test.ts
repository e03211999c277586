import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { docsPage } from '../../../src/http/openapi/docs-page.ts'
import { openApi } from '../../../src/http/openapi/open-api.ts'
import { type ProblemCode, STATUS, statusesOf } from '../../../src/http/responses/problem.ts'
import { ROUTES } from '../../../src/http/routes/index.ts'
import { type Answered, Scene } from '../scene.ts'

const ofPackage = async (file: string) =>
  JSON.parse(await readFile(new URL(`../../../${file}`, import.meta.url), 'utf8'))

let scene: Scene
let described: Answered
let page: Answered
beforeAll(async () => {
  scene = await Scene.open()
  described = await scene.ask('GET /openapi.json')
  page = await scene.ask('GET /docs')
})
afterAll(() => scene.close())

describe('the description for programs', () => {
  it('is made of the routes, with the version of the package', async () => {
    const { version } = await ofPackage('package.json')
    expect(described.body).toEqual(JSON.parse(JSON.stringify(openApi(ROUTES, version))))
  })

  it('is JSON, and nothing else to a browser', () => {
    expect(described.status).toBe(200)
    expect(described.type).toMatch(/^application\/json/)
    expect(described.headers.get('x-content-type-options')).toBe('nosniff')
  })
})

describe('the description for people', () => {
  it('is a page that may use its own style, and nothing of anybody else', () => {
    expect([page.status, page.type]).toEqual([200, 'text/html; charset=utf-8'])
    const [, style] = /<style>(.*)<\/style>/s.exec(page.body) ?? []
    const hash = createHash('sha256').update(style!).digest('base64')
    expect(page.headers.get('content-security-policy')).toBe(
      `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    )
    expect(page.headers.get('x-content-type-options')).toBe('nosniff')
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
  })

  it('shows characters that mean something in HTML as they are', () => {
    const [route] = ROUTES
    const shown = docsPage([{ ...route!, title: 'a < b & "c"' }], '1')
    expect(shown).toContain('<p>a &lt; b &amp; &quot;c&quot;.')
  })

  /** The contents of the element with this id, up to the next one of its kind. */
  const part = (id: string, end: string): string => {
    const from = page.body.indexOf(`id="${id}"`)
    expect(from, id).toBeGreaterThan(0)
    return page.body.slice(from, page.body.indexOf(end, from))
  }

  it('names the version, and has each group of operations, in order, with a link to it', async () => {
    const { version } = await ofPackage('package.json')
    expect(page.body).toContain(`<title>Leasehold ${version}:`)
    const groups = [...new Set(ROUTES.map(({ group }) => group))]
    const links = [...page.body.matchAll(/<li><a href="#(.*?)">(.*?)<\/a><\/li>/g)]
    expect(links.map(([, id]) => id)).toEqual([...groups, 'problems'])
    expect(links.map(([, , text]) => text)).toEqual([...groups, 'Problems'])
    for (const group of groups) {
      const own = ROUTES.filter((route) => route.group === group).map(({ id }) => id)
      const text = part(group, '<h2')
      expect([...text.matchAll(/<section id="(.*?)">/g)].map(([, id]) => id)).toEqual(own)
    }
  })

  it.each(ROUTES.map((route) => [route.id, route] as const))(
    'shows the parameters and answers of %s',
    (id, { method, path, title, about = '', params = {}, query = {}, body, answer }) => {
      const text = part(id, '</section>').replaceAll('&quot;', '"')
      expect(text).toContain(`<p>${title}. ${about}</p>`)
      expect(text).toContain(`<b>${method}</b> <code>${path}</code>`)
      expect(text).toContain(`<p>${answer.status}: `)
      const rows = [...text.matchAll(/<tr><td><code>(.*?)<\/code><\/td><td>(\w+) (\w*)<\/td>/g)]
      expect(rows.map(([, name, where, must]) => [name, where, must])).toEqual([
        ...Object.keys(params).map((name) => [name, 'path', 'required']),
        ...Object.entries(query).map(([name, { required }]) => [
          ...[name, 'query', required ? 'required' : ''],
        ]),
      ])
      expect(text.includes('<table>')).toBe(rows.length > 0)
      const [, example] = /<pre>(.*?)<\/pre>/s.exec(text) ?? []
      expect(example && JSON.parse(example)).toEqual(body?.example)
      const [, outline] = /<pre class="answer">(.*?)<\/pre>/s.exec(text) ?? []
      expect(outline).toMatch(answer.type === undefined ? /^\{\n +\w+\??: / : /^string$/)
      const rest = text.replaceAll(/<(h3|p|table|pre)( class="answer")?>.*?<\/\1>/gs, '').trim()
      expect(rest).toBe(`id="${id}">`)
    },
  )

  it('shows the body of an answer with its types, and what may be absent', () => {
    expect(part('readLock', '</section>')).toContain(
      [
        '<pre class="answer">{',
        '  key: string',
        '  held: boolean',
        '  holders: [{',
        '    key: string',
        '    token: integer',
        '    lease: string',
        '    holder: string',
        '    mode: &quot;exclusive&quot; | &quot;shared&quot;',
        '    limit?: integer',
        '    value?: string',
        '    claimedAt: integer or null',
      ].join('\n'),
    )
  })

  it('shows an example of a parameter, if it has one', () => {
    const text = part('takePermit', '</section>')
    expect(text).toContain('<td>A condition on the resources. <code>memory >= 40</code></td>')
    expect(text).toContain('<td>How many resources, all or none. Default: 1.</td>')
  })

  it('explains every problem with its status, at the address that the problem names', () => {
    for (const code of Object.keys(STATUS) as ProblemCode[]) {
      const status = statusesOf(code).join(', ')
      expect(part(code, '</tr>')).toMatch(
        new RegExp(
          `^id="${code}"><td>${status}</td><td><code>${code}</code></td><td>\\w.*\\.</td>$`,
        ),
      )
    }
  })
})
