import { type Event, invalid, type LeaseId, type Notice, type Revision } from 'leasehold/port'
import type { Call, EventSink, Route } from './route.ts'
import { text, whole } from './schemas.ts'

export const EVENTS: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/events',
    id: 'watchEvents',
    group: 'Events',
    title: 'Tells what happens on the keys of a prefix, or to a lease, as it happens',
    about:
      'Server-sent events. For a prefix: first `watching` with the revision from which on all is seen, then `changes`, one for each revision, in order and without gaps; the id of each is its revision, and whoever connects again with `Last-Event-ID` (or `from`) misses nothing. `compacted` means that the wanted revision is not kept any more: read the keys, and watch from the revision of that reading. For a lease: `standing`, `holds`, `removed`, `capped` and `gone`. `bye` means: connect again.',
    query: {
      prefix: {
        schema: text(),
        about: 'The keys that begin with this; all if not given.',
        example: 'reports/',
      },
      from: {
        schema: whole(),
        about: 'What happened after this revision; from now on if not given.',
      },
      lease: { schema: text(), about: 'What concerns this lease, instead of a prefix.' },
    },
    answer: {
      status: 200,
      about: 'A stream that ends when either side closes it.',
      schema: text(),
      type: 'text/event-stream',
    },
    handle: watch,
  },
]

async function watch(call: Call): Promise<void> {
  const { store, query } = call
  const { prefix = '', lease }: { prefix?: string; lease?: LeaseId } = query
  const from = startOf(call)
  if (lease !== undefined && (from !== undefined || query['prefix'] !== undefined)) {
    throw invalid('a lease is watched from now on: leave prefix, from and Last-Event-ID out')
  }
  const target = lease !== undefined ? { lease } : { prefix, from }
  let sink: EventSink | undefined
  const early: Notice[] = []
  // What is wrong is thrown here, while it can still be answered with a status.
  const watching = store.watch(target, (notice) => {
    if (sink === undefined) early.push(notice)
    else tell(sink, prefix, notice)
  })
  try {
    sink = call.stream()
  } catch (error) {
    watching.close()
    throw error
  }
  sink.closed = () => watching.close()
  for (const notice of early) tell(sink, prefix, notice)
}

/** Where a reader goes on: what its own memory says counts more than its address. */
function startOf(call: Call): Revision | undefined {
  const resumed = call.header('last-event-id')
  if (resumed === undefined || resumed === '') return call.query['from']
  const revision = Number(resumed)
  if (/^\d+$/.test(resumed) && Number.isSafeInteger(revision)) return revision
  throw invalid('Last-Event-ID is no revision: send the id of the last event, or leave it out')
}

function tell(sink: EventSink, prefix: string, notice: Notice): void {
  const { type } = notice
  if (type === 'watching') sink.send(type, { revision: notice.revision }, notice.revision)
  else if (type === 'events') {
    for (const [revision, events] of byRevision(notice.events)) {
      sink.send('changes', { revision, events }, revision)
    }
  } else if (type === 'compacted') {
    const next = `GET /v1/keys?prefix=${encodeURIComponent(prefix)}`
    const todo = `read again with ${next}, and watch from the revision of that answer`
    sink.send(type, { oldest: notice.oldest, todo })
  } else if (type === 'interrupted') {
    const { code, message: detail } = notice.error
    sink.send('bye', { code, detail })
  } else {
    const { type: _, ...told } = notice
    sink.send(type, told)
  }
  if (type === 'compacted' || type === 'interrupted' || type === 'gone') sink.end()
}

function byRevision(events: readonly Event[]): Map<Revision, Event[]> {
  const found = new Map<Revision, Event[]>()
  for (const event of events) {
    const same = found.get(event.revision)
    if (same === undefined) found.set(event.revision, [event])
    else same.push(event)
  }
  return found
}
