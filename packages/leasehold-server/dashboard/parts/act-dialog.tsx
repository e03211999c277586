import { useEffect, useRef, useState } from 'preact/hooks'
import { api, NoAnswer, Refusal } from '../live/api.ts'
import type { Connection } from '../live/connection.ts'
import { type Deed, PERIODS } from '../model/deeds.ts'
import { useLive } from './context.ts'

let open: (deed: Deed) => void = () => {}

/** Asks whether this is really to be done, and why; and does it. */
export function propose(deed: Deed | undefined): void {
  if (deed !== undefined) open(deed)
}

/** Why nothing can be done now, where that is so. */
export function useHindrance(): string | undefined {
  const { standing } = useLive()
  if (standing.is === 'live') return undefined
  if (standing.is === 'loading') return 'Not possible yet: this page still reads what is held.'
  return 'Not possible now: the server is away, and this page shows how it was.'
}

export interface ActButtonProps {
  /** Asked for when it is pressed: by then things may have changed. */
  readonly deed: () => Deed | undefined
  readonly text: string
  /** What it is called where the text alone does not tell it from others. */
  readonly label?: string | undefined
  readonly isDanger?: boolean
}

/** A button that proposes a deed; it says why it cannot where it cannot. */
export function ActButton({ deed, text, label, isDanger }: ActButtonProps) {
  const hindrance = useHindrance()
  return (
    <button
      type="button"
      class={isDanger ? 'danger' : ''}
      aria-label={label}
      disabled={hindrance !== undefined}
      title={hindrance}
      onClick={() => propose(deed())}
    >
      {text}
    </button>
  )
}

/** The one dialog of the page: what will happen, the reason for it, and the word that does it. */
export function ActDialog() {
  const [deed, setDeed] = useState<Deed | undefined>(undefined)
  const [outcome, setOutcome] = useState<string | undefined>(undefined)
  const dialog = useRef<HTMLDialogElement>(null)
  const proposed = useRef<Deed | undefined>(undefined)
  useEffect(() => {
    open = (next) => {
      proposed.current = next
      setOutcome(undefined)
      setDeed(next)
    }
  }, [])
  useEffect(() => {
    if (deed !== undefined) dialog.current?.showModal()
  }, [deed])
  const close = (of: Deed | undefined, said?: string) => {
    setOutcome(said)
    // One that was left while it was under way must not close the next.
    if (of !== proposed.current) return
    proposed.current = undefined
    dialog.current?.close()
    setDeed(undefined)
  }
  // The browser tells of a close only later, when the next deed may have been proposed already: it is
  // not left to close by itself.
  const cancel = (event: Event) => {
    event.preventDefault()
    close(deed)
  }
  return (
    <>
      <dialog ref={dialog} aria-labelledby="act-title" onCancel={cancel}>
        {deed !== undefined && (
          <ActForm
            deed={deed}
            close={(said) => close(deed, said)}
            isLeft={() => proposed.current !== deed}
          />
        )}
      </dialog>
      <Outcome said={outcome} dismiss={() => setOutcome(undefined)} />
    </>
  )
}

interface OutcomeProps {
  readonly said: string | undefined
  dismiss(): void
}

/** What was really done. The place is there before the words, or they would not be read out. */
function Outcome({ said, dismiss }: OutcomeProps) {
  return (
    <div role="status">
      {said !== undefined && (
        <p class="outcome">
          <span>{said}</span>
          <button type="button" class="bare" aria-label="Close what was done" onClick={dismiss}>
            close
          </button>
        </p>
      )}
    </div>
  )
}

/** Does it, and answers with what was done. */
async function carryOut(
  { book }: Connection,
  deed: Deed,
  why: string,
  after: number,
): Promise<string> {
  const act = deed.act(why, after)
  try {
    const answer = await api.act(act)
    // Those who may not watch the lease are not told of it otherwise.
    if (act.act === 'break') book.cut(act.lease, { reason: 'broken', by: answer.by, why })
    return deed.done(answer, after)
  } finally {
    // Nothing is told of a lease but its heartbeats. Also what has failed may have been done.
    if (deed.lease !== undefined) void book.ask(deed.lease)
  }
}

function problemOf(error: unknown, deed: Deed): string {
  const said = error instanceof Error ? error.message : String(error)
  if (error instanceof NoAnswer) {
    return `It is not known whether it was done: ${said}. Look before you do it again.`
  }
  const isGone = error instanceof Refusal && error.code === 'claim-not-found'
  return `Not done: ${isGone ? (deed.gone ?? said) : said}`
}

interface ActFormProps {
  readonly deed: Deed
  close(said?: string): void
  /** Whether somebody has closed it while it was under way. */
  isLeft(): boolean
}

function ActForm({ deed, close, isLeft }: ActFormProps) {
  const live = useLive()
  const periods = PERIODS.filter(({ ms }) => live.now() + ms < (deed.before ?? Infinity))
  const [why, setWhy] = useState('')
  const [chosen, setAfter] = useState(PERIODS[1]!.ms)
  // What was chosen may have become too long while the dialog is open.
  const after = Math.min(chosen, periods.at(-1)?.ms ?? Infinity)
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: Event) => {
    event.preventDefault()
    if (isBusy) return
    setBusy(true)
    setProblem(undefined)
    try {
      close(await carryOut(live, deed, why.trim(), after))
    } catch (error) {
      const problem = problemOf(error, deed)
      if (isLeft()) close(`${deed.title}: ${problem}`)
      else setProblem(problem)
    } finally {
      setBusy(false)
    }
  }
  const hindrance = useHindrance()
  return (
    <form onSubmit={submit}>
      <h2 id="act-title">{deed.title}</h2>
      <ul class="consequences">
        {deed.consequences.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
      {deed.hasPeriod && <Period periods={periods} after={after} setAfter={setAfter} />}
      <Reason why={why} setWhy={setWhy} />
      <Warning text={hindrance ?? (problem === undefined ? deed.void?.(live.mirror) : problem)} />
      <div class="buttons">
        <button type="button" onClick={() => close()}>
          Cancel
        </button>
        <button
          type="submit"
          class="danger"
          disabled={isBusy || why.trim() === '' || hindrance !== undefined}
        >
          {isBusy ? 'Under way' : deed.button}
        </button>
      </div>
    </form>
  )
}

interface ReasonProps {
  readonly why: string
  setWhy(why: string): void
}

function Reason({ why, setWhy }: ReasonProps) {
  return (
    <label class="field">
      <span>Reason</span>
      <input
        value={why}
        required
        maxLength={200}
        autocomplete="off"
        placeholder="Told to the holder, and written into the audit"
        onInput={(event) => setWhy(event.currentTarget.value)}
      />
    </label>
  )
}

function Warning({ text }: { readonly text: string | undefined }) {
  if (text === undefined) return null
  return (
    <p class="problem" role="alert">
      {text}
    </p>
  )
}

interface PeriodProps {
  readonly periods: typeof PERIODS
  readonly after: number
  setAfter(ms: number): void
}

function Period({ periods, after, setAfter }: PeriodProps) {
  return (
    <label class="field">
      <span>In</span>
      <select value={after} onChange={(event) => setAfter(Number(event.currentTarget.value))}>
        {periods.map(({ ms, text }) => (
          <option key={ms} value={ms}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}
