import { Fragment } from 'preact'

export interface ColumnsProps {
  /** The class of the rows below. */
  readonly of: string
  /** The class of each cell, and its name. */
  readonly names: readonly (readonly [string, string])[]
}

/**
 * The names of the columns above a list. A screen reader skips them: the rows of a list are no
 * cells of a table.
 */
export function Columns({ of, names }: ColumnsProps) {
  return (
    <div class={`columns ${of}`} aria-hidden="true">
      {names.map(([cell, name]) => (
        <span key={name} class={cell}>
          {name}
        </span>
      ))}
    </div>
  )
}

/** What the colours of a picture mean: the class of each sample, and its meaning. */
export function Legend({ of, items }: { readonly of: string; readonly items: Items }) {
  return (
    <p class={`legend ${of}`}>
      {items.map(([tone, name]) => (
        <Fragment key={name}>
          <span class="legend-item">
            <i class={tone} aria-hidden="true" />
            {name}
          </span>{' '}
        </Fragment>
      ))}
    </p>
  )
}

type Items = readonly (readonly [string, string])[]

/** The bars of remaining time. */
export function DrainLegend() {
  return (
    <Legend
      of="drains"
      items={[
        ['', 'time left'],
        ['notch', 'grace begins here'],
        ['low', 'under a quarter, or lapsed'],
        ['capped', 'ends, renewed or not'],
      ]}
    />
  )
}
