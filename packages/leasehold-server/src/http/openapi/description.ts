import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { packageVersion } from '../../config/index.ts'
import type { Route } from '../route.ts'
import { docsPage, STYLE } from './docs-page.ts'
import { openApi } from './open-api.ts'

/**
 * Adds `/openapi.json` and `/docs`. They describe every server of this version and reveal nothing about
 * this one, so everybody may read them.
 */
export function addDescription(app: FastifyInstance, routes: readonly Route[]): void {
  const version = packageVersion()
  const document = JSON.stringify(openApi(routes, version), undefined, 2)
  const page = docsPage(routes, version)
  const style = createHash('sha256').update(STYLE).digest('base64')
  const policy = `default-src 'none'; style-src 'sha256-${style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
  app.get('/openapi.json', (_request, reply) => {
    reply.header('x-content-type-options', 'nosniff').type('application/json').send(document)
  })
  app.get('/docs', (_request, reply) => {
    reply.header('content-security-policy', policy).header('x-content-type-options', 'nosniff')
    reply.header('referrer-policy', 'no-referrer').type('text/html; charset=utf-8').send(page)
  })
}
