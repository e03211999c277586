import { count, plural } from '../model/format.ts'
import { type Branch, extentOf, leaseName, leaseTreesOf } from '../model/trees/lease-tree.ts'
import { DemoBadge, DrainBar, KeyLink } from '../parts/badges.tsx'
import { useLive } from '../parts/context.ts'
import { hrefTo } from '../parts/route.ts'

const KEYS_SHOWN = 8
const TREES_SHOWN = 50

/** One holder: its leases as trees, with their keys and remaining time. */
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
          {plural(leases, 'lease')}, {plural(keys, 'claim')}
        </span>
      </h2>
      <HolderLeases holder={holder} />
    </section>
  )
}

export interface HolderLeasesProps {
  readonly holder: string
  /**
   * The lease of the page. It is marked, and its own tree is left out, because the page shows it
   * elsewhere.
   */
  readonly current?: string
}

/** The leases of a holder as trees. */
export function HolderLeases({ holder, current }: HolderLeasesProps) {
  const { mirror } = useLive()
  const { trees, count: all } = leaseTreesOf(mirror, holder, TREES_SHOWN, current)
  if (trees.length === 0) {
    return current === undefined ? <p class="quiet">This holder has no lease.</p> : null
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
  const { visibleLeases, now } = useLive()
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
            <DrainBar lease={visibleLeases.show(id)} now={now()} />
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

/** The keys of one lease, with those it waits for. */
function Keys({ id, keys }: { readonly id: string; readonly keys: readonly string[] }) {
  const { mirror } = useLive()
  if (keys.length === 0) return null
  const waits = (key: string) => {
    const row = mirror.keys.get(key)
    return (row?.claims.findIndex(({ lease }) => lease === id) ?? 0) >= (row?.held ?? 0)
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
