import { useState } from 'preact/hooks'
import { api } from '../live/api.ts'
import { useLive } from '../parts/context.ts'
import { isDemo } from '../parts/small.tsx'

/** Three commands that take, keep and give back a lock, on this very server. */
export function commandsFor(origin: string, wantsToken: boolean): readonly string[] {
  const curl = wantsToken ? `curl -s -H "Authorization: Bearer $LEASEHOLD_TOKEN"` : 'curl -s'
  const lock = `"${origin}/v1/locks/reports/nightly`
  return [
    `lease=$(${curl} -X POST ${lock}?ttl=60s&holder=me" | sed 's/.*"lease":"\\([^"]*\\)".*/\\1/')`,
    `${curl} -X PUT ${lock}?lease=$lease"`,
    `${curl} -X DELETE ${lock}?lease=$lease"`,
  ]
}

const STEPS = [
  ['Take a lock for a minute', 'It appears here, with a bar that drains.'],
  ['Keep it', 'A heartbeat gives it its full minute again.'],
  ['Give it back', 'Or let it run out: the next in line has it either way.'],
] as const

/** What an empty server shows. */
export function FirstLease() {
  const { me } = useLive()
  const commands = commandsFor(location.origin, me?.isKnown ?? false)
  return (
    <section class="panel first" aria-labelledby="first-title">
      <h2 id="first-title">Nothing is held yet</h2>
      <p>Paste these into a shell, one after the other, and watch this page.</p>
      <ol>
        {STEPS.map(([title, what], at) => (
          <li key={title}>
            <h3>{title}</h3>
            <Command text={commands[at]!} />
            <p class="quiet">{what}</p>
          </li>
        ))}
      </ol>
      <Demonstrate />
    </section>
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
  return (
    <div class="demonstrate">
      <div>
        <h3>{isOn ? 'A demonstration is here' : 'Or try it with a demonstration'}</h3>
        <p class="quiet">
          {isOn
            ? 'What is called demo is a fleet in this server: agents that register, lead, queue for GPUs, and die. Ending it removes all that it holds.'
            : 'A small fleet in this server: agents that register, lead, queue for GPUs, and die. All of it is called demo, and goes with one click.'}
        </p>
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
