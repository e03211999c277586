import { meaningOf, type ProblemCode, STATUS, statusesOf } from '../responses/problem.ts'
import type { Parameter, Route, Schema } from '../route.ts'
import { SHARED } from '../routes/schemas.ts'

export const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h2 { margin-top: 3rem; }
section { border-top: 1px solid var(--line); padding: .5rem 0; }
h3 { font-size: 1rem; }
code, pre { font-family: ui-monospace, monospace; font-size: .875rem; }
pre { background: var(--soft); padding: .75rem; overflow-x: auto; border-radius: .25rem; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; }
b { display: inline-block; min-width: 4.5rem; }
`

/** The description as a page for people. It loads nothing from other hosts and runs no script. */
export function docsPage(routes: readonly Route[], version: string): string {
  const groups = [...new Set(routes.map(({ group }) => group))]
  const codes = Object.keys(STATUS) as ProblemCode[]
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Leasehold ${escapeHtml(version)}: the HTTP API</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Leasehold: the HTTP API</h1>
<p>Answers are JSON. Durations are milliseconds, or strings such as <code>30s</code>. Times are whole
milliseconds; one that never comes is <code>null</code>. If the server requires an access token, send
<code>Authorization: Bearer lh_…</code>. <a href="/openapi.json">openapi.json</a> is the same for
programs.</p>
<ul>${groups.map((group) => `<li><a href="#${escapeHtml(group)}">${escapeHtml(group)}</a></li>`).join('')}<li><a href="#problems">Problems</a></li></ul>
${groups.map((group) => groupOf(group, routes)).join('\n')}
<h2 id="problems">Problems</h2>
<p>Errors are <code>application/problem+json</code>. With the outcome <code>refused</code>, nothing was
changed. With <code>unknown</code>, the change may have been made.</p>
<table>
${codes.map((code) => `<tr id="${code}"><td>${statusesOf(code).join(', ')}</td><td><code>${code}</code></td><td>${escapeHtml(meaningOf(code))}</td></tr>`).join('\n')}
</table>
</body>
</html>
`
}

function groupOf(group: string, routes: readonly Route[]): string {
  const own = routes.filter((route) => route.group === group)
  return `<h2 id="${escapeHtml(group)}">${escapeHtml(group)}</h2>\n${own.map(section).join('\n')}`
}

function section({ id, method, path, title, about, params, query, body, answer }: Route): string {
  const rows = [...rowsOf('path', params), ...rowsOf('query', query)]
  const example = body && `<pre>${escapeHtml(JSON.stringify(body.example, undefined, 2))}</pre>`
  return `<section id="${id}">
<h3><b>${method}</b> <code>${escapeHtml(path)}</code></h3>
<p>${escapeHtml(title)}. ${escapeHtml(about ?? '')}</p>
${rows.length > 0 ? `<table>${rows.join('')}</table>` : ''}
${example ?? ''}
<p>${answer.status}: ${escapeHtml(answer.about)}</p>
<pre class="answer">${escapeHtml(outlineOf(answer.schema))}</pre>
</section>`
}

/** How deep the outline of an answer goes into shared schemas. */
const OUTLINE_DEPTH = 4

/** The fields of a schema with their types, as people read JSON. `?` marks what may be absent. */
export function outlineOf(schema: Schema, depth = 0): string {
  const { $ref, properties, required = [], items, type } = schema as Outlined
  if ($ref !== undefined) {
    const name = $ref.split('/').at(-1)!
    return depth < OUTLINE_DEPTH ? outlineOf(SHARED[name]!, depth) : name
  }
  if (items !== undefined) return `[${outlineOf(items, depth)}, …]`
  if (properties === undefined) return typeOf(schema as Outlined, type)
  const indent = '  '.repeat(depth + 1)
  const lines = Object.entries(properties).map(([name, each]) => {
    const mark = required.includes(name) ? '' : '?'
    return `${indent}${name}${mark}: ${outlineOf(each, depth + 1)}`
  })
  return `{\n${lines.join('\n')}\n${'  '.repeat(depth)}}`
}

interface Outlined {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly type?: string | readonly string[]
  readonly enum?: readonly string[]
  readonly additionalProperties?: Schema | false
}

function typeOf(schema: Outlined, type: Outlined['type']): string {
  if (schema.enum !== undefined) return schema.enum.map((each) => JSON.stringify(each)).join(' | ')
  if (schema.additionalProperties) return `{ name: ${outlineOf(schema.additionalProperties)}, … }`
  return type === undefined ? 'any JSON' : [type].flat().join(' or ')
}

function rowsOf(where: string, parts: Readonly<Record<string, Parameter>> = {}): string[] {
  return Object.entries(parts).map(([name, { about, required, example }]) => {
    const shown = example === undefined ? '' : ` <code>${escapeHtml(String(example))}</code>`
    const must = required ? 'required' : ''
    return `<tr><td><code>${escapeHtml(name)}</code></td><td>${where} ${must}</td><td>${escapeHtml(about)}${shown}</td></tr>`
  })
}

function escapeHtml(value: string): string {
  return value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
