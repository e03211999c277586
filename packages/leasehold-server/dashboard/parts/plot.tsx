import { useState } from 'preact/hooks'
import { formatNumber, formatSpan, timeOfDay } from '../model/format.ts'

export interface Series {
  readonly name: string
  /** The colour of the line. */
  readonly tone: 'main' | 'soft' | 'warn'
  readonly values: readonly (number | undefined)[]
}

export interface PlotProps {
  readonly title: string
  readonly unit: string
  readonly times: readonly number[]
  readonly series: readonly Series[]
  /** The least height of the axis. */
  readonly least: number
  /** Whether rare peaks are cut off and shown as a number instead. */
  readonly leavesOut?: boolean
}

const WIDTH = 300
const HEIGHT = 72
/** The number of seconds shown. */
const SHOWN_S = 300
/** Values this far apart are not connected by a line. */
const APART_MS = 5000
/** An older value is shown with its age. */
const OLD_MS = 2000
/** A spike is this many times above 90 % of the values. Few values have no spikes. */
const USUAL = 0.9
const SPIKE = 4
const FEW = 10
/** How far a cut axis reaches above the usual values. */
const ROOM = 1.5
/** The shortest period shown. */
const SHOWN_MIN_MS = 60_000

/** A plot of one or two metrics over the last minutes, with their current values. */
export function Plot({ title, unit, times, series, least, leavesOut = false }: PlotProps) {
  const [pointed, setPointed] = useState<number | undefined>(undefined)
  const end = times.at(-1) ?? 0
  const shownMs = Math.min(Math.max(end - (times[0] ?? end), SHOWN_MIN_MS), SHOWN_S * 1000)
  const begin = end - shownMs
  const { top: usual, peak } = scaleOf(series, least)
  const top = leavesOut ? usual : peak
  const x = (time: number) => ((time - begin) / shownMs) * WIDTH
  const y = (value: number) => HEIGHT - 2 - (Math.min(value, top) / top) * (HEIGHT - 6)
  const shown = pointed === undefined ? times.length - 1 : nearest(times, begin + pointed * shownMs)
  const said = series.map(({ name, values }) => {
    const value = values[shown]
    return `${name} ${value === undefined ? 'none' : `${formatNumber(value)} ${unit}`}`
  })
  return (
    <figure class="plot">
      <figcaption>
        <span class="plot-title">{title}</span>
        <span class="plot-time">
          {pointed === undefined ? (
            <Top {...{ top, peak, unit }} />
          ) : (
            timeOfDay(times[shown] ?? end)
          )}
        </span>
      </figcaption>
      <Now {...{ series, times, unit, shown: pointed === undefined ? undefined : shown }} />
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
          <Line key={name} {...{ tone, times, values, x, y, begin, top }} />
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
        <span>{formatSpan(shownMs)} ago</span>
        <span>now</span>
      </div>
    </figure>
  )
}

export interface SparkProps {
  readonly name: string
  readonly times: readonly number[]
  readonly values: readonly number[]
}

const SPARK_HEIGHT = 24
const SPARK_MIN_MS = 15_000

/** A small plot of one number over the last minutes. The axis starts at zero. */
export function Spark({ name, times, values }: SparkProps) {
  const end = times.at(-1) ?? 0
  const shownMs = Math.min(Math.max(end - (times[0] ?? end), SPARK_MIN_MS), SHOWN_S * 1000)
  const begin = end - shownMs
  const shown = values.slice(-SHOWN_S)
  const top = Math.max(1, ...shown)
  const x = (time: number) => ((time - begin) / shownMs) * WIDTH
  const y = (value: number) => SPARK_HEIGHT - 2 - (value / top) * (SPARK_HEIGHT - 4)
  const said =
    shown.length === 0
      ? 'not counted yet'
      : `from ${formatNumber(Math.min(...shown))} to ${formatNumber(Math.max(...shown))} in ${formatSpan(shownMs)}`
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${WIDTH} ${SPARK_HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${name}: ${said}`}
    >
      <title>{said}</title>
      <Line {...{ tone: 'main', times, values, x, y, begin, top }} />
    </svg>
  )
}

/** The end of the axis, and the peak above it. */
function Top({ top, peak, unit }: { top: number; peak: number; unit: string }) {
  if (peak <= top) return `max ${formatNumber(top)} ${unit}`
  return (
    <>
      <span class="plot-above">
        ▲ {formatNumber(peak)} {unit}
      </span>{' '}
      above {formatNumber(top)}
    </>
  )
}

interface LineProps extends Pick<Series, 'tone' | 'values'> {
  readonly times: readonly number[]
  readonly begin: number
  readonly top: number
  x(time: number): number
  y(value: number): number
}

function Line({ tone, times, values, x, y, begin, top }: LineProps) {
  const { line, dots, above } = pathsOf(times, values, x, y, begin, top)
  return (
    <>
      <path class={`plot-line tone-${tone}`} d={line} />
      {dots !== '' && <path class={`plot-line plot-dot tone-${tone}`} d={dots} />}
      {above !== '' && <path class="plot-line plot-over" d={above} />}
    </>
  )
}

interface NowProps extends Pick<PlotProps, 'series' | 'times' | 'unit'> {
  /** The index of the sample under the pointer; otherwise the last known value is shown. */
  readonly shown: number | undefined
}

function Now({ series, times, shown, unit }: NowProps) {
  return (
    <div class="plot-now">
      {series.map(({ name, tone, values }) => {
        const at = shown ?? lastKnown(values)
        const value = values[at]
        const age = shown === undefined ? (times.at(-1) ?? 0) - (times[at] ?? 0) : 0
        return (
          <span key={name} class={`tone-${tone}${value ? '' : ' nothing'}`}>
            {name !== '' && <small>{name} </small>}
            <b>
              {value === undefined ? '–' : formatNumber(value)} {unit}
            </b>
            <small>{value !== undefined && age >= OLD_MS && `, ${formatSpan(age)} ago`}</small>
          </span>
        )
      })}
    </div>
  )
}

/** The last shown sample with a value, or the last one. */
function lastKnown(values: readonly (number | undefined)[]): number {
  for (let at = values.length - 1; at >= Math.max(0, values.length - SHOWN_S); at--) {
    if (values[at] !== undefined) return at
  }
  return values.length - 1
}

/**
 * The top of the axis, and the highest value. A few high peaks would flatten all other values, so the
 * axis then ends below them.
 */
export function scaleOf(series: readonly Series[], least: number) {
  let [peak, usual] = [least, least]
  for (const { values } of series) {
    const seen = values.slice(-SHOWN_S).filter((value) => value !== undefined && value > 0)
    const sorted = (seen as number[]).sort((a, b) => a - b)
    const last = sorted.length - 1
    const high = last < FEW ? last : Math.floor(last * USUAL)
    peak = Math.max(peak, sorted[last] ?? 0)
    usual = Math.max(usual, sorted[high] ?? 0)
  }
  return { peak, top: peak > SPIKE * usual ? usual * ROOM : peak }
}

function nearest(times: readonly number[], wanted: number): number {
  let best = times.length - 1
  for (let at = times.length - 1; at >= 0; at--) {
    if (Math.abs(times[at]! - wanted) < Math.abs(times[best]! - wanted)) best = at
  }
  return best
}

/**
 * A line through the values, with gaps where samples are missing. A single value is a dot; a value
 * above the axis has a mark.
 */
function pathsOf(
  times: readonly number[],
  values: readonly (number | undefined)[],
  x: (time: number) => number,
  y: (value: number) => number,
  begin: number,
  top: number,
) {
  const paths = { line: '', dots: '', above: '' }
  let run: string[] = []
  let before = -Infinity
  const end = () => {
    if (run.length === 1) paths.dots += `M${run[0]}h0`
    else if (run.length > 1) paths.line += `M${run.join('L')}`
    run = []
  }
  for (let at = Math.max(0, times.length - SHOWN_S - 1); at < times.length; at++) {
    const [time, value] = [times[at]!, values[at]]
    if (value === undefined || time < begin) continue
    if (time - before >= APART_MS) end()
    run.push(`${x(time).toFixed(1)} ${y(value).toFixed(1)}`)
    if (value > top) paths.above += `M${x(time).toFixed(1)} 1v5`
    before = time
  }
  end()
  return paths
}
