/**
 * The notifications of clients in separate processes, with their times, and the writes that a
 * resource accepted. Times are of the machine's monotonic clock, which all its processes share.
 */
export interface History {
  readonly holdings: readonly Holding[]
  readonly writes: readonly Write[]
}

/** One notification that a client holds a key. */
export interface Holding {
  readonly client: string
  readonly key: string
  readonly token: number
  /** Before its request, and after its notification. */
  readonly requested: number
  readonly notified: number
  /**
   * The end of its belief, by its latest look at the hold. The store has promised that nobody else
   * gets the key before.
   */
  believedUntil: number
  /** When it started to release it. */
  releasedAt?: number
  /** When it learnt that it was lost, and the reason. */
  lost?: { readonly at: number; readonly reason: string }
}

/** A write with a token, in the order in which the resource saw them. */
export interface Write {
  readonly client: string
  readonly key: string
  readonly token: number
  readonly accepted: boolean
  /** The highest token on the key that anybody was known to have been given by then. */
  readonly newest: number
}

/** A check gives a sentence for everything that it finds wrong. */
export type Check = (history: History) => string[]

/** All checks by their names. A store's guarantees may exempt some by name. */
export const CHECKS = {
  'two holders at once': twoHoldersAtOnce,
  'a token that repeats': tokenRepeats,
  'a token that goes down': tokenGoesDown,
  'an acknowledged lease that was lost': acknowledgedLeaseLost,
  'a stale write that was accepted': staleWriteAccepted,
  'the newest write that was refused': newestWriteRefused,
} satisfies Record<string, Check>

export type CheckName = keyof typeof CHECKS

/** All violations in a history, without the exempted ones. */
export function faultsOf(history: History, except: readonly CheckName[] = []): string[] {
  return Object.entries(CHECKS)
    .filter(([name]) => !except.includes(name as CheckName))
    .flatMap(([name, check]) => check(history).map((found) => `${name}: ${found}`))
}

function twoHoldersAtOnce({ holdings }: History): string[] {
  return inPairs(holdings, (first, second) => {
    const end = Math.min(
      first.believedUntil,
      first.releasedAt ?? Infinity,
      first.lost?.at ?? Infinity,
    )
    if (end <= second.notified) return undefined
    const beyond = (end - second.notified).toFixed(1)
    return `${name(second)} was notified ${beyond} ms before ${name(first)} had to stop`
  })
}

function tokenRepeats({ holdings }: History): string[] {
  return inPairs(holdings, (first, second) =>
    first.token === second.token ? `${name(first)} and ${name(second)}` : undefined,
  )
}

function tokenGoesDown({ holdings }: History): string[] {
  return inPairs(holdings, (first, second) => {
    // Only a request that was sent after the other notification must come after it.
    if (first.notified >= second.requested || second.token >= first.token) return undefined
    return `${name(second)} was given it after ${name(first)}`
  })
}

/** Lost before the promised time was over: the store has broken its promise. */
function acknowledgedLeaseLost({ holdings }: History): string[] {
  return holdings.flatMap((holding) => {
    const { lost, believedUntil } = holding
    if (!lost || lost.at >= believedUntil) return []
    const early = (believedUntil - lost.at).toFixed(1)
    return [`${name(holding)}, ${early} ms before its time (${lost.reason})`]
  })
}

function staleWriteAccepted({ writes }: History): string[] {
  const highest = new Map<string, Write>()
  return writes.flatMap((write) => {
    if (!write.accepted) return []
    const before = highest.get(write.key)
    if (before && before.token > write.token) {
      return [`${name(write)} after ${name(before)}`]
    }
    highest.set(write.key, write)
    return []
  })
}

function newestWriteRefused({ writes }: History): string[] {
  return writes
    .filter(({ accepted, token, newest }) => !accepted && token >= newest)
    .map((write) => name(write))
}

/** The violations of every two holds of the same key, the earlier one first. */
function inPairs(
  holdings: readonly Holding[],
  find: (first: Holding, second: Holding) => string | undefined,
): string[] {
  const found: string[] = []
  const inOrder = [...holdings].sort((one, other) => one.notified - other.notified)
  for (const [at, second] of inOrder.entries()) {
    for (let before = 0; before < at; before++) {
      const first = inOrder[before]!
      const fault = first.key === second.key ? find(first, second) : undefined
      if (fault !== undefined) found.push(fault)
    }
  }
  return found
}

function name({ client, key, token }: { client: string; key: string; token: number }): string {
  return `${client} on ${key} with token ${token}`
}
