import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** The built dashboard; the path works from `src` and from `dist`. */
const FOLDER = new URL('../../dist/dashboard/page/', import.meta.url)

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

/**
 * Allows the page only its own script, style and server. It cannot be framed, and nothing in a key or
 * a value can become a script.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

const NOT_BUILT =
  'The dashboard is not built. Run `npm run build` in the repository. /docs describes the API.\n'

interface Asset {
  readonly type: string
  readonly plain: Buffer
  /** Compressed by the build, by encoding. */
  readonly encoded: ReadonlyMap<string, Buffer>
}

/** Serves the page at `/` and its assets, whose names contain their hash. */
export function servePage(app: FastifyInstance): void {
  const assets = readAssets()
  const page = assets.get('index.html')
  app.get('/', (request, reply) => {
    reply.header('cache-control', 'no-cache')
    if (page === undefined) reply.code(503).type('text/plain; charset=utf-8').send(NOT_BUILT)
    else send(page, request, reply)
  })
  for (const [name, asset] of assets) {
    if (name === 'index.html') continue
    app.get(`/dashboard/${name}`, (request, reply) => {
      reply.header('cache-control', 'public, max-age=31536000, immutable')
      send(asset, request, reply)
    })
  }
}

function send({ type, plain, encoded }: Asset, request: FastifyRequest, reply: FastifyReply): void {
  const accepted = String(request.headers['accept-encoding'] ?? '').split(/\s*,\s*/)
  const encoding = ['br', 'gzip'].find((name) => accepted.includes(name) && encoded.has(name))
  if (encoding !== undefined) reply.header('content-encoding', encoding)
  reply
    .header('vary', 'accept-encoding')
    .header('content-security-policy', POLICY)
    .header('x-content-type-options', 'nosniff')
    .header('referrer-policy', 'no-referrer')
    .header('cross-origin-opener-policy', 'same-origin')
    .header('cross-origin-resource-policy', 'same-origin')
    .type(type)
    .send(encoding === undefined ? plain : encoded.get(encoding))
}

function readAssets(): ReadonlyMap<string, Asset> {
  const assets = new Map<string, Asset>()
  if (!existsSync(FOLDER)) return assets
  const names = readdirSync(FOLDER)
  for (const name of names) {
    const type = TYPES[name.slice(name.lastIndexOf('.') + 1)]
    if (type === undefined) continue
    const encoded = new Map<string, Buffer>()
    for (const [encoding, ending] of [
      ['br', '.br'],
      ['gzip', '.gz'],
    ] as const) {
      if (names.includes(name + ending)) encoded.set(encoding, read(name + ending))
    }
    assets.set(name, { type, plain: read(name), encoded })
  }
  return assets
}

function read(name: string): Buffer {
  return readFileSync(new URL(name, FOLDER))
}
