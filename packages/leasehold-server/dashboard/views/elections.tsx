import { useMemo } from 'preact/hooks'
import { takeKey } from '../model/admin-actions.ts'
import { formatSpan, fullTime, plural, timeOfDay } from '../model/format.ts'
import {
  type ElectionView,
  electionsOf,
  findElections,
  type Span,
  spansOf,
} from '../model/recipes/elections.ts'
import { ActionButton } from '../parts/action-dialog.tsx'
import { DemoBadge, DrainBar, Facts, HolderLink, KeyLink, None } from '../parts/badges.tsx'
import { useLive } from '../parts/context.ts'
import { Band, EndMark, useHistory } from '../parts/history.tsx'
import { useQuery } from '../parts/route.ts'
import { Search } from '../parts/search.tsx'

const TERMS_LISTED = 6
const CANDIDATES_SHOWN = 50

export function Elections() {
  const { mirror } = useLive()
  const version = mirror.versionOf('election')
  const elections = useMemo(() => electionsOf(mirror), [mirror, version])
  const query = useQuery('elections')
  const text = query.get('search')
  const shown = findElections(elections, text)
  return (
    <div class="stack">
      <h1>
        Elections <span class="count">{elections.length}</span>
      </h1>
      {elections.length > 0 && (
        <div class="filters">
          <Search
            what="elections and candidates"
            text={text}
            change={(search) => query.set({ search })}
          />
          {shown.length < elections.length && (
            <span class="quiet" role="status">
              {shown.length} of {plural(elections.length, 'election')}
            </span>
          )}
        </div>
      )}
      {elections.length === 0 && (
        <None title="No elections">
          <p>
            One of the candidates leads. When it dies or steps down, the next one leads:{' '}
            <code>for await (const term of leasehold.election('scheduler').lead())</code>.
          </p>
        </None>
      )}
      {shown.map((election) => (
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
      <PastTerms spans={spans.filter(({ end }) => end !== undefined)} />
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

function PastTerms({ spans }: { readonly spans: readonly Span[] }) {
  if (spans.length === 0) return null
  return (
    <table class="rows terms past">
      <thead>
        <tr>
          <th scope="col">From, to</th>
          <th scope="col">Leader</th>
          <th scope="col">Term</th>
          <th scope="col">Led for</th>
          <th scope="col">End</th>
        </tr>
      </thead>
      <tbody>
        {spans
          .slice(-TERMS_LISTED)
          .reverse()
          .map((span) => (
            <Term key={`${span.token} ${span.from}`} span={span} />
          ))}
      </tbody>
    </table>
  )
}

/** A past term: its time, its leader, and how it ended. */
function Term({ span: { holder, token, from, to, end } }: { readonly span: Span }) {
  return (
    <tr>
      <td data-name="Time">
        <time title={fullTime(from)}>{timeOfDay(from)}</time> to{' '}
        <time title={fullTime(to)}>{timeOfDay(to)}</time>
      </td>
      <td data-name="Leader">
        <a class="holder" href={`#/leases?holder=${encodeURIComponent(holder)}`}>
          {holder}
        </a>
      </td>
      <td data-name="Term" class="token">
        #{token}
      </td>
      <td data-name="Led for" class="lasted">
        {formatSpan(to - from)}
      </td>
      <td data-name="End">
        <EndMark end={end} />
      </td>
    </tr>
  )
}

function Candidates({ election: { key, others } }: { readonly election: ElectionView }) {
  const { mirror } = useLive()
  if (others.length === 0) return <p class="quiet">No other candidate waits.</p>
  const claims = mirror.keys.get(key)?.claims ?? []
  const leases = new Map(claims.map(({ token, lease }) => [token, lease]))
  return (
    <table class="rows terms candidates">
      <thead>
        <tr>
          <th scope="col">Candidate</th>
          <th scope="col">Token</th>
          <th scope="col">Priority</th>
          <th scope="col">Publishes</th>
        </tr>
      </thead>
      <tbody>
        {others
          .slice(0, CANDIDATES_SHOWN)
          .map(({ candidate, holder, token, priority, preempt, value }) => (
            <tr key={token}>
              <td data-name="Candidate">
                <HolderLink holder={candidate} lease={leases.get(token) ?? ''} />
                {holder !== candidate && <span class="quiet"> {holder}</span>}
              </td>
              <td data-name="Token" class="token">
                #{token}
              </td>
              <td data-name="Priority">
                {priority} {preempt && <span class="badge">preempts</span>}
              </td>
              <td data-name="Publishes" class="quiet">
                {value ?? 'nothing'}
              </td>
            </tr>
          ))}
      </tbody>
    </table>
  )
}
