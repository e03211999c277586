/** Leases on a log in append blobs, against leases of blobs, both by plain requests to Azurite. */
import { createHmac, randomUUID } from 'node:crypto'
import { azureStore } from 'leasehold/azure'
import { startAzurite } from '../../../engines/start.js'
import type { Row } from '../../../measure/rows.js'
import { compareLog } from './compare-log.js'

const ACCOUNT = 'devstoreaccount1'
/** The public account key of every Azurite. */
const KEY =
  'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='
const PAIRS = 320

const rows: Row[] = []
const engine = await startAzurite()
if (engine) {
  const host = `http://127.0.0.1:${engine.port}`
  const put = async (path: string, more: Record<string, string>, query = '') => {
    const headers: Record<string, string> = {
      'x-ms-date': new Date().toUTCString(),
      'x-ms-version': '2021-12-02',
      ...more,
    }
    const names = Object.keys(headers).sort()
    const signed = names.map((name) => `${name}:${headers[name]}\n`).join('')
    const parts = query ? `\n${query.split('&').sort().join('\n').replaceAll('=', ':')}` : ''
    const text = `PUT${'\n'.repeat(12)}${signed}/${ACCOUNT}/${ACCOUNT}${path}${parts}`
    const digest = createHmac('sha256', Buffer.from(KEY, 'base64')).update(text).digest('base64')
    headers['authorization'] = `SharedKey ${ACCOUNT}:${digest}`
    const url = `${host}/${ACCOUNT}${path}${query && `?${query}`}`
    const send = () => fetch(url, { method: 'PUT', headers, body: new Uint8Array() })
    const response = await send().catch((error: Error) => {
      // Azurite closes idle connections, even one that is about to be used.
      if ((error.cause as { code?: string } | undefined)?.code !== 'ECONNRESET') throw error
      return send()
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  }
  await put('/locks', {}, 'restype=container')
  for (let at = 0; at < PAIRS; at++) {
    await put(`/locks/jobs/${at % 64}/${Math.floor(at / 64)}`, { 'x-ms-blob-type': 'BlockBlob' })
  }
  rows.push(
    ...(await compareLog({
      engine: 'Azurite',
      store: await azureStore(`${host}/${ACCOUNT}/logs`, { key: KEY }),
      rawName: 'blob lease acquire + release',
      raw: async (key) => {
        const id = randomUUID()
        const acquire = { 'x-ms-lease-action': 'acquire', 'x-ms-lease-duration': '60' }
        await put(`/locks/${key}`, { ...acquire, 'x-ms-proposed-lease-id': id }, 'comp=lease')
        await put(
          `/locks/${key}`,
          { 'x-ms-lease-action': 'release', 'x-ms-lease-id': id },
          'comp=lease',
        )
      },
      pids: [engine.pid],
      runs: [[64, 3200, PAIRS, 10]],
    })),
  )
  await engine.end()
}
console.log(JSON.stringify(rows))
