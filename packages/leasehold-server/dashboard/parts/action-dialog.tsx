import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { api, NoAnswer, Refused } from '../live/api.ts'
import type { Connection } from '../live/connection.ts'
import { PERIODS, type ProposedAction } from '../model/admin-actions.ts'
import { useLive } from './context.ts'

let open: (action: ProposedAction) => void = () => {}

/** Opens the dialog, which asks for confirmation and a reason, and then performs the action. */
export function propose(action: ProposedAction | undefined): void {
  if (action !== undefined) open(action)
}

/** Why actions are disabled now, if so. */
export function useDisabledReason(): string | undefined {
  const { status } = useLive()
  if (status.is === 'live') return undefined
  if (status.is === 'loading') return 'Not possible yet: the page is still loading.'
  return 'Not possible now: the server cannot be reached and the page shows an old state.'
}

export interface ActionButtonProps {
  /** Called when the button is pressed, because the state may have changed. */
  readonly action: () => ProposedAction | undefined
  readonly text: string
  /** The accessible name, if the text is not unique. */
  readonly label?: string | undefined
  readonly isDanger?: boolean
}

/** A button that opens the dialog for an action. If it is disabled, its tooltip says why. */
export function ActionButton({ action, text, label, isDanger }: ActionButtonProps) {
  const disabledReason = useDisabledReason()
  return (
    <button
      type="button"
      class={isDanger ? 'danger' : ''}
      aria-label={label}
      disabled={disabledReason !== undefined}
      title={disabledReason}
      onClick={() => propose(action())}
    >
      {text}
    </button>
  )
}

/** The dialog for actions: the consequences, the reason, and the button to perform it. */
export function ActionDialog() {
  const [action, setAction] = useState<ProposedAction | undefined>(undefined)
  const [outcome, setOutcome] = useState<string | undefined>(undefined)
  const dialog = useRef<HTMLDialogElement>(null)
  const proposed = useRef<ProposedAction | undefined>(undefined)
  useEffect(() => {
    open = (next) => {
      proposed.current = next
      setOutcome(undefined)
      setAction(next)
    }
  }, [])
  // In the same frame as the press of the button: an effect after the paint would let the next press
  // reach the page behind the dialog.
  useLayoutEffect(() => {
    if (action !== undefined) dialog.current?.showModal()
  }, [action])
  const close = (of: ProposedAction | undefined, said?: string) => {
    setOutcome(said)
    // An action that was abandoned while it ran must not close the next dialog.
    if (of !== proposed.current) return
    proposed.current = undefined
    dialog.current?.close()
    setAction(undefined)
  }
  // The browser reports its own close late, when the next action may already be open. So the dialog is
  // closed here.
  const cancel = (event: Event) => {
    event.preventDefault()
    close(action)
  }
  return (
    <>
      <dialog ref={dialog} aria-labelledby="action-title" onCancel={cancel}>
        {action !== undefined && (
          <ActionForm
            action={action}
            close={(said) => close(action, said)}
            isLeft={() => proposed.current !== action}
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

/** The outcome. The element exists before its text, so that screen readers announce it. */
function Outcome({ said, dismiss }: OutcomeProps) {
  return (
    <div role="status">
      {said !== undefined && (
        <p class="outcome">
          <span>{said}</span>
          <button type="button" class="bare" aria-label="Close the outcome" onClick={dismiss}>
            close
          </button>
        </p>
      )}
    </div>
  )
}

/** Performs the action and returns its outcome. */
async function carryOut(
  { visibleLeases }: Connection,
  action: ProposedAction,
  why: string,
  after: number,
): Promise<string> {
  const request = action.request(why, after)
  try {
    const answer = await api.perform(request)
    // A user who may not watch the lease is not notified of the break.
    if (request.action === 'break')
      visibleLeases.addBreak(request.lease, { reason: 'broken', by: answer.by, why })
    return action.done(answer, after)
  } finally {
    // The feed reports only heartbeats, and a failed action may have been performed: read the lease.
    if (action.lease !== undefined) void visibleLeases.read(action.lease)
  }
}

function problemOf(error: unknown, action: ProposedAction): string {
  const said = error instanceof Error ? error.message : String(error)
  if (error instanceof NoAnswer) {
    return `The outcome is unknown: ${said}. Check before you try again.`
  }
  const isGone = error instanceof Refused && error.code === 'claim-not-found'
  return `Not done: ${isGone ? (action.gone ?? said) : said}`
}

interface ActionFormProps {
  readonly action: ProposedAction
  close(said?: string): void
  /** Whether the dialog was closed while the action ran. */
  isLeft(): boolean
}

function ActionForm({ action, close, isLeft }: ActionFormProps) {
  const live = useLive()
  const before = action.before?.() ?? Infinity
  const periods = PERIODS.filter(({ ms }) => live.now() + ms < before)
  const [why, setWhy] = useState('')
  const [chosen, setAfter] = useState(PERIODS[1]!.ms)
  // The chosen period may become too long while the dialog is open.
  const after = Math.min(chosen, periods.at(-1)?.ms ?? Infinity)
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: Event) => {
    event.preventDefault()
    if (isBusy) return
    setBusy(true)
    setProblem(undefined)
    try {
      close(await carryOut(live, action, why.trim(), after))
    } catch (error) {
      const problem = problemOf(error, action)
      if (isLeft()) close(`${action.title}: ${problem}`)
      else setProblem(problem)
    } finally {
      setBusy(false)
    }
  }
  const disabledReason = useDisabledReason()
  return (
    <form onSubmit={submit}>
      <h2 id="action-title">{action.title}</h2>
      <ul class="consequences">
        {action.consequences.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
      {action.hasPeriod && <Period periods={periods} after={after} setAfter={setAfter} />}
      <Reason why={why} setWhy={setWhy} />
      <Warning
        text={disabledReason ?? (problem === undefined ? action.obsolete?.(live.mirror) : problem)}
      />
      <div class="buttons">
        <button type="button" onClick={() => close()}>
          Cancel
        </button>
        <button
          type="submit"
          class={action.isHarmless ? 'primary' : 'danger'}
          disabled={isBusy || why.trim() === '' || disabledReason !== undefined}
        >
          {isBusy ? 'Working…' : action.button}
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
        placeholder="Shown to the holder and in the audit log"
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
