/**
 * What clients in processes of their own were told, and when, and what a resource that they wrote to
 * accepted. Times are of the machine's monotonic clock, which all its processes share.
 */
export interface History {
  readonly holdings: readonly Holding[]
  readonly writes: readonly Write[]
}

/** One time that a client was told that it holds a key. */
export interface Holding {
  readonly client: string
  readonly key: string
  readonly token: number
  /** Before it asked, and after it was told. */
  readonly asked: number
  readonly told: number
  /**
   * Until when it could believe so, by its latest look at the hold. The store has promised that
   * nobody else is given the key before.
   */
  believedUntil: number
  /** When it began to give it back. */
  letGo?: number
  /** When it found out that it was lost, and what it was told. */
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

/** Every check by the name of what it looks for. A store's guarantees may except some, by name. */
export const CHECKS = {
  'two holders at once': twoHoldersAtOnce,
  'a token that repeats': tokenRepeats,
  'a token that goes down': tokenGoesDown,
  'an acknowledged lease that was lost': acknowledgedLeaseLost,
  'a stale write that was accepted': staleWriteAccepted,
  'the newest write that was refused': newestWriteRefused,
} satisfies Record<string, Check>

export type CheckName = keyof typeof CHECKS

/** All that is wrong with a history, but for what is excepted. */
export function faultsOf(history: History, except: readonly CheckName[] = []): string[] {
  return Object.entries(CHECKS)
    .filter(([name]) => !except.includes(name as CheckName))
    .flatMap(([name, check]) => check(history).map((found) => `${name}: ${found}`))
}

function twoHoldersAtOnce({ holdings }: History): string[] {
  return inPairs(holdings, (first, second) => {
    const end = Math.min(first.believedUntil, first.letGo ?? Infinity, first.lost?.at ?? Infinity)
    if (end <= second.told) return undefined
    const beyond = (end - second.told).toFixed(1)
    return `${name(second)} was told so ${beyond} ms before ${name(first)} had to stop`
  })
}

function tokenRepeats({ holdings }: History): string[] {
  return inPairs(holdings, (first, second) =>
    first.token === second.token ? `${name(first)} and ${name(second)}` : undefined,
  )
}

function tokenGoesDown({ holdings }: History): string[] {
  return inPairs(holdings, (first, second) => {
    // Only who asked after the other had been told must come after the other.
    if (first.told >= second.asked || second.token >= first.token) return undefined
    return `${name(second)} was given it after ${name(first)}`
  })
}

/** Lost although the time that the store had promised was not over: it has forgotten its word. */
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

/** What is found of every two who held the same key, the first told first. */
function inPairs(
  holdings: readonly Holding[],
  find: (first: Holding, second: Holding) => string | undefined,
): string[] {
  const found: string[] = []
  const inOrder = [...holdings].sort((one, other) => one.told - other.told)
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
