import { invalid, LeaseholdError, show, type Token } from '../port/index.ts'
import { checkAdmission, type Fence, refuseStale } from './fence.ts'

export interface MemoryFenceOptions {
  /** How many resources it remembers, a million if not given. More are refused, none is forgotten. */
  readonly resources?: number | undefined
}

/**
 * A fence in this process, for a resource that lives and dies with it: it forgets everything with
 * the process. For anything that outlives the process it is no fence.
 */
export function memoryFence(options: MemoryFenceOptions = {}): Fence {
  const { resources = 1_000_000 } = options
  if (!Number.isSafeInteger(resources) || resources < 1) {
    throw invalid(`resources is ${show(resources)}: it must be an integer from 1 on`)
  }
  const highest = new Map<string, Token>()
  return {
    async admit(resource, token) {
      checkAdmission(resource, token)
      const seen = highest.get(resource)
      if (seen === undefined && highest.size >= resources) {
        throw new LeaseholdError(
          'limit-exceeded',
          `this fence remembers ${resources} resources and ${show(resource)} is one more: give memoryFence a higher limit, or use fewer names`,
        )
      }
      refuseStale(resource, token, seen ?? 0)
      highest.set(resource, token)
    },
  }
}
