import { invalid, LeaseholdError, show, type Token } from '../port/index.ts'
import { checkAdmission, type Fence, refuseStale } from './fence.ts'

export interface MemoryFenceOptions {
  /** How many resources it stores. Default: a million. More are refused; none is forgotten. */
  readonly resources?: number | undefined
}

/**
 * A fence in the memory of this process, for a resource that ends with the process. It does not
 * protect anything that outlives the process.
 */
export function memoryFence(options: MemoryFenceOptions = {}): Fence {
  const { resources = 1_000_000 } = options
  if (!Number.isSafeInteger(resources) || resources < 1) {
    throw invalid(`resources is ${show(resources)}: it must be an integer of at least 1`)
  }
  const highest = new Map<string, Token>()
  return {
    async admit(resource, token) {
      checkAdmission(resource, token)
      const seen = highest.get(resource)
      if (seen === undefined && highest.size >= resources) {
        throw new LeaseholdError(
          'limit-exceeded',
          `${show(resource)} is a new resource, but this fence already has ${resources}, the maximum. Raise the limit of memoryFence, or use fewer names.`,
        )
      }
      refuseStale(resource, token, seen ?? 0)
      highest.set(resource, token)
    },
  }
}
