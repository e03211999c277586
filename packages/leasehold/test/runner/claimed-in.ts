import type { Notice } from '../../src/port/index.ts'

/** The keys of the claims that a notice reports as new. */
export function claimedIn(notice: Notice): string[] {
  if (notice.type !== 'events') return []
  return notice.events.filter(({ type }) => type === 'claimed').map(({ key }) => key)
}
