import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { openApi } from '../../../src/http/openapi/open-api.ts'
import { ROUTES } from '../../../src/http/routes/index.ts'

it('the description in the package is that of the server: write it with npm run openapi', async () => {
  const file = new URL('../../../openapi.json', import.meta.url)
  const published = JSON.parse(await readFile(file, 'utf8'))
  const { version } = published.info
  expect(JSON.parse(JSON.stringify(openApi(ROUTES, version)))).toEqual(published)
})
