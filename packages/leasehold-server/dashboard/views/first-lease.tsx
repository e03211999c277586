import { useEffect, useState } from 'preact/hooks'
import { api } from '../live/api.ts'
import type { Connection } from '../live/connection.ts'
import { changed } from '../live/frames.ts'
import { DrainBar, HolderLink, isDemo, KeyLink } from '../parts/badges.tsx'
import { useLive } from '../parts/context.ts'
import { CopyButton } from '../parts/copy.tsx'

/** The key of the lock; `NAME` is used below the prefixes of a user without a right to it. */
const KEY = 'reports/nightly'
const NAME = 'nightly'
const STORAGE_KEY = 'leasehold-first-lease'

/** Three commands that acquire, renew and release a lock on this server. */
export function commandsFor(origin: string, key: string, needsToken: boolean): readonly string[] {
  const curl = needsToken ? `curl -s -H "Authorization: Bearer $LEASEHOLD_ACCESS_TOKEN"` : 'curl -s'
  const lock = `"${origin}/v1/locks/${key.split('/').map(encodeURIComponent).join('/')}`
  return [
    `lease=$(${curl} -X POST ${lock}?ttl=60s&holder=me" | sed 's/.*"lease":"\\([^"]*\\)".*/\\1/')`,
    `${curl} -X PUT ${lock}?lease=$lease"`,
    `${curl} -X DELETE ${lock}?lease=$lease"`,
  ]
}

/** A key that the user may claim and see on this page, if there is one. */
export function keyFor(live: Connection): string | undefined {
  const own = live.rights.map(({ prefix }) => prefix + (/^$|\/$/.test(prefix) ? NAME : ''))
  const verbs = ['claim', 'read', 'watch'] as const
  return [KEY, ...own].find((key) => verbs.every((verb) => live.may(verb, key)))
}

/** The progress of the user. */
interface Lesson {
  /** The lease that the user acquired. */
  readonly lease?: string | undefined
  readonly isKept?: boolean
  readonly isReturned?: boolean
}

/** Survives a change of the view and a reload. */
let lesson: Lesson | undefined = kept()

function kept(): Lesson | undefined {
  try {
    return (JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? 'null') as Lesson | null) ?? undefined
  } catch {
    return undefined
  }
}

function keep(next: Lesson | undefined): void {
  lesson = next
  changed()
  try {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify(next ?? null))
  } catch {
    // Without storage, the progress lasts until the page is closed.
  }
}

/** Updates the progress. */
function follow(live: Connection, isEmpty: boolean): void {
  const { mirror, visibleLeases, status } = live
  if (status.is !== 'live') return
  const claims = mirror.keys.get(keyFor(live) ?? '')?.claims ?? []
  if (lesson?.lease === undefined) {
    const lease = lesson === undefined ? undefined : claims[0]?.lease
    if (lease !== undefined) keep({ lease })
    else if ((lesson !== undefined) !== isEmpty) keep(isEmpty ? {} : undefined)
    return
  }
  const { lease } = lesson
  // The server sends the heartbeats of a visible lease.
  const detail = visibleLeases.show(lease)
  const wasRenewed = detail !== undefined && detail.renewedAt > detail.grantedAt
  if (!lesson.isKept && (wasRenewed || visibleLeases.heartbeatsOf(lease).length > 0)) {
    keep({ ...lesson, isKept: true })
  }
  if (!lesson.isReturned && !claims.some((claim) => claim.lease === lease)) {
    keep({ ...lesson, isReturned: true })
  }
}

/**
 * Whether to show the steps: on an empty server, and then until the user hides them.
 */
export function useLesson(isEmpty: boolean): boolean {
  const live = useLive()
  follow(live, isEmpty)
  useEffect(() => {
    // A user without the right to read all keys receives no heartbeats: read the lease when they
    // return from the shell.
    const look = () => {
      if (lesson?.lease !== undefined) void live.visibleLeases.read(lesson.lease)
    }
    addEventListener('focus', look)
    return () => removeEventListener('focus', look)
  }, [live])
  return isEmpty || lesson?.lease !== undefined
}

const STEPS = [
  ['Take a lock for a minute', 'It appears here with a bar that shows the time left.'],
  ['Renew it', 'A heartbeat restores the full minute.'],
  ['Release it', 'Or let it expire: the next in the queue gets it either way.'],
] as const

/** Three steps with a first lease, shown on an empty server. */
export function FirstLease() {
  const live = useLive()
  const { me } = live
  const needsToken = me?.isKnown ?? false
  const key = keyFor(live)
  return (
    <section class="panel first" aria-labelledby="first-title">
      <h2 id="first-title">{titleFor(live.may('read', '') && live.may('watch', ''))}</h2>
      {key === undefined ? (
        <p>
          As {me?.name} you may not claim any key that this page shows. Use an access token with{' '}
          <code>claim,read,watch:{KEY}</code>.
        </p>
      ) : (
        <>
          <p>Paste these commands into a shell, one after the other, and watch this page.</p>
          {needsToken && (
            <p>
              The server requires an access token: set <code>LEASEHOLD_ACCESS_TOKEN</code> in the
              shell.
            </p>
          )}
          <Steps commands={commandsFor(location.origin, key, needsToken)} name={key} />
        </>
      )}
      {lesson?.lease === undefined && <DemoControl />}
    </section>
  )
}

function titleFor(seesAll: boolean): string {
  if (lesson?.isReturned) return 'Your first lease is complete'
  if (lesson?.lease !== undefined) return 'Your first lease'
  return seesAll ? 'Nothing is held yet' : 'Nothing that you may see is held yet'
}

interface StepsProps {
  readonly commands: readonly string[]
  readonly name: string
}

function Steps({ commands, name }: StepsProps) {
  const { lease, isKept = false, isReturned = false } = lesson ?? {}
  const done = [lease !== undefined, isKept, isReturned]
  return (
    <>
      <ol>
        {STEPS.map(([title, what], at) => (
          <li key={title} class={done[at] ? 'done' : ''}>
            <h3>
              {title}
              {done[at] && <span class="mark ok">done</span>}
            </h3>
            <Command text={commands[at]!} />
            {at === 0 && lease !== undefined && !isReturned ? (
              <Taken name={name} lease={lease} />
            ) : (
              <p class="quiet">{what}</p>
            )}
          </li>
        ))}
      </ol>
      {lease !== undefined && (
        <div class="actions">
          <button type="button" onClick={() => keep(undefined)}>
            {isReturned ? 'Start over' : 'Hide the steps'}
          </button>
        </div>
      )}
    </>
  )
}

/** The acquired lock with its bar. */
function Taken({ name, lease }: { readonly name: string; readonly lease: string }) {
  const { visibleLeases, mirror, now } = useLive()
  return (
    <p class="taken">
      <KeyLink name={name} /> is held by{' '}
      <HolderLink holder={mirror.leases.get(lease)?.holder ?? 'you'} lease={lease} />
      <DrainBar lease={visibleLeases.show(lease)} now={now()} />
    </p>
  )
}

function Command({ text }: { readonly text: string }) {
  return (
    <div class="command">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element needs the focus. */}
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text} />
    </div>
  )
}

/** How often to look whether demo leases without claims still exist: no event reports their end. */
const REMAINS_MS = 1000
const REMAINS_READ_MAX = 50

/** Offers to remove a demo that was not ended. */
export function Remains() {
  const { feed, mirror, visibleLeases, now } = useLive()
  const isOver = feed.state?.demo === 'off'
  const holders = isOver ? [...mirror.holders.keys()].filter(isDemo) : []
  const moment = holders.length === 0 ? 0 : Math.floor(now() / REMAINS_MS)
  useEffect(() => {
    const leases = holders.flatMap((holder) => [...(mirror.holders.get(holder) ?? [])])
    const bare = leases.filter((id) => mirror.leases.get(id)?.keys.length === 0)
    for (const id of bare.slice(0, REMAINS_READ_MAX)) void visibleLeases.read(id)
  }, [moment])
  return holders.length > 0 ? <DemoControl /> : null
}

const DEMO_TEXTS = {
  off: [
    'Or try it with a demo',
    'A small fleet in this server: agents that register, lead, queue for GPUs, and die. Everything is named demo, and one click removes it.',
  ],
  on: [
    'A demo is running',
    'Everything named demo belongs to a fleet in this server: agents that register, lead, queue for GPUs, and die. Ending it removes everything it holds.',
  ],
  remains: [
    'A demo was not removed',
    'It no longer runs: the server stopped before the demo was ended. Everything named demo is left from it and unused.',
  ],
} as const

/** Starts and ends the demo, if the user may. */
function DemoControl() {
  const { me, feed, mirror } = useLive()
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string | undefined>(undefined)
  if (!me?.demo) return null
  const state = feed.state?.demo ?? 'off'
  const hasRemains = state === 'off' && [...mirror.holders.keys()].some(isDemo)
  const run = async (on: boolean) => {
    setBusy(true)
    setProblem(undefined)
    try {
      await api.setDemo(on)
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error))
    } finally {
      setBusy(false)
    }
  }
  const isOn = state !== 'off' || hasRemains
  const [title, what] = DEMO_TEXTS[hasRemains ? 'remains' : isOn ? 'on' : 'off']
  return (
    <div class="demo-control">
      <div>
        <h3>{title}</h3>
        <p class="quiet">{what}</p>
        {problem !== undefined && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
      </div>
      <button
        type="button"
        class={isOn ? '' : 'primary'}
        disabled={isBusy || state === 'ending'}
        onClick={() => run(!isOn)}
      >
        {isOn ? (hasRemains ? 'Remove it' : 'End the demo') : 'Try it'}
      </button>
    </div>
  )
}
