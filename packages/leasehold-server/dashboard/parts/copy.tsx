import { useState } from 'preact/hooks'

/** How long the button shows the outcome. */
const SHOWN_MS = 1500

/** Copies a text. `label` says what, if the text beside the button does not. */
export function CopyButton({ text, label }: { readonly text: string; readonly label?: string }) {
  const [said, say] = useState('Copy')
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      say('Copied')
    } catch {
      say('Not allowed')
    }
    setTimeout(() => say('Copy'), SHOWN_MS)
  }
  return (
    <button type="button" aria-label={label && `${said} ${label}`} onClick={() => void copy()}>
      {said}
    </button>
  )
}
