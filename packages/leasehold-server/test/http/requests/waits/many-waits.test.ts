import { expect, it } from 'vitest'
import { Scene } from '../../scene.ts'

/** More listeners at one signal than Node takes for a leak, which it warns of. */
const WAITS = 15

it('many requests can wait together, and Node warns of no leak', async () => {
  const scene = await Scene.open()
  const warnings: string[] = []
  const onWarning = ({ name }: Error) => void warnings.push(name)
  process.on('warning', onWarning)
  await scene.ask('POST /v1/locks/key?ttl=1m')
  const waits = Array.from({ length: WAITS }, () => scene.begin('POST', '/v1/locks/key?wait=1m'))
  await Promise.all(waits)
  await scene.claims('key', WAITS + 1)
  await scene.close()
  process.off('warning', onWarning)
  expect(warnings).toEqual([])
})
