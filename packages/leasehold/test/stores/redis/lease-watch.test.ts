import { describe, expect, it } from 'vitest'
import type { Notice } from '../../../src/port/index.ts'
import { LeaseWatch } from '../../../src/stores/redis/lease-watch.ts'

it('looks no more for a claim that waited and was released, of which nobody is told', () => {
  const watch = new LeaseWatch(
    'lease',
    () => {},
    () => {},
  )
  watch.stands({ revision: 1, claims: [], end: undefined })
  watch.waits(5, 1)
  watch.waits(9, 1)
  expect(watch.isWaiting).toBe(true)
  // What is made after such a look is not forgotten by it.
  watch.stands({ revision: 7, claims: [], end: undefined })
  expect(watch.isWaiting).toBe(true)
  watch.stands({ revision: 9, claims: [], end: undefined })
  expect(watch.isWaiting).toBe(false)
})

describe('a claim of two keys that waits, when a later look says that it holds', () => {
  const TOKEN = 5
  const on = (holds: boolean, ...keys: string[]) =>
    keys.map((key) => ({ key, token: TOKEN, holds }))

  function watched() {
    const heard: Notice[] = []
    const watch = new LeaseWatch(
      'lease',
      (notice) => heard.push(notice),
      () => {},
    )
    watch.stands({ revision: 6, claims: on(false, 'got', 'lost'), end: undefined })
    return { watch, heard }
  }

  it('is told so if it has all its keys, once', () => {
    const { watch, heard } = watched()
    watch.stands({ revision: 8, claims: on(true, 'got', 'lost'), end: undefined })
    watch.stands({ revision: 9, claims: on(true, 'got', 'lost'), end: undefined })
    expect(heard.slice(1)).toEqual([{ type: 'holds', revision: 8, token: TOKEN }])
  })

  it('is not told so if it has lost one, of which no message has come yet', () => {
    const { watch, heard } = watched()
    watch.stands({ revision: 8, claims: on(true, 'got'), end: undefined })
    expect(heard.slice(1)).toMatchObject([{ type: 'interrupted' }])
  })

  it('is told so if it was seen to wait for what is left', () => {
    const { watch, heard } = watched()
    watch.stands({ revision: 7, claims: on(false, 'got'), end: undefined })
    watch.stands({ revision: 8, claims: on(true, 'got'), end: undefined })
    expect(heard.slice(1)).toEqual([{ type: 'holds', revision: 8, token: TOKEN }])
  })

  it('is not told so if it has lost one, and was claimed after the watch began', () => {
    const heard: Notice[] = []
    const watch = new LeaseWatch(
      'lease',
      (notice) => heard.push(notice),
      () => {},
    )
    watch.stands({ revision: 1, claims: [], end: undefined })
    watch.waits(TOKEN, 2)
    watch.stands({ revision: 8, claims: on(true, 'got'), end: undefined })
    expect(heard.slice(1)).toMatchObject([{ type: 'interrupted' }])
  })
})
