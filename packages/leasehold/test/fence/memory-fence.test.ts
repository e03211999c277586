import { describe, expect, it } from 'vitest'
import { memoryFence } from '../../src/fence/index.ts'
import { fallsIn, itIsAFence } from './fence-cases.ts'

describe('a fence in memory', () => {
  const fence = memoryFence()
  itIsAFence(() => fence)

  it('refuses a resource above the limit, and forgets none', async () => {
    const small = memoryFence({ resources: 2 })
    await small.admit('a', 5)
    await small.admit('b', 5)
    await expect(small.admit('c', 5)).rejects.toMatchObject({ code: 'limit-exceeded' })
    await expect(small.admit('a', 4)).rejects.toMatchObject({ code: 'stale-token' })
    await small.admit('a', 6)
    expect(() => memoryFence({ resources: 0 })).toThrow('resources is 0')
  })
})

describe('the check for decreasing tokens', () => {
  const tried = (token: number, asked: number, answered: number) => ({
    token,
    asked,
    answered,
    admitted: true,
  })

  it('finds one that was requested after a higher one was answered, and no other', () => {
    expect(fallsIn([tried(6, 1, 2), tried(5, 3, 4)])).toEqual(['5 was admitted after 6'])
    expect(fallsIn([tried(6, 1, 3), tried(5, 2, 4)])).toEqual([])
    expect(fallsIn([tried(5, 1, 2), tried(6, 3, 4)])).toEqual([])
  })
})
