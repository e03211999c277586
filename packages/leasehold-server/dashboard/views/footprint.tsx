import { type Branch, extentOf, footprintOf, leaseName } from '../model/footprint.ts'
import { count, several } from '../model/format.ts'
import { useLive } from '../parts/context.ts'
import { hrefTo } from '../parts/route.ts'
import { DemoBadge, DrainBar, KeyLink } from '../parts/small.tsx'

const KEYS_SHOWN = 8
const TREES_SHOWN = 50

/** All that one holder has, on one page: its leases as trees, their keys, and the time they have left. */
export function HolderDetail({ holder }: { readonly holder: string }) {
  const { mirror } = useLive()
  const { leases, keys } = extentOf(mirror, holder)
  return (
    <section class="panel detail" aria-labelledby="holder-title">
      <a class="back" href="#/leases">
        All leases
      </a>
      <h2 id="holder-title">
        {holder} <DemoBadge name={holder} />
        <span class="quiet">
          {several(leases, 'lease')}, {several(keys, 'claim')}
        </span>
      </h2>
      <Footprint holder={holder} />
    </section>
  )
}

export interface FootprintProps {
  readonly holder: string
  /**
   * The lease that is looked at: it is marked, and left out where nothing is above it. What is under
   * it is shown beside.
   */
  readonly current?: string
}

/** The leases of a holder as trees. */
export function Footprint({ holder, current }: FootprintProps) {
  const { mirror } = useLive()
  const { trees, count: all } = footprintOf(mirror, holder, TREES_SHOWN, current)
  if (trees.length === 0) {
    return current === undefined ? <p class="quiet">It has no lease now.</p> : null
  }
  return (
    <>
      {current !== undefined && (
        <h3>
          Other leases of {holder} <span class="count">{count(all)}</span>
        </h3>
      )}
      <Branches branches={trees} holder={holder} current={current} />
      {all > trees.length && <p class="quiet">and {count(all - trees.length)} more</p>}
    </>
  )
}

interface BranchesProps {
  readonly branches: readonly Branch[]
  readonly holder: string
  readonly current?: string | undefined
}

export function Branches({ branches, holder, current }: BranchesProps) {
  const { book, now } = useLive()
  return (
    <ul class="branch">
      {branches.map(({ id, row, under }) => (
        <li key={id}>
          <div class="branch-line">
            <a href={hrefTo('leases', id)} aria-current={id === current ? 'true' : undefined}>
              {leaseName(row)}
            </a>
            {row !== undefined && row.holder !== holder && (
              <span class="quiet">of {row.holder}</span>
            )}
            {id === current && <span class="badge">this one</span>}
            <DrainBar lease={book.see(id)} now={now()} />
          </div>
          {row !== undefined && <Keys id={id} keys={row.keys} />}
          {under.length > 0 && id !== current && (
            <Branches branches={under} holder={holder} current={current} />
          )}
        </li>
      ))}
    </ul>
  )
}

/** The keys of one lease, and for which of them it waits. */
function Keys({ id, keys }: { readonly id: string; readonly keys: readonly string[] }) {
  const { mirror } = useLive()
  if (keys.length === 0) return null
  const waits = (key: string) => {
    const line = mirror.keys.get(key)
    return (line?.claims.findIndex(({ lease }) => lease === id) ?? 0) >= (line?.held ?? 0)
  }
  return (
    <div class="branch-keys quiet">
      {[...keys]
        .sort()
        .slice(0, KEYS_SHOWN)
        .map((key) => (
          <span key={key}>
            {waits(key) && 'waits for '}
            <KeyLink name={key} />
          </span>
        ))}
      {keys.length > KEYS_SHOWN && <span>and {count(keys.length - KEYS_SHOWN)} more</span>}
    </div>
  )
}
