import { useMemo } from 'preact/hooks'
import { ASKS_PREFIX } from '../../src/agents/asks.ts'
import { askForHold, breakHold } from '../model/admin-actions.ts'
import {
  type AgentFilter,
  type AgentHold,
  type AgentRow,
  type AgentWait,
  agentsOf,
  findAgents,
  waitersOf,
  waitsOf,
} from '../model/agents.ts'
import { formatSpan, fullTime, plural, timeOfDay } from '../model/format.ts'
import { ActionButton } from '../parts/action-dialog.tsx'
import { DemoBadge, DrainBar, HolderLink, None, ShortName } from '../parts/badges.tsx'
import { useLive } from '../parts/context.ts'
import { hrefTo, type Query, type Route, useQuery } from '../parts/route.ts'
import { Search } from '../parts/search.tsx'

/** The shortest interval between two computations while keys change. */
const COMPUTE_MS = 250
const THINGS_SHOWN = 4
const WAITERS_NAMED = 3

/** The fleet of coding agents: what each does, holds and waits for. */
export function Agents({ route }: { readonly route: Route }) {
  const { mirror, now } = useLive()
  const moment = Math.floor(now() / COMPUTE_MS)
  const agents = useMemo(() => agentsOf(mirror, now()), [mirror, moment])
  const waiters = useMemo(() => waitersOf(agents), [agents])
  const query = useQuery('agents')
  const filter: AgentFilter = {
    text: query.get('search'),
    isWaiting: query.get('waiting') !== '',
    isAsked: query.get('asked') !== '',
  }
  const found = findAgents(agents, filter)
  const shown = route.at === undefined ? found : found.filter(({ name }) => name === route.at)
  const waits = waitsOf(shown)
  return (
    <div class="stack">
      <h1>
        Agents <span class="count">{agents.length}</span>
        {route.at !== undefined && (
          <a class="back shown" href="#/agents">
            All agents
          </a>
        )}
      </h1>
      {agents.length === 0 ? (
        <NoAgents />
      ) : (
        <>
          <Filters {...{ agents, filter, query, shown: shown.length }} />
          {waits.length > 0 && <Waits waits={waits} />}
          <ul class="agents">
            {shown.map((agent) => (
              <Agent key={agent.name} {...{ agent, waiters }} />
            ))}
          </ul>
        </>
      )}
    </div>
  )
}

function NoAgents() {
  return (
    <None title="No agents">
      <p>
        Coding agents that use the MCP server <code>npx leasehold mcp</code> appear here, with what
        they do, hold and wait for.
      </p>
    </None>
  )
}

interface FiltersProps {
  readonly agents: readonly AgentRow[]
  readonly filter: AgentFilter
  readonly query: Query
  readonly shown: number
}

function Filters({ agents, filter, query, shown }: FiltersProps) {
  const { text, isWaiting, isAsked } = filter
  const waiting = agents.filter(({ waits }) => waits.length > 0).length
  const asked = agents.filter(({ holds }) => holds.some(({ asks }) => asks.length > 0)).length
  return (
    <div class="filters">
      <Search
        what="agents, work and files"
        text={text}
        change={(search) => query.set({ search })}
      />
      <button
        type="button"
        class="chip"
        aria-pressed={isWaiting}
        onClick={() => query.set({ waiting: isWaiting ? '' : 'only' })}
      >
        waiting {waiting}
      </button>
      <button
        type="button"
        class="chip"
        aria-pressed={isAsked}
        onClick={() => query.set({ asked: isAsked ? '' : 'only' })}
      >
        asked back {asked}
      </button>
      {shown < agents.length && (
        <span class="quiet">
          {shown} of {plural(agents.length, 'agent')}
        </span>
      )}
    </div>
  )
}

/** Who waits for whom, the longest wait first. */
function Waits({ waits }: { readonly waits: readonly AgentWait[] }) {
  return (
    <section class="panel" aria-labelledby="waits-title">
      <h2 id="waits-title">
        Who waits for whom <span class="count">{waits.length}</span>
      </h2>
      <table class="rows wide">
        <thead>
          <tr>
            <th scope="col">Agent</th>
            <th scope="col">Wants</th>
            <th scope="col">Since</th>
            <th scope="col">Waits for</th>
            <th scope="col">Its work</th>
            <td />
          </tr>
        </thead>
        <tbody>
          {waits.map((wait) => (
            <WaitLine key={wait.id} wait={wait} />
          ))}
        </tbody>
      </table>
    </section>
  )
}

function WaitLine({ wait }: { readonly wait: AgentWait }) {
  const { now } = useLive()
  const mayAsk = useMayAsk()
  const { agent, ahead, since, purpose } = wait
  const holding = ahead.filter(({ isHeld }) => isHeld)
  const [first] = holding
  const others = ahead.length - (first === undefined ? 0 : 1)
  return (
    <tr>
      <td data-name="Agent">
        <AgentLink name={agent} />
      </td>
      <td data-name="Wants">
        <Things hold={wait} />
        <span class="quiet">{purpose}</span>
      </td>
      <td data-name="Since" class="lasted" title={fullTime(since)}>
        {formatSpan(now() - since)}
      </td>
      <td data-name="Waits for">
        {first === undefined ? (
          <span class="quiet">{ahead.length === 0 ? 'its turn' : plural(others, 'other')}</span>
        ) : (
          <>
            {first.hold === undefined ? first.agent : <AgentLink name={first.agent} />}
            {others > 0 && <p class="quiet">and {plural(others, 'other')}</p>}
          </>
        )}
      </td>
      <td data-name="Its work">
        {first !== undefined && (
          <>
            {first.hold?.purpose ?? <ShortName name={first.key} />}
            <span class="quiet"> for {formatSpan(now() - first.since)}</span>
          </>
        )}
      </td>
      <td class="button">
        {first?.hold !== undefined && mayAsk(first.hold) && (
          <AskButton hold={first.hold} reason={` for ${agent}`} />
        )}
      </td>
    </tr>
  )
}

interface AgentProps {
  readonly agent: AgentRow
  readonly waiters: ReadonlyMap<string, readonly string[]>
}

function Agent({ agent, waiters }: AgentProps) {
  const { name, announced, doing, capabilities, holds, waits } = agent
  const lease = announced?.lease
  return (
    <li class="panel agent">
      <h2>
        <a href={hrefTo('agents', name)}>{name}</a> <DemoBadge name={name} />
        <State agent={agent} />
      </h2>
      <p class={doing === undefined ? 'quiet' : ''}>{doing ?? 'It has not announced its work.'}</p>
      {(capabilities.length > 0 || announced !== undefined) && (
        <p class="instance-facts">
          {capabilities.map((word) => (
            <span key={word} class="badge">
              {word}
            </span>
          ))}
          {announced !== undefined && lease !== undefined && (
            <Announced agent={agent} announced={announced} />
          )}
        </p>
      )}
      {holds.length > 0 && (
        <>
          <h3>
            Holds <span class="count">{holds.length}</span>
          </h3>
          <ul>
            {holds.map((hold) => (
              <Hold key={hold.id} hold={hold} waiters={waiters.get(hold.id) ?? []} />
            ))}
          </ul>
        </>
      )}
      {waits.length > 0 && (
        <>
          <h3>
            Waits for <span class="count">{waits.length}</span>
          </h3>
          <ul>
            {waits.map((wait) => (
              <Wait key={wait.id} wait={wait} />
            ))}
          </ul>
        </>
      )}
    </li>
  )
}

function State({ agent: { holds, waits } }: { readonly agent: AgentRow }) {
  if (waits.length > 0) return <span class="mark warn">waits</span>
  if (holds.length > 0) return <span class="mark ok">works</span>
  return <span class="mark">holds nothing</span>
}

interface AnnouncedProps {
  readonly agent: AgentRow
  readonly announced: NonNullable<AgentRow['announced']>
}

function Announced({ agent: { paths }, announced: { lease, holder, since } }: AnnouncedProps) {
  return (
    <>
      {paths.length > 0 && (
        <span title={paths.join('\n')}>
          in <code>{paths[0]}</code>
          {paths.length > 1 && ` and ${plural(paths.length - 1, 'other path')}`}
        </span>
      )}
      <span title={fullTime(since)}>since {timeOfDay(since)}</span>
      <HolderLink holder={holder} lease={lease} />
    </>
  )
}

interface HoldProps {
  readonly hold: AgentHold
  readonly waiters: readonly string[]
}

function Hold({ hold, waiters }: HoldProps) {
  const live = useLive()
  const { now, mirror, visibleLeases } = live
  const { agent, purpose, since, until, lease, keys, asks } = hold
  const mayAsk = useMayAsk()
  const mayBreak = keys.every((key) => live.may('admin', key))
  return (
    <li class="agent-hold">
      <div>
        <Things hold={hold} />
        <p>{purpose}</p>
        <p class="quiet">
          <span title={fullTime(since)}>for {formatSpan(now() - since)}</span>
          {until < Infinity && (
            <span title={fullTime(until)}>, ends in {formatSpan(until - now())} at the latest</span>
          )}
        </p>
        {waiters.length > 0 && <Waiters names={waiters} />}
        {asks.map(({ by, why, at }) => (
          <p key={`${at} ${by}`} class="asked">
            Asked back by {by} {formatSpan(now() - at)} ago: {why}
          </p>
        ))}
      </div>
      <div class="agent-actions">
        <DrainBar lease={visibleLeases.show(lease)} now={now()} />
        {mayAsk(hold) && <AskButton hold={hold} />}
        {mayBreak && (
          <ActionButton
            text="Break…"
            label={`Break, take ${hold.things[0]} from ${agent}`}
            isDanger
            action={() => breakHold(mirror, hold, waiters)}
          />
        )}
      </div>
    </li>
  )
}

/** Whether the agent of a hold can be asked for it. */
function useMayAsk(): (hold: AgentHold) => boolean {
  const live = useLive()
  return ({ pool }) => pool === undefined && live.may('claim', ASKS_PREFIX)
}

function AskButton({ hold, reason = '' }: { readonly hold: AgentHold; readonly reason?: string }) {
  const label = `Ask back ${hold.things[0]} from ${hold.agent}${reason}`
  return <ActionButton text="Ask back…" label={label} action={() => askForHold(hold)} />
}

function Waiters({ names }: { readonly names: readonly string[] }) {
  const shown = names.slice(0, WAITERS_NAMED)
  const more = names.length - shown.length
  return (
    <p class="waiters">
      {shown.map((name, at) => (
        <span key={name}>
          {at > 0 && ', '}
          <AgentLink name={name} />
        </span>
      ))}
      {more > 0 && ` and ${more} more`} {names.length === 1 ? 'waits' : 'wait'} for it
    </p>
  )
}

function Wait({ wait }: { readonly wait: AgentWait }) {
  const { now, visibleLeases } = useLive()
  const { purpose, since, lease, ahead } = wait
  return (
    <li class="agent-hold">
      <div>
        <Things hold={wait} />
        <p>{purpose}</p>
        <p class="quiet">
          <span title={fullTime(since)}>waits for {formatSpan(now() - since)}</span>
          {ahead.length > 0 && `, ${plural(ahead.length, 'hold')} ahead`}
        </p>
      </div>
      <div class="agent-actions">
        <DrainBar lease={visibleLeases.show(lease)} now={now()} />
      </div>
    </li>
  )
}

/** What a hold is for, with a link to its key. */
function Things({ hold: { things, key, isShared } }: { readonly hold: AgentHold }) {
  const shown = things.slice(0, THINGS_SHOWN)
  return (
    <p class="things">
      {shown.map((thing) => (
        <a key={thing} class="thing" href={hrefTo('keys', key)}>
          <ShortName name={thing} />
        </a>
      ))}
      {things.length > shown.length && (
        <span class="quiet" title={things.join('\n')}>
          and {things.length - shown.length} more
        </span>
      )}
      {isShared && <span class="badge">shared</span>}
    </p>
  )
}

function AgentLink({ name }: { readonly name: string }) {
  return (
    <a class="holder" href={hrefTo('agents', name)}>
      {name}
    </a>
  )
}
