import type { DiskFaults, LinkFaults, SeededRandom } from 'leasehold/testing'

/**
 * What goes wrong in one world. Each seed draws its own mix: many seeds have few kinds of fault and
 * some have all, because a bug that needs calm to show itself is as real as one that needs chaos.
 */
export interface Faults {
  readonly link: LinkFaults
  readonly disk: DiskFaults
  /** No clock's rate is further from 1 than this. */
  readonly drift: number
  /** How often each happens, on average, while faults happen. */
  readonly serverCrashes: number
  readonly clientCrashes: number
  readonly resourceRestarts: number
  readonly serverPauses: number
  readonly clientPauses: number
  readonly suspends: number
  readonly cuts: number
  readonly wallJumps: number
  /** How often the disk is full for a while. */
  readonly fullDisks: number
  /** How often a second process tries to open the server's disk. */
  readonly rivals: number
  /** Whether a crash of the server may take the power with it. */
  readonly powerLoss: boolean
}

export function drawFaults(random: SeededRandom): Faults {
  const sometimes = (most: number): number => (random.chance(0.5) ? 0 : random.between(0, most))
  return {
    link: {
      delay: random.pick([
        [0.1, 1],
        [0.5, 10],
        [1, 60],
      ]),
      loss: random.pick([0, 0, 0.01, 0.1]),
      duplication: random.pick([0, 0.02, 0.2]),
      slow: random.pick([0, 0.02, 0.2]),
      late: random.pick([0, 0, 0, 0.05]),
    },
    disk: {
      sync: random.pick([
        [0.1, 0.5],
        [0.2, 8],
        [10, 200],
      ]),
      failure: random.pick([0, 0, 0, 0.03]),
    },
    drift: random.pick([0, 0.001, 0.05, 0.1]),
    serverCrashes: sometimes(4),
    clientCrashes: sometimes(3),
    resourceRestarts: sometimes(4),
    serverPauses: sometimes(3),
    clientPauses: sometimes(4),
    suspends: sometimes(2),
    cuts: sometimes(4),
    wallJumps: sometimes(3),
    fullDisks: random.chance(0.75) ? 0 : 2,
    rivals: random.chance(0.8) ? 0 : 2,
    powerLoss: random.chance(0.6),
  }
}

/** The longest delay of a message. */
export function longestDelay({ delay, slow, late = 0 }: LinkFaults): number {
  return late > 0 ? 4000 : delay[1] * (slow > 0 ? 10 : 1)
}
