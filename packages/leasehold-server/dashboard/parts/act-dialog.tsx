import { useEffect, useRef, useState } from 'preact/hooks'
import { api } from '../live/api.ts'
import { type Deed, PERIODS } from '../model/deeds.ts'

let open: (deed: Deed) => void = () => {}

/** Asks whether this is really to be done, and why; and does it. */
export function propose(deed: Deed | undefined): void {
  if (deed !== undefined) open(deed)
}

/** The one dialog of the page: what will happen, the reason for it, and the word that does it. */
export function ActDialog() {
  const [deed, setDeed] = useState<Deed | undefined>(undefined)
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    open = setDeed
  }, [])
  useEffect(() => {
    if (deed !== undefined) dialog.current?.showModal()
  }, [deed])
  const close = () => {
    dialog.current?.close()
    setDeed(undefined)
  }
  // The browser tells of a close only later, when the next deed may have been proposed already: it is
  // not left to close by itself.
  const cancel = (event: Event) => {
    event.preventDefault()
    close()
  }
  return (
    <dialog ref={dialog} aria-labelledby="act-title" onCancel={cancel}>
      {deed !== undefined && <ActForm deed={deed} close={close} />}
    </dialog>
  )
}

function ActForm({ deed, close }: { readonly deed: Deed; close(): void }) {
  const [why, setWhy] = useState('')
  const [after, setAfter] = useState(PERIODS[1]!.ms)
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: Event) => {
    event.preventDefault()
    if (isBusy) return
    setBusy(true)
    setProblem(undefined)
    try {
      await api.act(deed.act(why.trim(), after))
      close()
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <form onSubmit={submit}>
      <h2 id="act-title">{deed.title}</h2>
      <ul class="consequences">
        {deed.consequences.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
      {deed.hasPeriod && <Period after={after} setAfter={setAfter} />}
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
      {problem !== undefined && (
        <p class="problem" role="alert">
          Not done: {problem}
        </p>
      )}
      <div class="buttons">
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button type="submit" class="danger" disabled={isBusy || why.trim() === ''}>
          {isBusy ? 'Under way' : deed.button}
        </button>
      </div>
    </form>
  )
}

interface PeriodProps {
  readonly after: number
  setAfter(ms: number): void
}

function Period({ after, setAfter }: PeriodProps) {
  return (
    <label class="field">
      <span>In</span>
      <select value={after} onChange={(event) => setAfter(Number(event.currentTarget.value))}>
        {PERIODS.map(({ ms, text }) => (
          <option key={ms} value={ms}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}
