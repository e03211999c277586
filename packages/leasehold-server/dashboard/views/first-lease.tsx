import { useEffect, useState } from 'preact/hooks'
import { api } from '../live/api.ts'
import type { Connection } from '../live/connection.ts'
import { changed } from '../live/frames.ts'
import { useLive } from '../parts/context.ts'
import { DrainBar, HolderLink, isDemo, KeyLink } from '../parts/small.tsx'

/** What the lock is called, for those who may claim it, or else below what they may. */
const KEY = 'reports/nightly'
const NAME = 'nightly'
const KEPT_AS = 'leasehold-first-lease'

/** Three commands that take, keep and give back a lock, on this very server. */
export function commandsFor(origin: string, key: string, wantsToken: boolean): readonly string[] {
  const curl = wantsToken ? `curl -s -H "Authorization: Bearer $LEASEHOLD_AUTH"` : 'curl -s'
  const lock = `"${origin}/v1/locks/${key.split('/').map(encodeURIComponent).join('/')}`
  return [
    `lease=$(${curl} -X POST ${lock}?ttl=60s&holder=me" | sed 's/.*"lease":"\\([^"]*\\)".*/\\1/')`,
    `${curl} -X PUT ${lock}?lease=$lease"`,
    `${curl} -X DELETE ${lock}?lease=$lease"`,
  ]
}

/** A key that this one may claim, and see on this page; nothing where there is none. */
export function keyFor(live: Connection): string | undefined {
  const own = live.rights.map(({ prefix }) => prefix + (/^$|\/$/.test(prefix) ? NAME : ''))
  const verbs = ['claim', 'read', 'watch'] as const
  return [KEY, ...own].find((key) => verbs.every((verb) => live.may(verb, key)))
}

/** How far somebody has come. */
interface Lesson {
  /** The lease that was taken. */
  readonly lease?: string | undefined
  readonly isKept?: boolean
  readonly isReturned?: boolean
}

/** It outlives the view, and a reload: who looks at the keys meanwhile finds the steps again. */
let lesson: Lesson | undefined = kept()

function kept(): Lesson | undefined {
  try {
    return (JSON.parse(sessionStorage.getItem(KEPT_AS) ?? 'null') as Lesson | null) ?? undefined
  } catch {
    return undefined
  }
}

function keep(next: Lesson | undefined): void {
  lesson = next
  changed()
  try {
    sessionStorage.setItem(KEPT_AS, JSON.stringify(next ?? null))
  } catch {
    // It is forgotten with the page.
  }
}

/** Looks how far they have come. */
function follow(live: Connection, isEmpty: boolean): void {
  const { mirror, book, standing } = live
  if (standing.is !== 'live') return
  const claims = mirror.keys.get(keyFor(live) ?? '')?.claims ?? []
  if (lesson?.lease === undefined) {
    const lease = lesson === undefined ? undefined : claims[0]?.lease
    if (lease !== undefined) keep({ lease })
    else if ((lesson !== undefined) !== isEmpty) keep(isEmpty ? {} : undefined)
    return
  }
  const { lease } = lesson
  // A lease that is looked at has its heartbeats told.
  const detail = book.see(lease)
  const wasRenewed = detail !== undefined && detail.renewedAt > detail.grantedAt
  if (!lesson.isKept && (wasRenewed || book.beatsOf(lease).length > 0)) {
    keep({ ...lesson, isKept: true })
  }
  if (!lesson.isReturned && !claims.some((claim) => claim.lease === lease)) {
    keep({ ...lesson, isReturned: true })
  }
}

/**
 * Whether the steps are shown: on a server that nobody uses, and from there on until whoever took
 * the lock has put them away.
 */
export function useLesson(isEmpty: boolean): boolean {
  const live = useLive()
  follow(live, isEmpty)
  useEffect(() => {
    // Who may not read everything is told of no heartbeats: it is looked up when they come back
    // from the shell.
    const look = () => {
      if (lesson?.lease !== undefined) void live.book.ask(lesson.lease)
    }
    addEventListener('focus', look)
    return () => removeEventListener('focus', look)
  }, [live])
  return isEmpty || lesson?.lease !== undefined
}

const STEPS = [
  ['Take a lock for a minute', 'It appears here, with a bar that drains.'],
  ['Keep it', 'A heartbeat gives it its full minute again.'],
  ['Give it back', 'Or let it run out: the next in line has it either way.'],
] as const

/** What an empty server shows, and goes on to show until its three steps are done. */
export function FirstLease() {
  const live = useLive()
  const { me } = live
  const wantsToken = me?.isKnown ?? false
  const key = keyFor(live)
  return (
    <section class="panel first" aria-labelledby="first-title">
      <h2 id="first-title">{titleFor(live.may('read', '') && live.may('watch', ''))}</h2>
      {key === undefined ? (
        <p>
          As {me?.name} you may look here, and claim nothing that this page would show. A token with{' '}
          <code>claim,read,watch:{KEY}</code> may.
        </p>
      ) : (
        <>
          <p>Paste these into a shell, one after the other, and watch this page.</p>
          {wantsToken && (
            <p>
              The server wants to know who asks: the shell must have your token in{' '}
              <code>LEASEHOLD_AUTH</code>, as for the command line.
            </p>
          )}
          <Steps commands={commandsFor(location.origin, key, wantsToken)} name={key} />
        </>
      )}
      {lesson?.lease === undefined && <Demonstrate />}
    </section>
  )
}

function titleFor(seesAll: boolean): string {
  if (lesson?.isReturned) return 'That was a lease from end to end'
  if (lesson?.lease !== undefined) return 'Your first lease'
  return seesAll ? 'Nothing is held yet' : 'Nothing is held yet of what you may see'
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

/** The lock that was taken, with the bar that was promised. */
function Taken({ name, lease }: { readonly name: string; readonly lease: string }) {
  const { book, mirror, now } = useLive()
  return (
    <p class="taken">
      <KeyLink name={name} /> is held by{' '}
      <HolderLink holder={mirror.leases.get(lease)?.holder ?? 'you'} lease={lease} />
      <DrainBar lease={book.see(lease)} now={now()} />
    </p>
  )
}

function Command({ text }: { readonly text: string }) {
  const [said, say] = useState('Copy')
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      say('Copied')
    } catch {
      say('Not allowed')
    }
    setTimeout(() => say('Copy'), 1500)
  }
  return (
    <div class="command">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what can be scrolled must be reached. */}
      <pre tabIndex={0}>{text}</pre>
      <button type="button" onClick={copy}>
        {said}
      </button>
    </div>
  )
}

/** What a server did not get to end of a demonstration, for those who may clear it away. */
export function Remains() {
  const { feed, mirror } = useLive()
  const isOver = feed.state?.demonstration === 'off'
  return isOver && [...mirror.holders.keys()].some(isDemo) ? <Demonstrate /> : null
}

const DEMONSTRATION = {
  off: [
    'Or try it with a demonstration',
    'A small fleet in this server: agents that register, lead, queue for GPUs, and die. All of it is called demo, and goes with one click.',
  ],
  on: [
    'A demonstration is here',
    'What is called demo is a fleet in this server: agents that register, lead, queue for GPUs, and die. Ending it removes all that it holds.',
  ],
  remains: [
    'A demonstration was here',
    'It runs no more: the server stopped before it was ended. What is called demo is what it held, and nobody uses it.',
  ],
} as const

/** Starts and ends the demonstration, for those who may. */
function Demonstrate() {
  const { me, feed, mirror } = useLive()
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string | undefined>(undefined)
  if (!me?.demonstration) return null
  const state = feed.state?.demonstration ?? 'off'
  const hasRemains = state === 'off' && [...mirror.holders.keys()].some(isDemo)
  const run = async (on: boolean) => {
    setBusy(true)
    setProblem(undefined)
    try {
      await api.demonstrate(on)
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error))
    } finally {
      setBusy(false)
    }
  }
  const isOn = state !== 'off' || hasRemains
  const [title, what] = DEMONSTRATION[hasRemains ? 'remains' : isOn ? 'on' : 'off']
  return (
    <div class="demonstrate">
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
        {isOn ? (hasRemains ? 'Clear it away' : 'End the demonstration') : 'Try it'}
      </button>
    </div>
  )
}
