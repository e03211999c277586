import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Container } from '../../../src/logs/azure/client/index.ts'
import { type AzureLogOptions, azureLog } from '../../../src/logs/azure/index.ts'
import { logSettings } from '../../../src/logs/options/options.ts'
import { Recorder } from '../../../src/testing/log-conformance/recorder.ts'
import { AZURITE, AZURITE_KEY, azuriteUrl, describeWith, Engine } from '../../engines/index.ts'
import { faultSuite } from '../suites/fault-suite.ts'

describeWith(AZURITE, 'the Azure log, when the service', () => {
  faultSuite({
    spec: AZURITE,
    losesData: 'Azurite saves to its disk every few seconds only',
    open: async (port, prefix) => {
      const options = { key: AZURITE_KEY, prefix, timeout: 2000 }
      return { log: await azureLog(azuriteUrl(port, 'logs'), options), end: async () => {} }
    },
  })
})

describeWith(AZURITE, 'the Azure log', () => {
  let engine: Engine
  let container: Container
  const open = (options: AzureLogOptions) =>
    azureLog(azuriteUrl(engine.port, 'logs'), { key: AZURITE_KEY, ...options })

  beforeAll(async () => {
    engine = await Engine.start(AZURITE)
    container = new Container(
      azuriteUrl(engine.port, 'logs'),
      AZURITE_KEY,
      logSettings('azure', {}),
    )
  }, 60_000)

  afterAll(() => engine?.stop())

  it('seals a full blob, and every process continues in the next one', async () => {
    const [log, other] = [await open({ blocks: 3 }), await open({ blocks: 3 })]
    const positions: number[] = []
    for (let count = 0; count < 4; count++) {
      positions.push(await log.append(Buffer.from('a')), await other.append(Buffer.from('b')))
    }
    expect(positions).toEqual([...new Set(positions)].sort((one, next) => one - next))
    expect(await container.list('leasehold/log/')).toHaveLength(3)
    const late = await container.ask('leasehold/log/0000001', {
      method: 'PUT',
      query: { comp: 'appendblock' },
      body: new Uint8Array(8),
      accept: [409],
    })
    expect(late.headers.get('x-ms-error-code')).toBe('BlobIsSealed')
    const follower = new Recorder(other, 0, 15_000)
    await follower.until(8)
    expect(follower.entries.map(({ position }) => position)).toEqual(positions)
    follower.close()
  })

  it('recognises blobs that were deleted', async () => {
    const log = await open({ prefix: 'deleted' })
    await log.append(Buffer.from('a'))
    const last = await log.append(Buffer.from('b'))
    const follower = new Recorder(log, last, 15_000)
    await container.ask('deleted/log/0000001', { method: 'DELETE' })
    expect(await follower.untilEnded()).toEqual({ cause: 'ahead', tail: 0 })
    expect(await new Recorder(log, last, 15_000).untilEnded()).toEqual({ cause: 'ahead', tail: 0 })
    expect(await log.append(Buffer.from('c'))).toBeGreaterThan(0)
  })

  it('refuses a wrong key, a container that is missing, and a damaged snapshot', async () => {
    const key = Buffer.from('wrong').toString('base64')
    await expect(open({ key })).rejects.toMatchObject({
      code: expect.stringMatching(/unauth|forb/),
    })
    const log = await open({ prefix: 'damaged' })
    await log.saveSnapshot({ position: 3, chunks: [Buffer.from('one')] })
    const names = await container.list('damaged/snapshots/')
    const name = names.find((each) => each.endsWith('.0'))!
    const headers = { 'x-ms-blob-type': 'BlockBlob' }
    await container.ask(name, { method: 'PUT', headers, body: new Uint8Array(3) })
    await expect(log.loadSnapshot()).rejects.toMatchObject({ code: 'storage-damaged' })
    await container.ask(name, { method: 'DELETE' })
    await expect(log.loadSnapshot()).rejects.toMatchObject({ code: 'storage-damaged' })
    await container.ask('', { method: 'DELETE', query: { restype: 'container' } })
    await expect(log.append(Buffer.from('a'))).rejects.toMatchObject({
      message: expect.stringContaining('NotFound'),
    })
  })

  it('refuses blobs of something else, and a signature that only allows to read', async () => {
    const headers = { 'x-ms-blob-type': 'BlockBlob' }
    const body = Buffer.from('picture')
    await open({ prefix: 'any' })
    await container.ask('other/log/0000001', { method: 'PUT', headers, body })
    const log = await open({ prefix: 'other' })
    await expect(log.append(Buffer.from('a'))).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringContaining('another prefix'),
    })
    const signed = `${azuriteUrl(engine.port, 'logs')}?${signature('rl')}`
    await expect(azureLog(signed, { prefix: 'any' })).rejects.toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining('add, create, write'),
    })
    const whole = await azureLog(`${azuriteUrl(engine.port, 'logs')}?${signature('rwdlac')}`)
    await whole.append(Buffer.from('a'))
  })

  it('refuses an invalid address, and one that cannot be reached', async () => {
    for (const address of ['logs', 'https://account.blob.core.windows.net/']) {
      await expect(azureLog(address)).rejects.toMatchObject({ code: 'invalid-argument' })
    }
    await expect(azureLog(azuriteUrl(1, 'logs'))).rejects.toMatchObject({ code: 'timeout' })
  })
})

/** A shared access signature for the account of Azurite, with these permissions. */
function signature(permissions: string): string {
  const [version, services, types, expiry] = ['2021-12-02', 'b', 'sco', '2099-01-01T00:00:00Z']
  const fields = ['devstoreaccount1', permissions, services, types, '', expiry, '', '', version, '']
  const key = Buffer.from(AZURITE_KEY, 'base64')
  const sig = createHmac('sha256', key)
    .update(`${fields.join('\n')}\n`)
    .digest('base64')
  const query = { sv: version, ss: services, srt: types, sp: permissions, se: expiry, sig }
  return new URLSearchParams(query).toString()
}
