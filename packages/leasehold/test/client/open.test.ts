import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { Leasehold } from '../../src/index.ts'

describe('open', () => {
  it('takes the URL of a folder, and tokens keep rising when it is opened again', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'leasehold-open-'))
    try {
      const tokens: number[] = []
      for (const url of [`file:${folder}`, pathToFileURL(folder)]) {
        await using leasehold = await Leasehold.open(url)
        await using lock = await leasehold.lock('k')
        tokens.push(lock.token)
        expect(leasehold.guarantees.durability).toBe('disk')
      }
      expect(tokens[1]).toBeGreaterThan(tokens[0]!)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  it('opens its own memory store', async () => {
    await using one = await Leasehold.open('memory:')
    await using other = await Leasehold.open('memory:')
    await one.lock('k')
    expect((await other.tryLock('k')).lock?.held).toBe(true)
  })

  it('names the holder after the machine and the process by default', async () => {
    await using one = await Leasehold.open('memory:')
    await using other = await Leasehold.open('memory:', { holder: 'worker-7' })
    expect(one.holder).toContain(`:${process.pid}:`)
    expect(other.holder).toBe('worker-7')
  })
})
