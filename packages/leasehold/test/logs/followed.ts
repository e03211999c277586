import { expect } from 'vitest'
import type { FollowEnd, Log, Position } from '../../src/log/index.ts'

const POLL = { timeout: 30_000 }

/** Follows a log and keeps its entries. */
export function followed(log: Log, after: Position) {
  const texts: string[] = []
  let end: FollowEnd | undefined
  log.follow(after, {
    entries: (entries) => texts.push(...entries.map(({ bytes }) => Buffer.from(bytes).toString())),
    ended: (cause) => {
      end = cause
    },
  })
  return {
    texts,
    count: (wanted: number) => expect.poll(() => texts.length, POLL).toBe(wanted),
    end: async () => {
      await expect.poll(() => end, POLL).toBeDefined()
      return end!
    },
  }
}
