import { type Event, invalid, type LeaseId, type Notice, type Revision } from 'leasehold/port'
import type { Call, EventSink, Route } from '../route.ts'
import { text, whole } from './schemas.ts'

export const EVENTS: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/events',
    id: 'watchEvents',
    group: 'Events',
    title: 'Watch the keys of a prefix, or a lease',
    about:
      'Server-sent events. For a prefix: first `watching` with the start revision, then `changes`, one for each revision, in order and without gaps. The type of an event in it is `claimed` (the claim is in the queue of its key), `held` (it begins to hold the key: at once, or when the claims before it have gone), `updated` or `removed`. The id of each is its revision, so a client that reconnects with `Last-Event-ID` (or `from`) misses nothing. `compacted` means that the revision is no longer available: read the keys, and watch from the revision of that answer. For a lease: `standing`, `holds`, `removed`, `capped` and `gone`. `bye` means that the client should reconnect.',
    query: {
      prefix: {
        schema: text(),
        about: 'The prefix of the keys. Default: all keys.',
        example: 'reports/',
      },
      from: {
        schema: whole(),
        about: 'Start after this revision. Default: now.',
      },
      lease: { schema: text(), about: 'Watch this lease instead of a prefix.' },
    },
    answer: {
      status: 200,
      about: 'A stream, until one side closes it.',
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
    throw invalid('a lease can only be watched from now: leave out prefix, from and Last-Event-ID')
  }
  const target = lease !== undefined ? { lease } : { prefix, from }
  let sink: EventSink | undefined
  const early: Notice[] = []
  // Opened before the response starts, so that an error can still set the status.
  const watching = store.watch(target, (notice) => {
    if (sink === undefined) early.push(notice)
    else sendNotice(sink, prefix, notice)
  })
  try {
    sink = call.stream()
  } catch (error) {
    watching.close()
    throw error
  }
  sink.closed = () => watching.close()
  for (const notice of early) sendNotice(sink, prefix, notice)
}

/** The start of the watch. `Last-Event-ID` overrides `from`. */
function startOf(call: Call): Revision | undefined {
  const resumed = call.header('last-event-id')
  if (resumed === undefined || resumed === '') return call.query['from']
  const revision = Number(resumed)
  if (/^\d+$/.test(resumed) && Number.isSafeInteger(revision)) return revision
  throw invalid('Last-Event-ID is not a revision: send the id of the last event, or leave it out')
}

function sendNotice(sink: EventSink, prefix: string, notice: Notice): void {
  const { type } = notice
  if (type === 'watching') sink.send(type, { revision: notice.revision }, notice.revision)
  else if (type === 'events') {
    for (const [revision, events] of byRevision(notice.events)) {
      sink.send('changes', { revision, events }, revision)
    }
  } else if (type === 'compacted') {
    const next = `GET /v1/keys?prefix=${encodeURIComponent(prefix)}`
    const todo = `read the keys with ${next}, and watch from the revision of that answer`
    sink.send(type, { oldest: notice.oldest, todo })
  } else if (type === 'interrupted') {
    const { code, message: detail } = notice.error
    sink.send('bye', { code, detail })
  } else {
    const { type: _, ...data } = notice
    sink.send(type, data)
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
