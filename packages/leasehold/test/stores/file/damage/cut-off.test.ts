import { expect, it } from 'vitest'
import { expectCutOffRefused, make } from './damaged-store.ts'

it('a store is refused when one of its files is cut off, wherever', async () => {
  const made = await make()
  let cuts = 0
  for (const [name, bytes] of made.disk.files) {
    for (let length = 0; length < bytes.length; length++) {
      await expectCutOffRefused(made, name, length)
      cuts++
    }
  }
  expect(cuts).toBeGreaterThan(10_000)
}, 480_000)
