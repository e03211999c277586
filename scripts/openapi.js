// Writes the description of the HTTP API to packages/leasehold-server/openapi.json, which is published
// with the package. A test fails while that file differs from the server.
import { readFileSync, writeFileSync } from 'node:fs'
import { openApi } from '../packages/leasehold-server/dist/http/openapi/open-api.js'
import { ROUTES } from '../packages/leasehold-server/dist/http/routes/index.js'

const SERVER = new URL('../packages/leasehold-server/', import.meta.url)
const { version } = JSON.parse(readFileSync(new URL('package.json', SERVER), 'utf8'))
const description = JSON.stringify(openApi(ROUTES, version), undefined, 2)
writeFileSync(new URL('openapi.json', SERVER), `${description}\n`)
