interface SearchProps {
  /** What is searched, for its label: `keys and holders`. */
  readonly what: string
  readonly text: string
  change(to: string): void
}

/** The search of a view. The key `/` goes to it. */
export function Search({ what, text, change }: SearchProps) {
  return (
    <input
      type="search"
      class="search"
      data-search
      aria-label={`Search ${what}`}
      placeholder={`Search ${what}  ( / )`}
      value={text}
      onInput={(event) => change(event.currentTarget.value)}
    />
  )
}
