import { describe, expect, it } from 'vitest'
import type { Notice } from '../../../src/port/index.ts'
import { LeaseWatch } from '../../../src/stores/redis/watches/lease-watch.ts'

it('stops checking a waiting claim that was released, although no message reports it', () => {
  const watch = new LeaseWatch(
    'lease',
    () => {},
    () => {},
  )
  watch.onStanding({ revision: 1, claims: [], end: undefined })
  watch.waits(5, 1)
  watch.waits(9, 1)
  expect(watch.isWaiting).toBe(true)
  // A claim made after such a check is kept.
  watch.onStanding({ revision: 7, claims: [], end: undefined })
  expect(watch.isWaiting).toBe(true)
  watch.onStanding({ revision: 9, claims: [], end: undefined })
  expect(watch.isWaiting).toBe(false)
})

describe('a waiting claim of two keys, when a later read says that it holds', () => {
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
    watch.onStanding({ revision: 6, claims: on(false, 'got', 'lost'), end: undefined })
    return { watch, heard }
  }

  it('is reported once if it has all its keys', () => {
    const { watch, heard } = watched()
    watch.onStanding({ revision: 8, claims: on(true, 'got', 'lost'), end: undefined })
    watch.onStanding({ revision: 9, claims: on(true, 'got', 'lost'), end: undefined })
    expect(heard.slice(1)).toEqual([{ type: 'holds', revision: 8, token: TOKEN }])
  })

  it('is not reported if it has lost one, and the message about it has not arrived yet', () => {
    const { watch, heard } = watched()
    watch.onStanding({ revision: 8, claims: on(true, 'got'), end: undefined })
    expect(heard.slice(1)).toMatchObject([{ type: 'interrupted' }])
  })

  it('is reported if an earlier read showed it waiting for the rest', () => {
    const { watch, heard } = watched()
    watch.onStanding({ revision: 7, claims: on(false, 'got'), end: undefined })
    watch.onStanding({ revision: 8, claims: on(true, 'got'), end: undefined })
    expect(heard.slice(1)).toEqual([{ type: 'holds', revision: 8, token: TOKEN }])
  })

  it('is not reported if it has lost one, and was claimed after the watch began', () => {
    const heard: Notice[] = []
    const watch = new LeaseWatch(
      'lease',
      (notice) => heard.push(notice),
      () => {},
    )
    watch.onStanding({ revision: 1, claims: [], end: undefined })
    watch.waits(TOKEN, 2)
    watch.onStanding({ revision: 8, claims: on(true, 'got'), end: undefined })
    expect(heard.slice(1)).toMatchObject([{ type: 'interrupted' }])
  })
})
