import type { Checker, Violated } from '../checker.js'

/** I15: all claims of an ended lease, and of its descendants, end in one revision. */
export function endsTogether(violated: Violated): Checker {
  return {
    name: 'I15 ends together',
    finish({ families, watches }) {
      for (const { root, members } of families) {
        for (const { name, events } of watches) {
          const removed = events.filter(
            ({ type, lease }) => type === 'removed' && members.has(lease),
          )
          const rootEnd = removed.find(({ lease }) => lease === root)
          if (!rootEnd) continue
          for (const { lease, revision } of removed) {
            if (revision <= rootEnd.revision) continue
            violated(
              `${name}: lease ${root} ended in revision ${rootEnd.revision}, and ${lease} under it in ${revision}`,
            )
          }
          const missing = members.size - new Set(removed.map(({ lease }) => lease)).size
          const last = events[events.length - 1]!.revision
          if (missing > 0 && last > rootEnd.revision) {
            violated(
              `${name}: lease ${root} ended in revision ${rootEnd.revision}, and ${missing} under it did not`,
            )
          }
        }
      }
    },
  }
}
