import type { SeededRandom } from 'leasehold/testing'

/** One task: how long it takes, and after how long its holder dies, if that is earlier. */
export interface Work {
  readonly length: number
  readonly diesAfter: number
}

export interface Workload {
  readonly name: string
  /** A description of the durations and deaths, for people. */
  readonly about: string
  /** `progress` goes from 0 to 1 over the run. */
  draw(random: SeededRandom, progress: number): Work
}

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Most are near the median; two thirds are within a factor of `e^spread`. */
function around(random: SeededRandom, median: number, spread: number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next())
  return median * Math.exp(spread * normal)
}

/** Dies at a constant rate, after this long on average. */
function deathWithin(random: SeededRandom, average: number): number {
  return -Math.log(1 - random.next()) * average
}

export const WORKLOADS: readonly Workload[] = [
  {
    name: 'short',
    about: 'about 2 s; a death every 6 min of holding',
    draw: (random) => ({
      length: around(random, 2 * SECOND, 0.6),
      diesAfter: deathWithin(random, 6 * MINUTE),
    }),
  },
  {
    name: 'long',
    about: 'about 20 min; a death every 20 h of holding',
    draw: (random) => ({
      length: around(random, 20 * MINUTE, 0.5),
      diesAfter: deathWithin(random, 20 * HOUR),
    }),
  },
  {
    name: 'two-humped',
    about: '85 % about 3 s, 15 % about 8 min; a death every 2 h of holding',
    draw: (random) => ({
      length: random.chance(0.85)
        ? around(random, 3 * SECOND, 0.4)
        : around(random, 8 * MINUTE, 0.3),
      diesAfter: deathWithin(random, 2 * HOUR),
    }),
  },
  {
    name: 'changes abruptly',
    about: '5 s, a death every 5 min; then 10 min, every 20 h; then 5 s again',
    draw: (random, progress) => {
      const isLong = Math.floor(progress * 3) === 1
      return {
        length: around(random, isLong ? 10 * MINUTE : 5 * SECOND, 0.5),
        diesAfter: deathWithin(random, isLong ? 20 * HOUR : 5 * MINUTE),
      }
    },
  },
  {
    name: 'changes slowly',
    about: 'from about 5 s to about 10 min; a death every 2 h of holding',
    draw: (random, progress) => ({
      length: around(random, 5 * SECOND * 120 ** progress, 0.4),
      diesAfter: deathWithin(random, 2 * HOUR),
    }),
  },
  {
    name: 'heavy-tailed',
    about: 'half below 4 s, the longest up to 4 h; a death every hour',
    draw: (random) => ({
      length: Math.min(2 * SECOND * (1 - random.next()) ** (-1 / 1.1), 4 * HOUR),
      diesAfter: deathWithin(random, HOUR),
    }),
  },
  {
    name: 'dies at the start',
    about: 'about 3 min; 3 % die within the first 5 s and none later',
    draw: (random) => ({
      length: around(random, 3 * MINUTE, 0.5),
      diesAfter: random.chance(0.03) ? random.between(0, 5 * SECOND) : Infinity,
    }),
  },
  {
    name: 'never dies',
    about: 'about 1 min; no deaths',
    draw: (random) => ({ length: around(random, MINUTE, 0.5), diesAfter: Infinity }),
  },
]
