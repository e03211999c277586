import { useMemo } from 'preact/hooks'
import { takeKey } from '../model/admin-actions.ts'
import { type ElectionView, electionsOf, type Span, spansOf } from '../model/elections.ts'
import { formatSpan, fullTime, timeOfDay } from '../model/format.ts'
import { ActionButton } from '../parts/action-dialog.tsx'
import { DemoBadge, DrainBar, Facts, HolderLink, KeyLink, Mark, None } from '../parts/badges.tsx'
import { useLive } from '../parts/context.ts'
import { Band, useHistory } from '../parts/history.tsx'

const TERMS_LISTED = 6
const CANDIDATES_SHOWN = 50

export function Elections() {
  const { mirror } = useLive()
  const version = mirror.versionOf('election')
  const elections = useMemo(() => electionsOf(mirror), [mirror, version])
  return (
    <div class="stack">
      <h1>
        Elections <span class="count">{elections.length}</span>
      </h1>
      {elections.length === 0 && (
        <None title="No elections">
          <p>
            One of the candidates leads. When it dies or steps down, the next one leads:{' '}
            <code>for await (const term of leasehold.election('scheduler').lead())</code>.
          </p>
        </None>
      )}
      {elections.map((election) => (
        <Election key={election.name} election={election} />
      ))}
    </div>
  )
}

function Election({ election }: { readonly election: ElectionView }) {
  const { mirror, now } = useLive()
  const { name, key, leader, others } = election
  const front = mirror.keys.get(key)?.claims[0]
  const tenures = useHistory(key)
  const current = front && { ...front, since: front.heldSince ?? front.claimedAt }
  const spans = spansOf(tenures ?? [], current, now())
  return (
    <section class="panel" aria-labelledby={`election-${name}`}>
      <h2 id={`election-${name}`}>
        {name} <DemoBadge name={name} />
        {leader === undefined && <span class="mark warn">nobody leads</span>}
      </h2>
      {leader !== undefined && <Leading election={election} leader={leader} />}
      <h3>Terms</h3>
      <Band spans={spans} now={now()} label={`Terms of ${name}`} />
      <ol class="terms past" reversed>
        {spans
          .slice(0, -1)
          .slice(-TERMS_LISTED)
          .reverse()
          .map((span) => (
            <Term key={`${span.token} ${span.from}`} span={span} />
          ))}
      </ol>
      <h3>
        Waiting candidates <span class="count">{others.length}</span>
      </h3>
      <Candidates election={election} />
    </section>
  )
}

interface LeadingProps {
  readonly election: ElectionView
  readonly leader: NonNullable<ElectionView['leader']>
}

function Leading({ election: { key }, leader }: LeadingProps) {
  const live = useLive()
  const { mirror, visibleLeases, now } = live
  const row = mirror.keys.get(key)
  const lease = row?.claims[0]?.lease
  if (row === undefined || lease === undefined) return null
  return (
    <>
      <div class="held">
        <b class="leader">{leader.candidate}</b>
        <DrainBar lease={visibleLeases.show(lease)} now={now()} />
      </div>
      <Facts
        facts={[
          ['Term', <span class="token">{leader.token}</span>],
          ['Leads for', formatSpan(now() - (leader.since ?? now()))],
          ['Publishes', leader.value ?? 'nothing'],
          ['Holder', <HolderLink holder={leader.holder} lease={lease} />],
          ['Key', <KeyLink name={key} />],
        ]}
      />
      {live.may('admin', key) && (
        <div class="actions">
          <ActionButton text="End its term…" isDanger action={() => takeKey(row)} />
        </div>
      )}
    </>
  )
}

/** A past term: its time, its leader, and how it ended. */
function Term({ span: { holder, token, from, to, end } }: { readonly span: Span }) {
  return (
    <li>
      <span class="lasted">
        <time title={fullTime(from)}>{timeOfDay(from)}</time> to{' '}
        <time title={fullTime(to)}>{timeOfDay(to)}</time>
      </span>
      <a class="holder" href={`#/leases?holder=${encodeURIComponent(holder)}`}>
        {holder}
      </a>
      <span class="token">#{token}</span>
      <span class="lasted">{formatSpan(to - from)}</span>
      {end !== undefined && <Mark word={end.reason} />}
      {end?.by !== undefined && (
        <span class="quiet">
          by {end.by}
          {end.why !== undefined && `: ${end.why}`}
        </span>
      )}
    </li>
  )
}

function Candidates({ election: { key, others } }: { readonly election: ElectionView }) {
  const { mirror } = useLive()
  if (others.length === 0) return <p class="quiet">No other candidate waits.</p>
  const claims = mirror.keys.get(key)?.claims ?? []
  const leases = new Map(claims.map(({ token, lease }) => [token, lease]))
  return (
    <ol class="terms candidates">
      {others
        .slice(0, CANDIDATES_SHOWN)
        .map(({ candidate, holder, token, priority, preempt, value }) => (
          <li key={token}>
            <HolderLink holder={candidate} lease={leases.get(token) ?? ''} />
            {holder !== candidate && <span class="quiet">{holder}</span>}
            <span class="token">#{token}</span>
            {priority !== 0 && <span class="badge">priority {priority}</span>}
            {preempt && <span class="badge">preempts</span>}
            <span class="quiet">{value}</span>
          </li>
        ))}
    </ol>
  )
}
