import { useState } from 'preact/hooks'
import { figure, spoken, timeOfDay } from '../model/format.ts'

export interface Series {
  readonly name: string
  /** One of the colours of plots: the first is the accent. */
  readonly tone: 'main' | 'soft' | 'warn'
  readonly values: readonly (number | undefined)[]
}

export interface PlotProps {
  readonly title: string
  readonly unit: string
  readonly times: readonly number[]
  readonly series: readonly Series[]
  /** The axis reaches at least as far. */
  readonly least: number
}

const WIDTH = 300
const HEIGHT = 72
/** So many seconds are shown. */
const SHOWN_S = 300
/** And at first so many milliseconds, until there are more. */
const SHOWN_MIN_MS = 60_000

/** The last minutes of one or two figures, with what they are now in large print. */
export function Plot({ title, unit, times, series, least }: PlotProps) {
  const [pointed, setPointed] = useState<number | undefined>(undefined)
  const end = times.at(-1) ?? 0
  const shownMs = Math.min(Math.max(end - (times[0] ?? end), SHOWN_MIN_MS), SHOWN_S * 1000)
  const begin = end - shownMs
  const top = topOf(series, least)
  const x = (time: number) => ((time - begin) / shownMs) * WIDTH
  const y = (value: number) => HEIGHT - 2 - (Math.min(value, top) / top) * (HEIGHT - 6)
  const shown = pointed === undefined ? times.length - 1 : nearest(times, begin + pointed * shownMs)
  const said = series.map(({ name, values }) => {
    const value = values[shown]
    return `${name} ${value === undefined ? 'none' : `${figure(value)} ${unit}`}`
  })
  return (
    <figure class="plot">
      <figcaption>
        <span class="plot-title">{title}</span>
        <span class="plot-time">
          {pointed === undefined ? `max ${figure(top)} ${unit}` : timeOfDay(times[shown] ?? end)}
        </span>
      </figcaption>
      <Now series={series} shown={shown} unit={unit} />
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: ${said.join(', ')}`}
        onPointerMove={(event) => {
          const { left, width } = event.currentTarget.getBoundingClientRect()
          setPointed((event.clientX - left) / width)
        }}
        onPointerLeave={() => setPointed(undefined)}
      >
        <line class="plot-base" x1="0" x2={WIDTH} y1={HEIGHT - 1.5} y2={HEIGHT - 1.5} />
        {[...series].reverse().map(({ name, tone, values }) => (
          <path
            key={name}
            class={`plot-line tone-${tone}`}
            d={pathOf(times, values, x, y, begin)}
          />
        ))}
        {pointed !== undefined && times[shown] !== undefined && (
          <line
            class="plot-cursor"
            x1={x(times[shown]!)}
            x2={x(times[shown]!)}
            y1="0"
            y2={HEIGHT}
          />
        )}
      </svg>
      <div class="plot-axis" aria-hidden="true">
        <span>{spoken(shownMs)} ago</span>
        <span>now</span>
      </div>
    </figure>
  )
}

interface NowProps extends Pick<PlotProps, 'series' | 'unit'> {
  /** The number of the sample that is told. */
  readonly shown: number
}

function Now({ series, shown, unit }: NowProps) {
  return (
    <div class="plot-now">
      {series.map(({ name, tone, values }) => (
        <span key={name} class={`tone-${tone}${values[shown] ? '' : ' nothing'}`}>
          <b>{values[shown] === undefined ? '–' : figure(values[shown]!)}</b>
          <small>
            {' '}
            {name === '' ? '' : `${name} `}
            {unit}
          </small>
        </span>
      ))}
    </div>
  )
}

function topOf(series: readonly Series[], least: number): number {
  let top = least
  for (const { values } of series) {
    for (const value of values.slice(-SHOWN_S)) if (value !== undefined && value > top) top = value
  }
  return top
}

function nearest(times: readonly number[], wanted: number): number {
  let best = times.length - 1
  for (let at = times.length - 1; at >= 0; at--) {
    if (Math.abs(times[at]! - wanted) < Math.abs(times[best]! - wanted)) best = at
  }
  return best
}

/** A line through the values; where one is missing or seconds were not sampled it is broken. */
function pathOf(
  times: readonly number[],
  values: readonly (number | undefined)[],
  x: (time: number) => number,
  y: (value: number) => number,
  begin: number,
): string {
  let path = ''
  let before: number | undefined
  for (let at = Math.max(0, times.length - SHOWN_S - 1); at < times.length; at++) {
    const [time, value] = [times[at]!, values[at]]
    if (value === undefined || time < begin) continue
    const isJoined = before !== undefined && time - before < 5000
    path += `${isJoined ? 'L' : 'M'}${x(time).toFixed(1)} ${y(value).toFixed(1)}`
    before = time
  }
  return path
}
